"""Send: many messages to many queues in one transaction, a few statements a thousand."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.layout import Rows
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import (
    Destination,
    Operation,
    OutgoingMessage,
    check,
    new_row_ids,
    to_rows,
)
from queue_pipeline.transport.messages.message_columns import MessageColumns, check_columns

Resolver: TypeAlias = Callable[[Destination], QueueTable]

FEW = 500
"""Up to this number, messages are checked to the last header before a connection is taken."""
COPIED_TYPES = ("bytea", "text", "bytea")
"""Those of section `queue.copy`; for ids see `uuid_bytes`."""


@dataclass(frozen=True, slots=True)
class Shipment:
    """Checked messages on their way into one table."""

    table: QueueTable
    delayed: bool
    """Whether the table is a delayed one."""
    size: int
    may_expire: bool
    """Whether one of them has a time to live, or a delay."""
    rows: Callable[[], Iterator[Row]]
    """Makes the rows to insert, from the first one each time: a deadlock victim starts again."""


def shipment_of(table: QueueTable, messages: Sequence[OutgoingMessage], forward_to: str | None = None) -> Shipment:
    """Messages for a table, encoded while the database stores them; `forward_to` is the destination of delayed ones."""
    delayed = forward_to is not None
    may_expire = delayed or any(message.time_to_be_received is not None for message in messages)
    extra = {wire.FORWARD_DESTINATION: forward_to} if forward_to is not None else None
    return Shipment(table, delayed, len(messages), may_expire, functools.partial(to_rows, messages, extra))


def _shipment_of_columns(table: QueueTable, ready: MessageColumns) -> Shipment:
    def rows() -> Iterator[Row]:
        columns = (new_row_ids(len(ready.ids)), ready.milliseconds, ready.headers, ready.bodies)
        return map(Row._make, zip(*columns, strict=True))

    may_expire = ready.delayed or not set(ready.milliseconds) <= {NEVER_EXPIRES}
    return Shipment(table, ready.delayed, len(ready.ids), may_expire, rows)


def uuid_bytes(text: str) -> bytes:
    """A row id as a binary COPY has it: its sixteen bytes, 1 µs faster than by way of a UUID object."""
    return bytes.fromhex(text.replace("-", ""))


def count(shipments: Iterable[Shipment]) -> int:
    """How many messages there are in all."""
    return sum(shipment.size for shipment in shipments)


class Sender:
    """Writes messages into queue tables, and delayed ones into a `.Delayed` table."""

    def __init__(self, database: Database, book: AddressBook, rows: Mapping[str, Rows]) -> None:
        self._database = database
        self._book = book
        self._rows = rows

    def send(
        self,
        destination: Destination,
        messages: OutgoingMessage | Iterable[OutgoingMessage],
        transaction: Transaction | None = None,
    ) -> int:
        """Send one or many messages to one queue, in the given transaction or in one of its own."""
        batch = [messages] if isinstance(messages, OutgoingMessage) else list(messages)
        table = self._book.resolve(destination)
        return self._deliver(deduplicate_alike(table, batch), transaction)

    def dispatch(self, operations: Iterable[Operation], transaction: Transaction | None = None) -> int:
        """Send messages to several queues, all or none; returns how many rows were written.

        In the caller's transaction everything is checked before the first row is written, because the caller may go on.
        """
        return self._deliver(deduplicate(operations, functools.cache(self._book.resolve)), transaction)

    def prepare(self, operations: Iterable[Operation]) -> list[Shipment]:
        """Check, deduplicate and group messages by the table that they go to."""
        return self._group(deduplicate(operations, functools.cache(self._book.resolve)))

    def dispatch_columns(self, ready: Iterable[MessageColumns], transaction: Transaction | None = None) -> int:
        """Send ready messages, all or none, in the given transaction or in one of its own; returns how many."""
        shipments = self.prepare_columns(ready)
        if transaction is not None:
            return self.write(transaction, shipments)
        return self._database.run(lambda own: self.write(own, shipments)) if shipments else 0

    def prepare_columns(self, ready: Iterable[MessageColumns]) -> list[Shipment]:
        """Check ready messages and find the tables that they go to."""
        shipments = []
        for messages in ready:
            destination = self._book.resolve(messages.destination)
            check_columns(messages, destination.canonical)
            table = self.table_of(destination, delayed=messages.delayed)
            if messages.ids:
                shipments.append(_shipment_of_columns(table, messages))
        return shipments

    def table_of(self, destination: Destination, *, delayed: bool) -> QueueTable:
        """The table that messages for a queue are written to: its own, or where delayed ones wait."""
        table = self._book.resolve(destination)
        return self._rows[table.layout].delayed_table(table) if delayed else table

    def _deliver(self, addressed: list[tuple[QueueTable, OutgoingMessage]], transaction: Transaction | None) -> int:
        if transaction is not None or len(addressed) <= FEW:
            for _, message in addressed:
                wire.check_text(message.headers)
        shipments = self._group(addressed)
        if transaction is None:
            return self._database.run(lambda own: self.write(own, shipments)) if shipments else 0
        for shipment in shipments:
            # The caller may go on after an error, and then nothing must have been written.
            self._rows[shipment.table.layout].check(shipment.table, shipment.rows())
        return self.write(transaction, shipments)

    def _group(self, addressed: Iterable[tuple[QueueTable, OutgoingMessage]]) -> list[Shipment]:
        groups: dict[tuple[QueueTable, bool], list[OutgoingMessage]] = {}
        current: list[OutgoingMessage] = []
        last: tuple[QueueTable | None, bool] = (None, False)
        for destination, message in addressed:
            check(message, destination.canonical)
            delayed = message.delay is not None
            # Mostly the destination of the message before: tables are hashed only where it changes.
            if last[0] is not destination or last[1] is not delayed:
                last = (destination, delayed)
                current = groups.setdefault((destination, delayed), [])
            current.append(message)
        return [
            shipment_of(self.table_of(one, delayed=delayed), messages, one.canonical if delayed else None)
            for (one, delayed), messages in groups.items()
        ]

    def write(self, transaction: Transaction, shipments: Sequence[Shipment]) -> int:
        """Insert what `prepare` and `prepare_columns` made."""
        dialect, shapes = self._database.dialect, self._database.shapes
        for shipment in shipments:
            table, rows = shipment.table, self.stored_rows(transaction, shipment)
            if self._database.driver.copies and dialect.has(f"{table.layout}/queue.copy") and not shipment.may_expire:
                command = dialect.statement(f"{table.layout}/queue.copy", queue=table)
                transaction.copy(command, COPIED_TYPES, ((uuid_bytes(row.id), row.headers, row.body) for row in rows))
                continue
            if shipment.delayed:
                command = dialect.statement(f"{table.layout}/queue.delay", queue=table, delayed=table)
            else:
                command = shapes.statement(transaction, f"{table.layout}/queue.send", table)
            transaction.insert(command, rows)
        return count(shipments)

    def stored_rows(self, transaction: Transaction, shipment: Shipment) -> Iterator[Row]:
        """The rows of a shipment in the form in which its table keeps them."""
        rows = self._rows[shipment.table.layout]
        return rows.encode(transaction, shipment.table, shipment.rows(), delayed=shipment.delayed)


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


def deduplicate_alike(table: QueueTable, messages: list[OutgoingMessage]) -> list[tuple[QueueTable, OutgoingMessage]]:
    """`deduplicate` for one destination, at little cost where every message has an id of its own."""
    ids = [message.headers.get(wire.MESSAGE_ID) for message in messages]
    if len(set(ids)) == len(ids):
        return [(table, message) for message in messages]
    return deduplicate([Operation(table, message) for message in messages], lambda _: table)
