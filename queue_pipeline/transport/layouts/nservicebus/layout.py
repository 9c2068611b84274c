"""The layout of the NServiceBus SQL transport: its roles, made from what they need."""

from __future__ import annotations

from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.failed.failed_messages import FailedMessages
from queue_pipeline.transport.layouts.layout import Layout
from queue_pipeline.transport.layouts.nservicebus.claim_rows import NServiceBusClaimRows
from queue_pipeline.transport.layouts.nservicebus.delayed import DelayedMover
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder
from queue_pipeline.transport.layouts.nservicebus.receiving import NServiceBusReceiver
from queue_pipeline.transport.layouts.nservicebus.rows import NServiceBusRows
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscriptions
from queue_pipeline.transport.layouts.nservicebus.tables import NServiceBusTables
from queue_pipeline.transport.messages.event import Event
from queue_pipeline.transport.send import Sender


def nservicebus_layout(
    database: Database,
    book: AddressBook,
    rows: NServiceBusRows,
    sender: Sender,
    subscriptions: Subscriptions,
    failed: FailedMessages,
    error_queue: str,
) -> Layout:
    """What the tables of the NServiceBus SQL transport mean on one database."""
    forwarder = Forwarder(database, book, sender, error_queue)

    def subscribers(queue: QueueTable, event: Event) -> tuple[str, ...]:
        return subscriptions.subscribers(event.topics)

    return Layout(
        rows=rows,
        claims=NServiceBusClaimRows(database, ClaimTable(database, book), forwarder),
        receiving=NServiceBusReceiver(database, forwarder),
        delayed=DelayedMover(database, book, forwarder),
        tables=NServiceBusTables(database, book),
        failures=failed,
        subscribers=subscribers,
        keeps_failed=False,
        retry_seconds=None,
    )
