"""Between messages and the rows of the NServiceBus SQL transport."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from queue_pipeline.transport.addresses.queues import DELAYED_SUFFIX, AddressBook, ClaimTables, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL, Row
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.inspection.conditions import NSERVICEBUS_COLUMNS, Page, with_conditions
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import from_row

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


class NServiceBusRows:
    """Headers as one JSON text, the body as bytes; what is due later waits in a table of its own."""

    def __init__(self, database: Database, book: AddressBook, endpoint: str | None) -> None:
        self._database = database
        self._book = book
        self._endpoint = endpoint

    def delayed_table(self, destination: QueueTable) -> QueueTable:
        """The sending endpoint's own delayed table; a program without an endpoint uses the destination's."""
        owner = self._book.resolve(self._endpoint) if self._endpoint else destination
        return self._book.sibling(owner, DELAYED_SUFFIX)

    def encode(
        self, transaction: Transaction, table: QueueTable, rows: Iterator[Row], *, delayed: bool
    ) -> Iterator[Row]:
        """The rows unchanged, but for tables that are so old that headers have to be ASCII."""
        if not delayed and self._database.shapes.has_ascii_headers(transaction, table):
            return (row._replace(headers=wire.to_ascii(row.headers)) for row in rows)
        return rows

    def check(self, table: QueueTable, rows: Iterator[Row]) -> None:
        """Nothing more: any message that passed the checks of every message can be stored."""

    def read(
        self, transaction: Transaction, tables: ClaimTables, values: Mapping[str, Any], *, body: bool = True
    ) -> Sequence[Sequence[Any]]:
        """Claimed messages as they are stored."""
        name = f"{tables.queue.layout}/claim_messages.{'read' if body else 'read_headers'}"
        command = self._database.dialect.statement(name, queue=tables.queue, claimed=tables.claimed)
        return transaction.read(command, **values)

    def show(self, transaction: Transaction, queue: QueueTable, limit: int) -> Sequence[BrowsedMessage]:
        """The oldest messages, left where they are."""
        return self.browse(transaction, queue, Page(BEFORE_ALL, limit), failed=False)

    def browse(
        self, transaction: Transaction, queue: QueueTable, page: Page, *, failed: bool
    ) -> Sequence[BrowsedMessage]:
        """A page of a queue, which may be an error queue."""
        command = self._database.shapes.statement(transaction, "nservicebus/queue.browse", queue, "q")
        command, values = with_conditions(command, page.conditions, NSERVICEBUS_COLUMNS, self._database.dialect)
        bounds = {"after": page.after, "limit": page.limit, "with_body": int(page.with_body)}
        return [browsed_row(row) for row in transaction.rows(command, **bounds, **values)]


def browsed_row(row: Sequence[Any]) -> BrowsedMessage:
    """The message of a row of section `browse`."""
    row_id, row_version, expired, header_text, body, *version_1, expires, size = row
    expiry = None if expires is None else BEGINNING + timedelta(milliseconds=int(expires))
    try:
        headers, problem = from_row(row_id, row_version, header_text, None, *version_1).headers, None
    except ValueError as error:
        headers, problem = {}, str(error)
    identity, content = str(row_id).lower(), bytes(body or b"")
    return BrowsedMessage(
        identity, int(row_version), headers, content, bool(expired), problem, expiry, header_text, int(size)
    )
