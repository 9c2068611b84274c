"""The layout of NGinn.MessageBus: its roles, made from what they need."""

from __future__ import annotations

from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.event import Event
from queue_pipeline.transport.layouts.layout import Layout
from queue_pipeline.transport.layouts.nginn.claim_rows import NGinnClaimRows
from queue_pipeline.transport.layouts.nginn.delayed import NGinnDelayed
from queue_pipeline.transport.layouts.nginn.failures import NGinnFailures
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.layouts.nginn.stored_rows import NGinnRows
from queue_pipeline.transport.layouts.nginn.tables import NGinnTables
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscriptions
from queue_pipeline.transport.queues import AddressBook, QueueTable


def nginn_layout(
    database: Database, book: AddressBook, rows: NGinnRows, queues: NGinnQueues, subscriptions: Subscriptions
) -> Layout:
    """What the tables of NGinn.MessageBus mean on one database."""

    def subscribers(queue: QueueTable, event: Event) -> tuple[str, ...]:
        """Those in the table that all share, and those in NGinn's own, by the publisher's queue."""
        own = queues.subscriptions.subscribers(queue.canonical, event.name, event.topics)
        return (*subscriptions.subscribers(event.topics), *own)

    return Layout(
        rows=rows,
        claims=NGinnClaimRows(database, book, ClaimTable(database, book), queues.incoming),
        receiving=queues.receiver,
        delayed=NGinnDelayed(database, book),
        tables=NGinnTables(database, book, queues),
        failures=NGinnFailures(queues),
        subscribers=subscribers,
        keeps_failed=True,
        retry_seconds=book.nginn.retry_seconds,
    )
