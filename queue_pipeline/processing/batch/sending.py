"""What the batches of a pipeline have in common, on both backends: what is sent for them, and about them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import DelayedRetry
from queue_pipeline.processing.results.envelopes import Publication, Sending
from queue_pipeline.processing.results.failed_copies import Consumer, FailedCopies, failed_copies, failed_in_place
from queue_pipeline.transport.addresses.queues import NSERVICEBUS, layout_of
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.failed.stack_frames import frame_of
from queue_pipeline.transport.messages.event import Event
from queue_pipeline.transport.messages.message import TransactionMode
from queue_pipeline.transport.operations.user_table_sql import TableRows
from queue_pipeline.transport.transport import QueueTransport

if TYPE_CHECKING:
    from sqlalchemy import Connection

Retry = Callable[[Mapping[str, str]], DelayedRetry | None]
"""The next retry of a message, by its headers; None: it goes to the error queue."""


def never(_: Mapping[str, str]) -> DelayedRetry | None:
    """No message is tried again."""
    return None


def sending_of(pipeline: QueuePipeline, canonical: Callable[[str], str], events: Mapping[str, Publication]) -> Sending:
    """What all results of a batch that begins now have in common; `canonical` is the address that peers know."""
    outputs = pipeline.output_queues
    return Sending(
        pipeline=pipeline.name,
        endpoint=pipeline.endpoint_name,
        reply_to=canonical(pipeline.reply_to or pipeline.input_queue),
        canonical={output.queue: canonical(output.queue) for output in outputs},
        message_types={output.queue: output.message_type for output in outputs if output.message_type},
        content_types={output.queue: output.content_type for output in outputs},
        times_to_live={output.queue: output.time_to_live for output in outputs if output.time_to_live},
        events=events,
    )


class BatchContext:
    """A pipeline on a database."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport) -> None:
        self.pipeline = pipeline
        self.transport = transport
        self.place = frame_of(pipeline.transform)
        """The transform, as a frame: messages that it refuses failed there."""

    def sending(self) -> Sending:
        """What all results of a batch that begins now have in common."""
        return sending_of(
            self.pipeline,
            lambda queue: self.transport.resolve(queue).canonical,
            {event.name: self._publication(event) for event in self.pipeline.publishes},
        )

    @contextlib.contextmanager
    def subscribers_named(self, sending: Sending) -> Iterator[None]:
        """Report a subscriber whose queue is missing as a SubscriberError: no message causes that."""
        topics = [topic for event in self.pipeline.publishes for topic in event.topics]
        subscribers = [address for publication in sending.events.values() for address in publication.subscribers]
        publisher, others = self.pipeline.input_queue, [one for one in subscribers if layout_of(one) == NSERVICEBUS]
        with (
            self.transport.nginn.subscriptions.named(publisher, set(subscribers) - set(others)),
            self.transport.subscriptions.named(topics, others),
        ):
            yield

    def _publication(self, event: Event) -> Publication:
        """An event's subscribers, as the layout of the publisher's queue keeps them."""
        queue = self.transport.resolve(self.pipeline.input_queue)
        subscribers = self.transport.layouts.of(queue).subscribers(queue, event)
        return Publication(event.enclosed_types, subscribers, event.content_type)

    def copies(self, messages: Table, reasons: Mapping[int, Failure], retry: Retry = never) -> FailedCopies:
        """What is written for messages that failed, each for its own reason."""
        queue = self.transport.resolve(self.pipeline.input_queue)
        keeps_failed = self.transport.layouts.of(queue).keeps_failed
        if keeps_failed and self.pipeline.transaction_mode is not TransactionMode.UNRELIABLE:
            return failed_in_place(messages, reasons, retry)
        consumer = Consumer(self.pipeline.endpoint_name, self.pipeline.input_queue, self.pipeline.error_queue)
        return failed_copies(consumer, queue.canonical, messages, reasons, datetime.now(UTC), retry)

    def own_tables(self, tables: Sequence[TableRows]) -> Callable[[Connection], None] | None:
        """The work of a completing transaction: rows for the user's own tables."""
        if not tables:
            return None

        def write(connection: Connection) -> None:
            for rows in tables:
                self.transport.user_tables.write(connection, rows)

        return write
