"""Recovery: tries a batch, splits one that failed, and retries or gives up a message that fails alone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial

from queue_pipeline.errors import (
    ClaimLostError,
    DatabaseUnavailableError,
    QueueNotFoundError,
    QueuePipelineError,
)
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import Transformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import delayed_retry
from queue_pipeline.processing.errors import (
    AbandonedError,
    BatchTimeoutError,
    EverythingFailsError,
    SparkKilledError,
    SparkLostError,
)
from queue_pipeline.processing.failures.decision import Step, after_failure
from queue_pipeline.processing.failures.environment import Environment
from queue_pipeline.processing.failures.judge import LONGEST_CAUSE, Judge, Judgement
from queue_pipeline.processing.failures.rate_limit import RateLimit
from queue_pipeline.processing.failures.spark_deaths import SparkDeaths
from queue_pipeline.processing.failures.verdict import Verdict
from queue_pipeline.processing.results.exceptions import describe, error_types, in_a_line
from queue_pipeline.processing.results.failed_copies import Retry, never
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.spark.run_spark import RunSpark
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.messages.message import TransactionMode
from queue_pipeline.transport.texts import shortened
from queue_pipeline.transport.transport import QueueTransport

logger = logging.getLogger(__name__)


class Recovery:
    """Tries batches of one pipeline; thread-safe.

    Failures are counted in the database, on the claim. Batches are halved until a message is alone in its claim, so
    that the count is the message's own.
    """

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        transformer: Transformer,
        executors: Executors | None = None,
        proof: str | None = None,
        spark: RunSpark | None = None,
    ) -> None:
        """`proof` names the code and Spark of the run; `spark` can give isolated batches a Spark of their own."""
        self._pipeline = pipeline
        self._policy = pipeline.retries
        self._transport = transport
        self.processor = BatchProcessor(pipeline, transport, transformer, executors)
        """What it tries batches with."""
        address = transport.resolve(pipeline.input_queue).canonical
        self.limit = RateLimit(self._policy, transport.failures, address)
        self.judge = Judge(self._policy, self.processor.probe, self.limit, transport.failures, proof)
        """Who is to blame for failures."""
        self._environment = Environment(pipeline, transport)
        self._deaths = SparkDeaths(transport.claims, transformer.answers, self.limit, spark)
        self._has_reason = threading.Event()

    def stop(self) -> None:
        """From now on an error means that the run was terminated, and counts as no failure."""
        self._environment.stop()

    def attempt(self, claim: Claim) -> Attempted:
        """Try a batch. What it raises is caused by no message: the claim is still held, and is to be released."""
        try:
            return self._attempt(claim)
        except (ClaimLostError, SparkLostError):
            raise
        except Exception as error:
            self._keep_reason(error)
            raise

    def _attempt(self, claim: Claim) -> Attempted:
        self._deaths.prepare(claim)
        if (known := self.judge.suspected(claim)) is not None:
            return self._decide(claim, known, None)
        if claim.failures and (handled := self._handle_abandoned(claim)):
            return handled
        # Before it is read: a message may be too much for the process that reads it.
        self._transport.claims.begin(claim)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            return self._attempt_unreliable(claim)
        batch = None
        try:
            batch = self.processor.backend.read(claim, with_sample=self.judge.needs_sample)
            if suspects := self.processor.backend.came_back(batch):
                # A message that failed before is suspect: the others need not fail with it.
                return Attempted(again=self._transport.claims.separate(claim, suspects))
            report = self.processor.process(batch)
        except ClaimLostError:
            raise
        except Exception as error:
            if self._environment.causes(error):
                raise
            return self.recover(claim, error, batch)
        self.limit.succeeded()
        return Attempted([report], self.judge.processed(report, batch))

    def hung(self, claim: Claim) -> Attempted:
        """Note a batch whose attempt did not return: it is isolated first, then counted. The next run decides."""
        error = BatchTimeoutError(
            f"{claim.messages:,} message(s) of {claim.queue}: the attempt did not return, though Spark was interrupted "
            f"after batch_seconds ({self._pipeline.batch_seconds:g} s); see what the transform waits for"
        )
        failure, step = describe(error), Step.RETRY if claim.isolated else Step.ISOLATE
        note = self._transport.claims.fail if claim.isolated else self._transport.claims.isolate
        claim, in_a_row = note(claim, in_a_line(failure))
        self.limit.failed(in_a_row)
        return Attempted((), (claim,), failure, step)

    def _handle_abandoned(self, claim: Claim) -> Attempted | None:
        """Decide about a batch that failed in other processes; None: it is tried here."""
        # A death is counted on an isolated batch only; on any other, the failure was the message's own.
        step = after_failure(self._policy, claim.messages, claim.failures, kills=claim.isolated)
        if step is Step.RETRY:
            return None
        if step is Step.SPLIT:
            return Attempted(again=self._halves(claim), step=step)
        known = [one.last_error for one in self._transport.claims.list() if one.claim_id == claim.claim_id]
        abandoned = AbandonedError(
            f"{claim.messages:,} message(s) of {claim.queue} failed {claim.failures} times; the last that is known: "
            f"{known[0] if known and known[0] else 'nothing'}; see the log of the run that had it"
        )
        return self._decide(claim, abandoned, None)

    def recover(self, claim: Claim, error: Exception, batch: ClaimedBatch | None) -> Attempted:
        """Handle a batch that failed. `batch` is None if reading failed, and lacks messages that executors read."""
        try:
            if (death := self._deaths.death(claim, error)) is not None:
                if not claim.isolated:
                    isolated = self._deaths.isolate(claim, death, error)
                    return Attempted((), (isolated,), describe(error), Step.ISOLATE)
                error = self._deaths.failure(claim, death, error)
            return self._decide(claim, error, batch)
        except (ClaimLostError, SparkLostError, EverythingFailsError):
            raise
        except Exception:
            first = batch.messages["id"][0].as_py() if batch and batch.messages.num_rows else claim.claim_id
            logger.critical("Failed to execute recoverability policy for message with native ID: `%s`", first)
            raise

    def _decide(self, claim: Claim, error: Exception, batch: ClaimedBatch | None) -> Attempted:
        """Count a failure of a message that is to blame for it, and of no other."""
        if claim.messages > 1:
            self._check(self.judge.together(error), claim, error)
            return self._next(claim, error, batch)
        judgement = self.judge.alone(claim, error)
        self._check(judgement, claim, error)
        failure = describe(error)
        if judgement.verdict is Verdict.UNKNOWN:
            self._transport.claims.rest(claim, in_a_line(failure))
            return Attempted(failure=failure, step=Step.WAIT, later=(claim,))
        is_first = not claim.failures
        claim, in_a_row = self._transport.claims.fail(claim, in_a_line(failure))
        self.limit.failed(in_a_row)
        handled = self._next(claim, error, batch)
        # What was decided about this one may decide about others that wait.
        return replace(handled, again=(*handled.again, *self.judge.offer())) if is_first else handled

    def _check(self, judgement: Judgement, claim: Claim, error: Exception) -> None:
        if judgement.verdict is Verdict.ENVIRONMENT:
            cause, longest = shortened(in_a_line(describe(error)), LONGEST_CAUSE), self._policy.backoff.longest
            raise EverythingFailsError(
                f"{cause}. No message of {claim.queue} is to blame: {judgement.tried}. Nothing was counted, and all "
                "messages stay in the queue. Fix the cause (the code, a package, a service, a disk, Spark); then the "
                f"next run goes on: at once after a change of the code, else within {longest:g} s, or when you start it"
            ) from error

    def _next(self, claim: Claim, error: Exception, batch: ClaimedBatch | None) -> Attempted:
        """What is done with messages that are to blame, or that failed together: again, in halves, later, or never."""
        failure = describe(error)
        unrecoverable = self._policy.is_unrecoverable(error_types(error))
        kills = isinstance(error, (SparkKilledError, AbandonedError))
        step = after_failure(self._policy, claim.messages, claim.failures, unrecoverable=unrecoverable, kills=kills)
        if step is Step.SPLIT:
            return Attempted((), self._halves(claim), failure, step)
        if step is Step.RETRY:
            return Attempted((), (claim,), failure, step)
        try:
            is_here = batch is not None and batch.is_whole
            messages = replace(batch, claim=claim) if batch and is_here else self.processor.local.read(claim)
        except Exception as unread:
            if self._environment.causes(unread) or isinstance(unread, ClaimLostError):
                raise
            return Attempted([self.processor.give_up_unread(claim, describe(unread))], (), failure, step)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            self.processor.take(messages)
        # One that kills would come back among others, and each of its attempts takes a Spark.
        retry = never if kills or unrecoverable else self._delayed_retry()
        return Attempted([self.processor.give_up(messages, failure, retry)], (), failure, step)

    def _delayed_retry(self) -> Retry:
        """How messages that were given up for now are tried again later."""
        if not self._can_delay:
            return never
        queue = self._transport.resolve(self._pipeline.input_queue)
        schedule = self._transport.layouts.of(queue).retry_seconds
        return partial(delayed_retry, self._policy, now=datetime.now(UTC), schedule=schedule)

    @cached_property
    def _can_delay(self) -> bool:
        """Whether there is a table for delayed messages: one that a .NET endpoint installed may have another name."""
        if not self._policy.delayed_retries:
            return False
        try:
            self._transport.next_due_seconds(self._pipeline.input_queue)
        except QueueNotFoundError as error:
            logger.warning("pipeline %s: no delayed retries, because %s", self._pipeline.name, error)
            return False
        return True

    def _halves(self, claim: Claim) -> Sequence[Claim]:
        return self._transport.claims.split(claim, claim.messages // 2)

    def _attempt_unreliable(self, claim: Claim) -> Attempted:
        """The claim ends first: from then on its messages are in this process only."""
        try:
            batch = self.processor.local.read(claim)
        except Exception as error:
            if self._environment.causes(error) or isinstance(error, ClaimLostError):
                raise
            return self.recover(claim, error, None)
        self.processor.take(batch)
        return self._process_taken(batch)

    def _process_taken(self, batch: ClaimedBatch) -> Attempted:
        """Try a batch whose claim has ended, and its halves if it fails; what fails can only go to the error queue."""
        try:
            report = self.processor.process(batch)
        except Exception as error:
            if self._environment.is_stopped:
                raise
            return self._taken_failed(batch, error)
        self.limit.succeeded()
        self.judge.processed(report, batch)
        return Attempted([report])

    def _taken_failed(self, batch: ClaimedBatch, error: Exception) -> Attempted:
        failure = describe(error)
        self.limit.failed(self._transport.failures.add(batch.claim.queue, in_a_line(failure)))
        for_all = self._environment.causes(error) or self.judge.together(error).verdict is Verdict.ENVIRONMENT
        if for_all or batch.messages.num_rows <= 1:
            given_up = self.processor.give_up(batch, failure)
            return Attempted([given_up], (), failure, Step.GIVE_UP, error if for_all else None)
        halves = [self._process_taken(half) for half in batch.halves()]
        reports = [report for half in halves for report in half.reports]
        error_for_all = next((half.error_for_all for half in halves if half.error_for_all), None)
        return Attempted(reports, (), failure, Step.SPLIT, error_for_all)

    def _keep_reason(self, error: Exception) -> None:
        """Keep why a run ends, for the sensor, the checks and the command line; unless it was terminated."""
        if self._environment.is_stopped or self._has_reason.is_set() or isinstance(error, DatabaseUnavailableError):
            return
        # Once: other batches in work end for the same reason.
        self._has_reason.set()
        try:
            self.limit.failed(self._transport.failures.add(self.limit.queue, in_a_line(describe(error))))
        except QueuePipelineError as trouble:
            logger.warning("pipeline %s: why its run ends could not be kept: %s", self._pipeline.name, trouble)
