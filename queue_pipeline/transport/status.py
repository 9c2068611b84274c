"""Status: a queue's figures for people and dashboards."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.address import QueueAddress
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import AddressError, QueueNotFoundError, TableNotFoundError
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.layouts.nginn.rows import is_nginn
from queue_pipeline.transport.queues import CLAIMS_TABLE, DELAYED_SUFFIX, AddressBook, QueueTable

DEFAULT_MOST_COUNTED = 1_000_000
_Claims: TypeAlias = tuple[int | None, int | None, int | None]


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


class StatusReader:
    """Reads the figures of queues, and finds which queues there are."""

    def __init__(self, database: Database, book: AddressBook, nginn: NGinnQueues) -> None:
        self._database = database
        self._book = book
        self._nginn = nginn

    def queues(self) -> list[QueueTable]:
        """Every table in the default schema that has the shape of a queue."""
        here = self._book.own(CLAIMS_TABLE)
        command = self._database.dialect.statement("nservicebus/queue.discover", queue=here)
        rows = self._database.run(lambda own: own.rows(command, schema=here.schema or ""), write=False)
        found: list[QueueTable] = []
        for (name,) in rows:
            # A table that no address can name is no queue, whatever its shape.
            with contextlib.suppress(AddressError):
                found.append(self._book.resolve(QueueAddress(str(name), here.schema, here.catalog)))
        return [*found, *self._nginn.queues()]

    def status(self, queue: QueueTable, most_counted: int = DEFAULT_MOST_COUNTED) -> QueueStatus:
        """The figures of one queue."""
        if is_nginn(queue):
            return self._in_place(queue, most_counted)
        return self._database.run(lambda own: self._read(own, queue, most_counted), write=False)

    def issued(self, queue: QueueTable) -> int | None:
        """The last number that a queue gave to a message, which counts arrivals; None where that is not known."""
        if is_nginn(queue):
            return None
        command = self._database.dialect.statement("nservicebus/queue.issued", queue=queue)
        try:
            found = self._database.run(lambda own: own.rows(command), write=False)
        except (QueueNotFoundError, TableNotFoundError):
            # A SQLite database in which no table counts.
            return None
        return None if not found or found[0][0] is None else int(found[0][0])

    def _read(self, transaction: Transaction, queue: QueueTable, most: int) -> QueueStatus:
        dialect = self._database.dialect
        row = transaction.rows(dialect.statement(f"{queue.layout}/queue.status", queue=queue), limit=most)[0]
        pending, expired, oldest_headers, now_milliseconds = row
        delayed_table = self._book.sibling(queue, DELAYED_SUFFIX)
        delayed = next_due = None
        if self._exists(transaction, delayed_table):
            command = dialect.statement(f"{queue.layout}/queue.count_delayed", queue=queue, delayed=delayed_table)
            delayed, next_due = transaction.rows(command, limit=most)[0]
        return QueueStatus(
            queue.canonical,
            int(pending),
            int(pending) >= most,
            _age_seconds(oldest_headers, int(now_milliseconds)),
            int(expired),
            delayed,
            None if next_due is None else next_due / 1000,
            *self._claims(transaction, queue),
        )

    def _in_place(self, queue: QueueTable, most: int) -> QueueStatus:
        """The figures of an NGinn queue: all its messages are in one table."""
        figures = self._nginn.figures(queue)
        dialect = self._database.dialect

        def look(own: Transaction) -> tuple[Any, Any, _Claims]:
            claimed = self._book.claim_tables(queue).claimed
            status = own.rows(dialect.statement("nginn/queue.status", queue=queue), limit=most)[0]
            delayed = None
            if self._exists(own, claimed):
                command = dialect.statement("nginn/queue.count_delayed", queue=queue, claimed=claimed)
                delayed = own.rows(command, limit=most)[0]
            return status, delayed, self._claims(own, queue)

        (pending, oldest), delayed, claims = self._database.run(look, write=False)
        waiting, next_due = delayed or (figures.scheduled, None)
        return QueueStatus(
            queue.canonical,
            int(pending),
            int(pending) >= most,
            None if oldest is None else max(0.0, float(oldest) / 1000),
            0,
            int(waiting),
            None if next_due is None else float(next_due) / 1000,
            *claims,
            figures.processed,
            figures.failed,
            figures.latency_milliseconds,
        )

    def _claims(self, transaction: Transaction, queue: QueueTable) -> _Claims:
        """Claims of a queue, their messages, and how many have no holder; None where claims are not installed."""
        table = self._book.own(CLAIMS_TABLE)
        if not self._exists(transaction, table):
            return None, None, None
        command = replace(self._database.dialect.statement("claims.totals", claims=table), queue=queue.canonical)
        claims, claimed, abandoned = transaction.rows(command, queue=queue.canonical)[0]
        return int(claims), int(claimed), int(abandoned)

    def _exists(self, transaction: Transaction, table: QueueTable) -> bool:
        return bool(transaction.rows(self._database.dialect.statement("schema.exists", queue=table)))


def _age_seconds(header_text: str | None, now_milliseconds: int) -> float | None:
    try:
        sent = wire.parse_timestamp(wire.decode(header_text).get(wire.TIME_SENT, ""))
    except ValueError:
        return None
    now = datetime.fromtimestamp(now_milliseconds / 1000, UTC)
    return max(0.0, round((now - sent).total_seconds(), 3))
