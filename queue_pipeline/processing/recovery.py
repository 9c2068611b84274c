"""Recovery: tries a batch, and when it fails sees to its messages: again, in halves, later, or in the error queue."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from queue_pipeline.processing.batch import BatchProcessor
from queue_pipeline.processing.batch_report import BatchReport
from queue_pipeline.processing.claimed_batch import ClaimedBatch
from queue_pipeline.processing.errors import AbandonedError, SparkLostError, SparkUnavailableError
from queue_pipeline.processing.exception_text import describe, error_types, in_a_line, same_cause
from queue_pipeline.processing.executors.part_report import row_ranges
from queue_pipeline.processing.executors.staging import Executors
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.rate_limit import RateLimit
from queue_pipeline.processing.recoverability import (
    DelayedRetry,
    Step,
    delayed_retry,
    next_step,
    scheduled_retry,
)
from queue_pipeline.processing.spark_errors import is_plumbing, is_spark_error
from queue_pipeline.processing.transforming import Transformer
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.addressing import CLAIMED_SUFFIX, DELAYED_SUFFIX
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.error_message import Failure
from queue_pipeline.transport.errors import (
    AccessDeniedError,
    ClaimLostError,
    DatabaseUnavailableError,
    LayoutChangedError,
    QueueNotFoundError,
    RowsDifferError,
    StagedLostError,
    SubscriberError,
    TableNotFoundError,
    TransientDatabaseError,
    UniqueIndexMissingError,
)
from queue_pipeline.transport.messages import TransactionMode
from queue_pipeline.transport.nginn.rows import is_nginn
from queue_pipeline.transport.transport import QueueTransport

FAILURES_BETWEEN_PROBES = 8
"""After so many failures in a row it is asked anew whether the transform works at all."""
NOBODYS_FAULT = (
    AccessDeniedError,
    DatabaseUnavailableError,
    LayoutChangedError,
    RowsDifferError,
    SparkUnavailableError,
    StagedLostError,
    SubscriberError,
    TableNotFoundError,
    TransientDatabaseError,
    UniqueIndexMissingError,
)
"""What no message is at fault of, and what is the same for the next one: the run ends, and nothing is counted."""
CODE_AT_FAULT = frozenset({"TransformError", "AnalysisException"})
"""Errors of a transform that cannot be right for any message, if it is not right for none."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Attempted:
    """What became of an attempt: batches that ended, those still to be tried, and how it goes on if it failed."""

    reports: Sequence[BatchReport] = ()
    again: Sequence[Claim] = ()
    failure: Failure | None = None
    step: Step | None = None
    error_for_all: Exception | None = None
    """Set when messages were given up for an error that no message is at fault of, and that the next will meet too."""


class Recovery:
    """Tries batches of one pipeline; safe to use from several threads.

    Failures are counted in the database, on the claim: a message stands alone in its claim before anything but the
    halving of its batch is decided, so that the claim's count is the message's own.
    """

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        transformer: Transformer,
        executors: Executors | None = None,
    ) -> None:
        """With `executors`, batches may be theirs; see `travel`."""
        self._pipeline = pipeline
        self._policy = pipeline.retries
        self._transport = transport
        self._transformer = transformer
        self.processor = BatchProcessor(pipeline, transport, transformer, executors)
        """What it tries batches with."""
        address = transport.resolve(pipeline.input_queue).canonical
        self.limit = RateLimit(self._policy, transport.failures, address)
        self._stopped = threading.Event()
        self._broken = False
        self._failed_in_a_row = 0
        self._can_delay: bool | None = None

    def stop(self) -> None:
        """From now on an error means that the run was terminated, and is nobody's failure."""
        self._stopped.set()

    def attempt(self, claim: Claim) -> Attempted:
        """Try a batch. What it raises was no message's fault: the claim is still held, and is to be released."""
        if claim.failures and (told := self._see_to_abandoned(claim)):
            return told
        # Before it is read: a message may be too much for the process that reads it.
        self._transport.claims.begin(claim)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            return self._attempt_unreliable(claim)
        batch = None
        try:
            batch = None if self.processor.goes_to_executors else self.processor.read(claim)
            if suspects := self._came_back(claim, batch):
                # Whoever failed before is suspect: the others need not fail with it.
                return Attempted(again=self._transport.claims.separate(claim, suspects))
            report = self.processor.work(batch) if batch else self.processor.work_by_executors(claim)
        except ClaimLostError:
            raise
        except Exception as error:
            if self.is_nobodys_fault(error):
                raise
            return self.recover(claim, error, batch)
        self.succeeded()
        return Attempted([report])

    def _came_back(self, claim: Claim, batch: ClaimedBatch | None) -> list[tuple[int, int]]:
        """Messages that failed before and came back after a delay, unless all of them did; as ranges."""
        if batch is not None:
            ranges = batch.came_back
            return [] if ranges and _is_all(batch, ranges) else ranges
        marked = self._transport.claims.marked(claim, wire.quote(wire.RETRIES))
        return [] if len(marked) == claim.messages else row_ranges(marked)

    def _see_to_abandoned(self, claim: Claim) -> Attempted | None:
        """What is due for a batch that failed in the hands of others, before it is tried here; None: try it."""
        for_all = self._broken and claim.messages > 1
        step = next_step(self._policy, claim.messages, claim.failures, for_all=for_all)
        if step is Step.RETRY:
            return None
        if step is Step.SPLIT:
            return Attempted(again=self._transport.claims.split(claim, claim.messages // 2), step=step)
        known = [one.last_error for one in self._transport.claims.list() if one.claim_id == claim.claim_id]
        abandoned = AbandonedError(
            f"{claim.messages:,} message(s) of {claim.queue} failed {claim.failures} times; the last that is known: "
            f"{known[0] if known and known[0] else 'nothing'}; see the log of the run that had it"
        )
        return self._see_to(claim, abandoned, None, for_all=for_all)

    def recover(self, claim: Claim, error: Exception, batch: ClaimedBatch | None) -> Attempted:
        """See to a batch that failed; what executors read is not at hand here."""
        try:
            for_all = self._is_for_all(error)
            if for_all and not CODE_AT_FAULT.isdisjoint(error_types(error)):
                # It stays so until somebody mends the code, and until then the messages are best kept where they are.
                raise error
            told = in_a_line(describe(error))
            claim, in_a_row = self._transport.claims.fail(claim, told)
            self.limit.failed(in_a_row)
            if (is_spark_error(error) or is_plumbing(error)) and not self._transformer.answers():
                raise SparkLostError(
                    f"Spark went away while it worked on {claim.messages:,} message(s) of {claim.queue}; the next run "
                    f"tries again{', in halves' if claim.messages > 1 else ''} ({told})"
                ) from error
            return self._see_to(claim, error, batch, for_all=for_all and claim.messages > 1)
        except (ClaimLostError, SparkLostError):
            raise
        except Exception as trouble:
            if trouble is error:
                raise
            first = batch.messages["id"][0].as_py() if batch and batch.messages.num_rows else claim.claim_id
            logger.critical("Failed to execute recoverability policy for message with native ID: `%s`", first)
            raise

    def _see_to(self, claim: Claim, error: Exception, batch: ClaimedBatch | None, *, for_all: bool) -> Attempted:
        failure = describe(error)
        unrecoverable = self._policy.is_unrecoverable(error_types(error))
        step = next_step(self._policy, claim.messages, claim.failures, for_all=for_all, unrecoverable=unrecoverable)
        if step is Step.SPLIT:
            return Attempted((), self._transport.claims.split(claim, claim.messages // 2), failure, step)
        if step is Step.RETRY:
            return Attempted((), (claim,), failure, step)
        now, queue = datetime.now(UTC), self._transport.resolve(self._pipeline.input_queue)

        def retry(headers: Mapping[str, str]) -> DelayedRetry | None:
            if not self._delays():
                return None
            if is_nginn(queue):
                waits = self._transport.book.nginn.retry_seconds
                return scheduled_retry(self._policy, waits, headers, unrecoverable=unrecoverable)
            return delayed_retry(self._policy, headers, now, unrecoverable=unrecoverable)

        try:
            messages = replace(batch, claim=claim) if batch else self.processor.read(claim)
        except Exception as unread:
            if self.is_nobodys_fault(unread) or isinstance(unread, ClaimLostError):
                raise
            if claim.messages > 1:
                return Attempted((), self._transport.claims.split(claim, claim.messages // 2), failure, Step.SPLIT)
            return Attempted([self.processor.give_up_unread(claim, describe(unread))], (), failure, step)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            self.processor.take(messages)
        return Attempted(
            [self.processor.give_up(messages, failure, retry)], (), failure, step, error if for_all else None
        )

    def _attempt_unreliable(self, claim: Claim) -> Attempted:
        """The claim ends first; after that a message that fails can only go to the error queue, and only from here."""
        try:
            batch = self.processor.read(claim)
        except Exception as error:
            if self.is_nobodys_fault(error) or isinstance(error, ClaimLostError):
                raise
            return self.recover(claim, error, None)
        self.processor.take(batch)
        return self._try_unreliable(batch)

    def _try_unreliable(self, batch: ClaimedBatch) -> Attempted:
        try:
            report = self.processor.work(batch)
        except Exception as error:
            if self._stopped.is_set():
                raise
            failure = describe(error)
            self.limit.failed(self._transport.failures.add(batch.claim.queue, in_a_line(failure)))
            for_all = self.is_nobodys_fault(error) or self._is_for_all(error)
            if for_all or batch.messages.num_rows <= 1:
                given_up = self.processor.give_up(batch, failure)
                return Attempted([given_up], (), failure, Step.GIVE_UP, error if for_all else None)
            halves = [self._try_unreliable(half) for half in batch.halves()]
            reports = [report for half in halves for report in half.reports]
            error_for_all = next((half.error_for_all for half in halves if half.error_for_all), None)
            return Attempted(reports, (), failure, Step.SPLIT, error_for_all)
        self.succeeded()
        return Attempted([report])

    def succeeded(self) -> None:
        """Note that a batch went well."""
        self._broken, self._failed_in_a_row = False, 0
        self.limit.succeeded()

    def _is_for_all(self, error: Exception) -> bool:
        """Whether the transform fails on no messages in the same way; asked now and then, for asking is a call of it.

        A transform that fails in another way when there are no messages has never met that before, and may do so.
        """
        if self._failed_in_a_row % FAILURES_BETWEEN_PROBES == 0:
            probed = self._transformer.probe()
            self._broken = probed is not None and same_cause(probed, error)
        self._failed_in_a_row += 1
        return self._broken

    def _delays(self) -> bool:
        """Whether there is a table for delayed messages: one that a .NET endpoint installed may have another name."""
        if self._can_delay is None and self._policy.delayed_retries:
            try:
                self._transport.delayed.next_due_seconds(self._transport.resolve(self._pipeline.input_queue))
                self._can_delay = True
            except QueueNotFoundError as error:
                self._can_delay = False
                logger.warning("pipeline %s: no delayed retries, because %s", self._pipeline.name, error)
        return bool(self._can_delay)

    def is_nobodys_fault(self, error: Exception) -> bool:
        """Whether the next message would meet the same error: a queue that a message asked to reply to, and that is
        missing or forbidden, is the fault of that message. Once the run was terminated, no error is anybody's.
        """
        if self._stopped.is_set():
            return True
        if isinstance(error, QueueNotFoundError):
            return self._is_own(error.queue)
        if isinstance(error, AccessDeniedError) and error.queue is not None:
            return self._is_own(error.queue)
        return isinstance(error, NOBODYS_FAULT)

    def _is_own(self, queue: str) -> bool:
        """Whether a queue, or a table that belongs to one, is needed by every batch."""
        resolved = [self._transport.resolve(name) for name in self._pipeline.queues]
        siblings = [
            self._transport.book.sibling(table, suffix)
            for table in resolved
            for suffix in (DELAYED_SUFFIX, CLAIMED_SUFFIX)
        ]
        return queue in self._pipeline.queues or queue in {table.canonical for table in [*resolved, *siblings]}


def _is_all(batch: ClaimedBatch, ranges: Sequence[tuple[int, int]]) -> bool:
    rows = batch.messages["row_version"]
    return list(ranges) == [(rows[0].as_py(), rows[-1].as_py())]
