"""Batches of transaction mode `unreliable`: their messages are in this process only, and nothing can be released."""

from __future__ import annotations

from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.failures.decision import Step, after_unreliable_failure
from queue_pipeline.processing.failures.environment import Environment
from queue_pipeline.processing.failures.judge import Judge
from queue_pipeline.processing.failures.rate_limit import RateLimit
from queue_pipeline.processing.failures.verdict import Verdict
from queue_pipeline.processing.results.exceptions import describe, in_a_line
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.transport.claims.failure_counts import FailureCounts


class UnreliableBatches:
    """Tries batches whose claim has ended; a message that fails can only go to the error queue, and only from here."""

    def __init__(
        self,
        processor: BatchProcessor,
        failures: FailureCounts,
        environment: Environment,
        judge: Judge,
        limit: RateLimit,
    ) -> None:
        self._processor = processor
        self._failures = failures
        self._environment = environment
        self._judge = judge
        self._limit = limit

    def attempt(self, batch: ClaimedBatch) -> Attempted:
        """Try a batch, and its halves if it fails; what it raises was raised by a run that is terminated."""
        try:
            report = self._processor.process(batch)
        except Exception as error:
            if self._environment.is_stopped:
                raise
            return self._failed(batch, error)
        self._limit.succeeded()
        self._judge.processed(report, batch)
        return Attempted([report])

    def _failed(self, batch: ClaimedBatch, error: Exception) -> Attempted:
        failure = describe(error)
        self._limit.failed(self._failures.add(batch.claim.queue, in_a_line(failure)))
        for_all = self._environment.causes(error) or self._judge.together(error).verdict is Verdict.ENVIRONMENT
        step = after_unreliable_failure(batch.messages.num_rows, fails_for_all=for_all)
        if step is Step.GIVE_UP:
            given_up = self._processor.give_up(batch, failure)
            return Attempted([given_up], (), failure, step, error if for_all else None)
        halves = [self.attempt(half) for half in batch.halves()]
        reports = [report for half in halves for report in half.reports]
        error_for_all = next((half.error_for_all for half in halves if half.error_for_all), None)
        return Attempted(reports, (), failure, step, error_for_all)
