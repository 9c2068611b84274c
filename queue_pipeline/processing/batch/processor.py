"""One batch from claim to completion, whichever backend computes it: everything is written in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.batch.backend import Backend, Processed, route
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, ClaimedBatch, Unreadable
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.local import LocalBackend
from queue_pipeline.processing.batch.report import BatchReport, Clock, report_of
from queue_pipeline.processing.batch.sent_times import SentTimes
from queue_pipeline.processing.batch.transformer import Transformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.envelopes import Publication, Sending, sending_of
from queue_pipeline.processing.results.failed_copies import (
    Consumer,
    FailedCopies,
    Retry,
    failed_copies,
    failed_in_place,
    never,
    same_reason,
    with_place,
)
from queue_pipeline.processing.results.table_rows import write_tables
from queue_pipeline.transport.addresses.queues import NSERVICEBUS, layout_of
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.failed.stack_frames import frame_of
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
        self._place = frame_of(pipeline.transform)
        self._transformer = transformer
        self._executors = executors
        self.local = LocalBackend(pipeline, transport, transformer)
        """The backend that reads claims whole."""

    @cached_property
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
        sending, clock = self._sending(), Clock()
        with self._subscribers_named(sending):
            processed = self.backend.process(batch, sending)
            computed = clock.lap()
            # A message that the transform refused failed there.
            copies = self._copies(processed.failed, with_place(processed.failures, self._place))
            self._write(processed, copies)
        return report_of(processed, copies, clock, computed)

    def probe(self, sample: ClaimedBatch | None) -> Exception | None:
        """The error of the transform on a message that was processed before, or on none; nothing is written."""
        if sample is None:
            return self._transformer.probe()
        try:
            self._transformer.transform(sample, self._sending())
        except Exception as error:
            return error
        return None

    def take(self, batch: ClaimedBatch) -> None:
        """End a claim before its messages are processed: from here on only this process has them."""
        self._complete(_nothing_of(batch), ())

    def give_up(self, batch: ClaimedBatch, failure: Failure, retry: Retry = never) -> BatchReport:
        """End a batch whose messages all failed: each is tried again later, or goes to the error queue."""
        clock = Clock()
        copies = self._copies(batch.messages, same_reason(batch.messages, failure), retry)
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

    def _sending(self) -> Sending:
        """What all results of a batch that begins now have in common."""
        pipeline, resolve = self._pipeline, self._transport.resolve
        queue = resolve(pipeline.input_queue)
        layout = self._transport.layouts.of(queue)
        events = {
            event.name: Publication(event.enclosed_types, layout.subscribers(queue, event), event.content_type)
            for event in pipeline.publishes
        }
        return sending_of(pipeline, lambda name: resolve(name).canonical, events)

    @contextlib.contextmanager
    def _subscribers_named(self, sending: Sending) -> Iterator[None]:
        """Report a subscriber whose queue is missing as a SubscriberError: no message causes that."""
        topics = [topic for event in self._pipeline.publishes for topic in event.topics]
        subscribers = {address for publication in sending.events.values() for address in publication.subscribers}
        own = [address for address in subscribers if layout_of(address) == NSERVICEBUS]
        with (
            self._transport.nginn.subscriptions.named(self._pipeline.input_queue, subscribers.difference(own)),
            self._transport.subscriptions.named(topics, own),
        ):
            yield

    def _copies(self, messages: Table, reasons: Mapping[int, Failure], retry: Retry = never) -> FailedCopies:
        """What is written for messages that failed, each for its own reason."""
        pipeline, queue = self._pipeline, self._transport.resolve(self._pipeline.input_queue)
        if self._transport.layouts.of(queue).keeps_failed and self._mode is not TransactionMode.UNRELIABLE:
            return failed_in_place(messages, reasons, retry)
        consumer = Consumer(pipeline.endpoint_name, pipeline.input_queue, pipeline.error_queue)
        return failed_copies(consumer, queue.canonical, messages, reasons, datetime.now(UTC), retry)

    def _write(self, processed: Processed, copies: FailedCopies) -> None:
        """Write all that came of a batch. Staged results become visible with the completion in every mode."""
        messages = [*processed.results, *copies.ready, *processed.confirmations]
        sends_first = self._mode is TransactionMode.RECEIVE_ONLY and processed.backend == "local"
        if sends_first or self._mode is TransactionMode.UNRELIABLE:
            self._transport.dispatch_columns(messages)
            messages = []
        if self._mode is not TransactionMode.UNRELIABLE:
            tables = partial(write_tables, self._transport, processed.tables) if processed.tables else None
            self._complete(processed, messages, copies, tables)

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
