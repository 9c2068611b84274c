"""One batch from claim to completion, whichever backend computes it: everything is written in one transaction."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from queue_pipeline.processing.batch.backend import Backend, Processed, route
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch, Unreadable
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.local import LocalBackend
from queue_pipeline.processing.batch.report import BatchReport, Clock, report_of
from queue_pipeline.processing.batch.sending import BatchContext, Retry, never
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.batch.transformer import Transformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.failed_copies import FailedCopies, same_reason, with_place
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages.message import TransactionMode
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.transport import QueueTransport

if TYPE_CHECKING:
    from sqlalchemy import Connection

NO_COPIES = FailedCopies((), (), 0)


class BatchProcessor:
    """Processes claims of one pipeline; safe to use from several threads."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        transformer: Transformer,
        executors: Executors | None = None,
    ) -> None:
        """Without `executors` every batch is computed by the local backend."""
        self._pipeline = pipeline
        self._mode = pipeline.transaction_mode
        self._transport = transport
        self._context = BatchContext(pipeline, transport)
        self._transformer = transformer
        self._executors = executors
        self.local = LocalBackend(pipeline, transport, transformer)
        """The backend that reads claims whole."""

    @functools.cached_property
    def backend(self) -> Backend:
        """The backend of the run, chosen at the first batch: an empty queue starts no Spark to ask for its master."""
        if self._executors is None:
            return self.local
        name = route(
            self._pipeline,
            self._executors.master,
            is_reachable=self._transport.settings is not None,
            has_many_writers=self._transport.database.dialect.locks_rows,
        )
        return self._executors if name == "executors" else self.local

    def process(self, batch: ClaimedBatch) -> BatchReport:
        """Compute a batch and write everything that comes of it."""
        sending, clock = self._context.sending(), Clock()
        with self._context.subscribers_named(sending):
            processed = self.backend.process(batch, sending)
            computed = clock.lap()
            copies = self._context.copies(processed.failed, with_place(processed.failures, self._context.place))
            self._write(processed, copies)
        return report_of(processed, copies, clock, computed)

    def probe(self, sample: ClaimedBatch | None) -> Exception | None:
        """The error of the transform on a message that was processed before, or on none; nothing is written."""
        if sample is None:
            return self._transformer.probe()
        try:
            self._transformer.transform(sample, self._context.sending())
        except Exception as error:
            return error
        return None

    def take(self, batch: ClaimedBatch) -> None:
        """End a claim before its messages are processed: from here on only this process has them."""
        self._complete(_nothing_of(batch), ())

    def give_up(self, batch: ClaimedBatch, failure: Failure, retry: Retry = never) -> BatchReport:
        """End a batch whose messages all failed: each is tried again later, or goes to the error queue."""
        clock = Clock()
        copies = self._context.copies(batch.messages, same_reason(batch.messages, failure), retry)
        processed = _nothing_of(batch)
        if self._mode is TransactionMode.UNRELIABLE:
            self._transport.dispatch_columns(copies.ready)
        else:
            self._complete(processed, copies.ready, copies)
        return report_of(processed, copies, clock)

    def give_up_unread(self, claim: Claim, failure: Failure) -> BatchReport:
        """End a batch of one message that cannot be read: the database moves it to the error queue unchanged."""
        clock, version = Clock(), claim.first_row_version
        unreadable = [Unreadable(version, f"row version {version}", failure.message)]
        processed = _nothing_of(ClaimedBatch(claim, SCHEMA.empty_table(), unreadable))
        self._complete(processed, ())
        return report_of(processed, NO_COPIES, clock)

    def _write(self, processed: Processed, copies: FailedCopies) -> None:
        """Write all that came of a batch. Staged results become visible with the completion in every mode."""
        messages = [*processed.results, *copies.ready, *processed.confirmations]
        sends_first = self._mode is TransactionMode.RECEIVE_ONLY and processed.backend == "local"
        if sends_first or self._mode is TransactionMode.UNRELIABLE:
            self._transport.dispatch_columns(messages)
            messages = []
        if self._mode is not TransactionMode.UNRELIABLE:
            self._complete(processed, messages, copies, self._context.own_tables(processed.tables))

    def _complete(
        self,
        processed: Processed,
        messages: Sequence[MessageColumns],
        copies: FailedCopies = NO_COPIES,
        work: Callable[[Connection], None] | None = None,
    ) -> None:
        self._transport.claims.complete(
            Completion(
                processed.claim,
                (),
                work,
                sends=messages,
                unreadable=[row.row_version for row in processed.unreadable],
                staged=processed.staged,
                failed=copies.marks,
                read=processed.read,
            )
        )


def _nothing_of(batch: ClaimedBatch) -> Processed:
    return Processed(
        claim=batch.claim,
        backend="local",
        read=batch.read,
        failed=SCHEMA.empty_table(),
        times=SentTimes.of_messages(batch.messages),
        unreadable=batch.unreadable,
        read_seconds=batch.read_seconds,
    )
