"""A queue of the NServiceBus SQL transport for operators: its figures, its expired messages, its indexes."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from queue_pipeline.errors import AddressError, QueueNotFoundError, TableNotFoundError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import CLAIMS_TABLE, DELAYED_SUFFIX, NSERVICEBUS, AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.index_audit.audit import IndexAuditor
from queue_pipeline.transport.inspection.status import QueueStatus, claim_totals
from queue_pipeline.transport.messages import headers as wire


class NServiceBusTables:
    """The queue's table, and the delayed one beside it."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book
        auditor = IndexAuditor(database, book)
        self.audit = auditor.audit
        self.missing_indexes = auditor.missing_indexes

    def discover(self) -> list[QueueTable]:
        """Every table in the default schema that has the shape of a queue."""
        here = self._book.own(CLAIMS_TABLE)
        command = self._database.dialect.statement(f"{NSERVICEBUS}/queue.discover", queue=here)
        rows = self._database.rows(command, schema=here.schema or "")
        found: list[QueueTable] = []
        for (name,) in rows:
            # A table that no address can name is no queue, whatever its shape.
            with contextlib.suppress(AddressError):
                found.append(self._book.resolve(QueueAddress(str(name), here.schema, here.catalog)))
        return found

    def status(self, queue: QueueTable, most_counted: int) -> QueueStatus:
        """The figures of the queue and of its delayed table."""
        return self._database.run(lambda own: self._read(own, queue, most_counted), write=False)

    def issued(self, queue: QueueTable) -> int | None:
        """The last row version that the queue's table gave to a row."""
        command = self._database.dialect.statement(f"{queue.layout}/queue.issued", queue=queue)
        try:
            found = self._database.rows(command)
        except (QueueNotFoundError, TableNotFoundError):
            # A SQLite database in which no table counts.
            return None
        return None if not found or found[0][0] is None else int(found[0][0])

    def purge(self, queue: QueueTable, batch: int) -> int:
        """Delete a batch of expired messages, passing over rows that a receiver holds; returns how many."""
        command = self._database.dialect.statement(f"{queue.layout}/queue.purge", queue=queue)
        return self._database.count(command, limit=batch)

    def _read(self, transaction: Transaction, queue: QueueTable, most: int) -> QueueStatus:
        dialect = self._database.dialect
        command = dialect.statement(f"{queue.layout}/queue.status", queue=queue)
        pending, expired, oldest_headers, now_milliseconds = transaction.rows(command, limit=most)[0]
        delayed_table = self._book.sibling(queue, DELAYED_SUFFIX)
        delayed = next_due = None
        if transaction.rows(dialect.statement("schema.exists", queue=delayed_table)):
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
            *claim_totals(transaction, dialect, self._book, queue),
        )


def _age_seconds(header_text: str | None, now_milliseconds: int) -> float | None:
    try:
        sent = wire.parse_timestamp(wire.decode(header_text).get(wire.TIME_SENT, ""))
    except ValueError:
        return None
    now = datetime.fromtimestamp(now_milliseconds / 1000, UTC)
    return max(0.0, round((now - sent).total_seconds(), 3))
