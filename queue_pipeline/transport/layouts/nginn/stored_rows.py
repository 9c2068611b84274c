"""Rows of NGinn queues as every layout has to give and take them: to be sent, read in a claim, and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from queue_pipeline.transport.browsed import BrowsedMessage
from queue_pipeline.transport.database.dialect import Dialect, Row
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nginn.browsed_rows import browsed_row
from queue_pipeline.transport.layouts.nginn.rows import StoredRow, claimed_row, message_headers, row_id, written
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.sorting import RowSummary, sort_rows
from queue_pipeline.transport.layouts.nginn.text import without_half
from queue_pipeline.transport.peek import Shown
from queue_pipeline.transport.queues import ClaimTables, QueueTable


class NGinnRows:
    """Headers and types in columns, the body as text; what is due later waits in the same table."""

    def __init__(self, dialect: Dialect, settings: NGinnSettings) -> None:
        self._dialect = dialect
        self._settings = settings

    def delayed_table(self, destination: QueueTable) -> QueueTable:
        """The queue itself."""
        return destination

    def encode(
        self, transaction: Transaction, table: QueueTable, rows: Iterator[Row], *, delayed: bool
    ) -> Iterator[Row]:
        """The headers become a JSON text of the columns, the body gets its type."""
        return written(rows, table, self._settings)

    def check(self, table: QueueTable, rows: Iterator[Row]) -> None:
        """Encode every row once: a header, or a body that is no JSON object, may be refused."""
        for _ in written(rows, table, self._settings):
            pass

    def read(
        self, transaction: Transaction, tables: ClaimTables, values: Mapping[str, Any], *, body: bool = True
    ) -> Sequence[Sequence[Any]]:
        """Claimed messages in the form of NServiceBus's."""
        name = "nginn/claimed.read" if body else "nginn/claimed.read_headers"
        command = self._dialect.statement(name, queue=tables.queue, claimed=tables.claimed)
        rows: Sequence[Any] = transaction.rows(command, **values)
        queue = tables.queue.canonical
        if body:
            return [claimed_row(queue, row, self._settings) for row in rows]
        # The last column is the beginning of the text.
        beginnings = ((*row[:-1], without_half(row[-1])) for row in rows)
        found = (claimed_row(queue, row, self._settings) for row in beginnings)
        return [(*row[:3], None, *row[4:]) for row in found]

    def show(self, transaction: Transaction, queue: QueueTable, limit: int) -> list[Shown]:
        """The oldest messages, left where they are."""
        command = self._dialect.statement("nginn/queue.show", queue=queue)
        return [self._shown(queue, row) for row in transaction.rows(command, limit=limit)]

    def browse(
        self, transaction: Transaction, queue: QueueTable, after: int, limit: int, *, failed: bool
    ) -> Sequence[BrowsedMessage]:
        """A page of subqueue F, or of the messages that wait."""
        command = self._dialect.statement(f"nginn/queue.{'failed_browse' if failed else 'browse'}", queue=queue)
        rows = transaction.rows(command, after=after, limit=limit)
        return [browsed_row(queue, row, self._settings, failed=failed) for row in rows]

    def _shown(self, queue: QueueTable, row: Any) -> Shown:
        *values, now = row
        stored = StoredRow(*values)
        found = sort_rows([RowSummary(stored.id, "", stored.headers, stored.text, now)], queue, None)
        headers = None if found.refused else message_headers(queue.canonical, stored, self._settings)
        body = (stored.text or "").encode()
        return Shown(
            row_id(queue.canonical, stored), stored.id, bool(found.expired), headers, stored.headers or "", body
        )
