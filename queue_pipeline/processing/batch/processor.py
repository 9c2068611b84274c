"""One batch from claim to completion: read, transform, and everything written in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch, Unreadable, read_batch, read_rows
from queue_pipeline.processing.batch.executor_batch import ExecutorBatches
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.report import BatchReport, Clock, driver_report
from queue_pipeline.processing.batch.route import travels_by_executors
from queue_pipeline.processing.batch.sending import BatchContext, Retry
from queue_pipeline.processing.batch.transformer import Transformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.acknowledgement import acknowledgements
from queue_pipeline.processing.results.audit import audit_copies
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.results.failed_copies import FailedCopies, reasons_of, same_reason
from queue_pipeline.processing.results.sorting import refused_among
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.layouts.nginn.claim_rows import FailedRow
from queue_pipeline.transport.message_columns import MessageColumns
from queue_pipeline.transport.messages import TransactionMode
from queue_pipeline.transport.transport import QueueTransport

if TYPE_CHECKING:
    from sqlalchemy import Connection


class BatchProcessor:
    """Processes claims of one pipeline; safe to use from several threads."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        transformer: Transformer,
        executors: Executors | None = None,
    ) -> None:
        """Without `executors` every batch passes through this process."""
        self._pipeline = pipeline
        self._transport = transport
        self._transformer = transformer
        self._context = BatchContext(pipeline, transport)
        self._executors = executors
        self._by_executors = ExecutorBatches(self._context, executors) if executors is not None else None

    @cached_property
    def goes_to_executors(self) -> bool:
        """Whether Spark's executors read the claims of this run and stage their results themselves."""
        if self._executors is None:
            return False
        shares = self._transport.database.dialect.locks_rows
        return travels_by_executors(
            self._pipeline, self._executors.master, can_travel=self._transport.settings is not None, shares=shares
        )

    def work_by_executors(self, claim: Claim) -> BatchReport:
        """Have executors transform a claim and stage everything that comes of it, and complete it."""
        if self._by_executors is None:
            raise ConfigurationError(f"pipeline {self._pipeline.name}: there are no executors to give a batch to")
        return self._by_executors.work(claim)

    def read(self, claim: Claim) -> ClaimedBatch:
        """The messages of a claim."""
        return read_batch(self._transport.claim_reader, claim)

    def read_first(self, claim: Claim) -> ClaimedBatch:
        """The first message of a claim, if it can be read."""
        rows = read_rows(self._transport.claim_reader, claim, [claim.first_row_version])
        return ClaimedBatch(claim, rows, ())

    def rehearse(self, batch: ClaimedBatch) -> None:
        """Transform a batch and write nothing; raises what the transform raises."""
        self._transformer.transform(batch, self._context.sending())

    def take(self, batch: ClaimedBatch) -> None:
        """End a claim before its messages are processed: from here on nothing but this process knows them."""
        self._complete(batch, ())

    def work(self, batch: ClaimedBatch) -> BatchReport:
        """Transform a batch and write everything that comes of it."""
        sending = self._context.sending()
        with self._context.subscribers_named(sending):
            return self._work(batch, sending)

    def _work(self, batch: ClaimedBatch, sending: Sending) -> BatchReport:
        mode, started, clock = self._pipeline.transaction_mode, datetime.now(UTC), Clock()
        results = self._transformer.transform(batch, sending)
        transformed = clock.lap()
        reasons = reasons_of(results.failures, self._context.place)
        refused = refused_among(self._pipeline.name, batch.messages, reasons)
        errors = self._context.copies(batch.messages.filter(refused), reasons)
        done = batch.messages.filter(pc.invert(refused))
        ready = [*results.ready, *errors.ready, *self._confirmations(done, started)]
        if mode in (TransactionMode.UNRELIABLE, TransactionMode.RECEIVE_ONLY):
            self._transport.dispatch_columns(ready)
            ready = []
        if mode is not TransactionMode.UNRELIABLE:
            self._complete(batch, ready, self._context.own_tables(results.tables), errors.marks)
        return driver_report(batch, errors, clock, results, transformed)

    def give_up(
        self,
        batch: ClaimedBatch,
        failure: Failure,
        retry: Retry = lambda _: None,
    ) -> BatchReport:
        """End a batch whose messages all failed: each is tried again later, or goes to the error queue."""
        clock = Clock()
        copies = self._context.copies(batch.messages, same_reason(batch.messages, failure), retry)
        if self._pipeline.transaction_mode is TransactionMode.UNRELIABLE:
            self._transport.dispatch_columns(copies.ready)
        else:
            self._complete(batch, copies.ready, marks=copies.marks)
        return driver_report(batch, copies, clock)

    def give_up_unread(self, claim: Claim, failure: Failure) -> BatchReport:
        """End a batch of one message that cannot be read: the database moves it to the error queue as it is."""
        clock, version = Clock(), claim.first_row_version
        batch = ClaimedBatch(
            claim, SCHEMA.empty_table(), [Unreadable(version, f"row version {version}", failure.message)]
        )
        self._complete(batch, ())
        return driver_report(batch, FailedCopies((), (), 0), clock)

    def _complete(
        self,
        batch: ClaimedBatch,
        ready: Sequence[MessageColumns],
        work: Callable[[Connection], None] | None = None,
        marks: Sequence[FailedRow] = (),
    ) -> None:
        dead_letters = [row.row_version for row in batch.unreadable]
        self._transport.claims.complete(
            batch.claim, (), work, ready=ready, dead_letters=dead_letters, marks=marks, read=batch.read
        )

    def _confirmations(self, messages: Table, started: datetime) -> list[MessageColumns]:
        """What is sent about messages that were processed: to the audit queue, and to whoever retried them."""
        pipeline, now = self._pipeline, datetime.now(UTC)
        confirmed = acknowledgements(messages, now, pipeline.endpoint_name)
        if pipeline.audit_queue is None:
            return confirmed
        audited = audit_copies(
            pipeline.audit_queue, messages, started, now, pipeline.endpoint_name, pipeline.audit_time_to_live
        )
        return [*confirmed, audited]
