"""Time that has passed without a wait: leases that have expired, delays that are due."""

from __future__ import annotations

from queue_pipeline.transport.addresses.queues import CLAIMS_TABLE, DELAYED_SUFFIX, SLOTS_TABLE
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import Backend


def end_leases(backend: Backend, transport: QueueTransport, owner: str) -> None:
    """Let the leases of an owner expire, those of its claims and those of its slots."""
    past = {
        "sqlite": "LeaseUntil = 0",
        "postgresql": "lease_until = now() - interval '1 second'",
        "sqlserver": "LeaseUntil = DATEADD(second, -1, SYSUTCDATETIME())",
    }[backend.name]
    for table in (CLAIMS_TABLE, SLOTS_TABLE):
        backend.sql(transport, f"UPDATE {transport.book.own(table).qualified} SET {past} WHERE Owner = ?", (owner,))


def end_delays(backend: Backend, transport: QueueTransport, queue: str = "orders") -> None:
    """Let all delayed messages of a queue be due; the next look moves them."""
    past = {
        "sqlite": "Due = 0",
        "postgresql": "due = now() - interval '1 second'",
        "sqlserver": "Due = DATEADD(second, -1, GETUTCDATE())",
    }[backend.name]
    delayed = transport.book.sibling(transport.resolve(queue), DELAYED_SUFFIX)
    backend.sql(transport, f"UPDATE {delayed.qualified} SET {past}")
