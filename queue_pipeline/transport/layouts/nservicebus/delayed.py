"""Delayed delivery: messages that are due move from `<queue>.Delayed` to where they are for."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from queue_pipeline.errors import QueueNotFoundError
from queue_pipeline.transport.addresses.queues import DELAYED_SUFFIX, AddressBook, QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.statements import numbered_values
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.layouts.nservicebus.forwarding import Forwarder, parts
from queue_pipeline.transport.layouts.refused_rows import Leaving, past_refusals
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import ReceivedMessage, from_row

KEYS_PER_STATEMENT = 200


class DelayedMover:
    """Moves due messages in due order, without waiting for other movers.

    Messages for the queue itself move inside the database; others go straight to their queue, in the same transaction.
    """

    def __init__(self, database: Database, book: AddressBook, forwarder: Forwarder) -> None:
        self._database = database
        self._book = book
        self._forwarder = forwarder

    def move_due(self, queue: QueueTable, batch: int, *, once: bool = False) -> int:
        """Move everything that is due now, or `once` one batch, in one transaction per batch; returns how many."""
        total = 0
        while True:
            move = functools.partial(self._move, queue=queue, batch=batch)
            send_on = functools.partial(self._forwarder.send_on, queue, take=functools.partial(self._take, queue))
            (found, moved), left = past_refusals(self._database, move, send_on)
            total += moved + left
            if once or found < batch:
                return total

    def next_due_seconds(self, queue: QueueTable) -> float | None:
        """Seconds until the next message is due on the database's clock, negative when overdue; None without one."""
        delayed = self._book.sibling(queue, DELAYED_SUFFIX)
        command = self._statement("count_delayed", queue, delayed)

        def look(transaction: Transaction) -> Any:
            self._require(transaction, queue, delayed)
            return transaction.rows(command, limit=1)[0][1]

        milliseconds = self._database.run(look, write=False)
        return None if milliseconds is None else milliseconds / 1000

    def _move(self, transaction: Transaction, leaving: Leaving, queue: QueueTable, batch: int) -> tuple[int, int]:
        """Move one batch; returns how many messages were found due, and how many of them were moved."""
        delayed = self._book.sibling(queue, DELAYED_SUFFIX)
        self._require(transaction, queue, delayed)
        move = self._database.shapes.statement(transaction, "nservicebus/queue.move_due", queue, delayed=delayed)
        own = f'{wire.quote(wire.FORWARD_DESTINATION)}:"{wire.escape(queue.canonical)}"'
        found = transaction.rows(self._statement("find_due", queue, delayed), text=own, limit=batch)
        leaving += [key for key, text in found if text is not None and self._leads_elsewhere(queue, text)]
        sent = self._forwarder.forward_all(transaction, queue, self._take(queue, transaction, leaving))
        # No more than were found, else one that became due just now would go unseen into the wrong queue.
        left = len(found) - len(leaving)
        moved = transaction.count(move, limit=left) if left else 0
        if moved and self._database.dialect.has("nservicebus/queue.move_due_delete"):
            transaction.execute(self._statement("move_due_delete", queue, delayed), limit=moved)
        return len(found), sent + moved

    def _leads_elsewhere(self, queue: QueueTable, header_text: str) -> bool:
        """Whether a message is for another queue; one that cannot be read is left to its receiver."""
        try:
            return self._forwarder.destination(queue, wire.decode(header_text)) is not None
        except ValueError:
            return False

    def _take(self, queue: QueueTable, transaction: Transaction, keys: Sequence[Any]) -> list[ReceivedMessage]:
        take = self._statement("take_delayed", queue, self._book.sibling(queue, DELAYED_SUFFIX))
        taken: dict[Any, Any] = {}
        for part in parts(keys, KEYS_PER_STATEMENT):
            rows = transaction.rows(take.repeated(len(part)), **numbered_values("key", part))
            taken |= {row[0]: row for row in rows}
        return [from_row(row[1], 0, row[2], row[3]) for row in (taken[key] for key in keys if key in taken)]

    def _statement(self, name: str, queue: QueueTable, delayed: QueueTable) -> Command:
        return self._database.dialect.statement(f"{queue.layout}/queue.{name}", queue=queue, delayed=delayed)

    def _require(self, transaction: Transaction, queue: QueueTable, delayed: QueueTable) -> None:
        """A plain queue has no delayed table; say so instead of claiming that the queue is missing."""
        if not transaction.rows(self._database.dialect.statement("schema.exists", queue=delayed)):
            raise QueueNotFoundError(delayed.canonical, belongs_to=queue.canonical)
