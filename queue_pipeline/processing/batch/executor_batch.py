"""One large batch from claim to completion: executors read, transform and stage it, and this process completes it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from queue_pipeline.processing.batch.claimed_batch import read_rows
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.report import BatchReport, Clock, executors_report
from queue_pipeline.processing.batch.sending import BatchContext
from queue_pipeline.processing.results.acknowledgement import acknowledgements
from queue_pipeline.processing.results.confirmations import Confirming
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.results.failed_copies import reasons_of
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.message_columns import MessageColumns


class ExecutorBatches:
    """Processes claims without reading them: only messages that failed, or that ask for an answer, come here."""

    def __init__(self, context: BatchContext, executors: Executors) -> None:
        self._context = context
        self._executors = executors

    def work(self, claim: Claim) -> BatchReport:
        """Have a claim transformed and its results staged, and complete it.

        Results become visible with the completion in every mode, `receive_only` too: the outbox has them until then.
        """
        sending = self._context.sending()
        with self._context.subscribers_named(sending):
            return self._work(claim, sending)

    def _work(self, claim: Claim, sending: Sending) -> BatchReport:
        transport, started, clock = self._context.transport, datetime.now(UTC), Clock()
        results = self._executors.stage(claim, sending)
        failed = [one.row_version for one in results.failures]
        refused = read_rows(transport.claim_reader, claim, failed)
        errors = self._context.copies(refused, reasons_of(results.failures, self._context.place))
        groups = [*results.groups, *self._confirmed(claim, failed, started)]
        ready = [*errors.ready, *self._acknowledged(claim, failed)]
        transformed = clock.lap()
        transport.claims.complete(
            claim,
            (),
            self._context.own_tables(results.tables),
            ready=ready,
            dead_letters=[row.row_version for row in results.unreadable],
            staged=groups,
            marks=errors.marks,
            read=results.read,
        )
        return executors_report(claim, results, errors, clock, transformed)

    def _confirmed(self, claim: Claim, failed: Sequence[int], started: datetime) -> list[StagedGroup]:
        """The copies for the audit queue: one of every message, so that executors make them."""
        pipeline = self._context.pipeline
        if pipeline.audit_queue is None:
            return []
        confirming = Confirming(
            audit_queue=pipeline.audit_queue,
            audit_time_to_live=pipeline.audit_time_to_live,
            endpoint=pipeline.endpoint_name,
            started=started,
            ended=datetime.now(UTC),
            refused=list(failed),
        )
        return self._executors.confirm(claim, confirming)

    def _acknowledged(self, claim: Claim, failed: Sequence[int]) -> list[MessageColumns]:
        """What ServiceControl waits for; whoever makes audit copies sees to it there."""
        pipeline, transport = self._context.pipeline, self._context.transport
        if pipeline.audit_queue is not None:
            return []
        retried = set(transport.claims.marked(claim, wire.RETRY_UNIQUE_MESSAGE_ID)) - set(failed)
        if not retried:
            return []
        rows = read_rows(transport.claim_reader, claim, sorted(retried))
        return acknowledgements(rows, datetime.now(UTC), pipeline.endpoint_name)
