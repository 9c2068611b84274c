"""Send: many messages to many queues in one transaction, a few statements a thousand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.address import QueueAddress
from queue_pipeline.transport.addressing import DELAYED_SUFFIX, AddressBook, QueueTable
from queue_pipeline.transport.database import Database, Transaction
from queue_pipeline.transport.dialect import Row
from queue_pipeline.transport.messages import Operation, OutgoingMessage, check, to_row

Resolver: TypeAlias = Callable[[str | QueueAddress | QueueTable], QueueTable]


class Sender:
    """Writes messages into queue tables, and delayed ones into a `.Delayed` table."""

    def __init__(self, database: Database, book: AddressBook, endpoint: str | None = None) -> None:
        self._database = database
        self._book = book
        self._endpoint = endpoint

    def send(
        self,
        destination: str | QueueAddress | QueueTable,
        messages: OutgoingMessage | Iterable[OutgoingMessage],
        transaction: Transaction | None = None,
    ) -> int:
        """Send one or many messages to one queue, in the given transaction or in one of its own."""
        batch = [messages] if isinstance(messages, OutgoingMessage) else list(messages)
        return self.dispatch([Operation(destination, message) for message in batch], transaction)

    def dispatch(self, operations: Iterable[Operation], transaction: Transaction | None = None) -> int:
        """Send messages to several queues, all or none; returns how many rows were written.

        Everything is checked before the first row is written.
        """
        prepared = self.prepare(operations)
        if transaction is not None:
            return self.write(transaction, prepared)
        return self._database.run(lambda own: self.write(own, prepared)) if prepared else 0

    def prepare(self, operations: Iterable[Operation]) -> list[tuple[QueueTable, bool, list[Row]]]:
        """Check, deduplicate and group messages: per table, whether it is a delayed table, and its rows."""
        groups: dict[tuple[QueueTable, bool], list[Row]] = {}
        tables: dict[object, QueueTable] = {}
        for destination, message in deduplicate(operations, self._resolver(tables)):
            check(message, destination.canonical)
            if message.delay is None:
                groups.setdefault((destination, False), []).append(to_row(message))
            else:
                forward = {wire.FORWARD_DESTINATION: destination.canonical}
                groups.setdefault((self._delayed_table(destination), True), []).append(to_row(message, forward))
        return [(table, delayed, rows) for (table, delayed), rows in groups.items()]

    def write(self, transaction: Transaction, prepared: Sequence[tuple[QueueTable, bool, list[Row]]]) -> int:
        """Insert what `prepare` made."""
        dialect = self._database.dialect
        for table, delayed, rows in prepared:
            if delayed:
                command = dialect.statement(f"{table.layout}/store_delayed", queue=table, delayed=table)
            else:
                shapes = self._database.shapes
                names = dialect.optional_columns(shapes.columns(transaction, table))
                command = dialect.statement(f"{table.layout}/send", queue=table, **names)
                if shapes.has_ascii_headers(transaction, table):
                    rows = [row._replace(headers=wire.to_ascii(row.headers)) for row in rows]
            dialect.insert(transaction, command, rows)
        return sum(len(rows) for _, _, rows in prepared)

    def _delayed_table(self, destination: QueueTable) -> QueueTable:
        """The sending endpoint's own delayed table; a program without an endpoint uses the destination's."""
        owner = self._book.resolve(self._endpoint) if self._endpoint else destination
        return self._book.sibling(owner, DELAYED_SUFFIX)

    def _resolver(self, known: dict[object, QueueTable]) -> Resolver:
        def resolve(destination: str | QueueAddress | QueueTable) -> QueueTable:
            table = known.get(destination)
            if table is None:
                table = known[destination] = self._book.resolve(destination)
            return table

        return resolve


def deduplicate(operations: Iterable[Operation], resolve: Resolver) -> list[tuple[QueueTable, OutgoingMessage]]:
    """One copy a message id and destination: a later operation takes the place of an earlier one."""
    kept: list[tuple[QueueTable, OutgoingMessage]] = []
    places: dict[tuple[str, QueueTable], int] = {}
    for destination, message in operations:
        table = resolve(destination)
        identity = message.headers.get(wire.MESSAGE_ID)
        place = places.setdefault((identity, table), len(kept)) if identity else len(kept)
        if place == len(kept):
            kept.append((table, message))
        else:
            kept[place] = (table, message)
    return kept
