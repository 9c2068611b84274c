"""Status: a queue's figures for people and dashboards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from queue_pipeline.transport.addresses.queues import CLAIMS_TABLE, AddressBook, QueueTable
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.transaction import Transaction

MOST_COUNTED = 1_000_000


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """One queue now. Counts stop at a limit; figures of tables that were not installed are None.

    The age is that of the oldest message by the time that its sender wrote into it: the table itself keeps none.
    """

    queue: str
    pending: int
    capped: bool
    oldest_seconds: float | None
    expired: int
    delayed: int | None
    next_due_seconds: float | None
    claims: int | None
    claimed: int | None
    abandoned_claims: int | None
    processed: int | None = None
    """Messages of an NGinn queue that were processed and are still kept."""
    failed: int | None = None
    """Messages of an NGinn queue that failed for good."""
    latency_milliseconds: float | None = None
    """The average time from due to processed in an NGinn queue, over the last five minutes."""


class ClaimTotals(NamedTuple):
    """Claims of a queue, their messages, and how many have no holder; None where claims are not installed."""

    claims: int | None = None
    claimed: int | None = None
    abandoned: int | None = None


def claim_totals(transaction: Transaction, dialect: Dialect, book: AddressBook, queue: QueueTable) -> ClaimTotals:
    """What is in work on a queue."""
    table = book.own(CLAIMS_TABLE)
    if not transaction.rows(dialect.statement("schema.exists", queue=table)):
        return ClaimTotals()
    command = replace(dialect.statement("claim_table.totals", claims=table), queue=queue.canonical)
    return ClaimTotals(*map(int, transaction.rows(command, queue=queue.canonical)[0]))
