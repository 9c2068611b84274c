"""Delayed delivery on NGinn queues: what is due later waits in the queue's table, in subqueue R."""

from __future__ import annotations

from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.queues import AddressBook, QueueTable


class NGinnDelayed:
    """The scheduler's pass."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def move_due(self, queue: QueueTable, batch: int, *, once: bool = False) -> int:
        """Make messages ready whose time has come, or `once` one batch of them; returns how many."""
        command, total = self._statement("move_due", queue), 0
        while True:
            moved = self._database.run(lambda own: own.count(command, limit=batch))
            total += moved
            if once or moved < batch:
                return total

    def next_due_seconds(self, queue: QueueTable) -> float | None:
        """Seconds until the next message is due, negative when overdue; None without one."""

        def look(transaction: Transaction) -> int | None:
            milliseconds: int | None = transaction.rows(self._statement("count_delayed", queue), limit=1)[0][1]
            return milliseconds

        found = self._database.run(look, write=False)
        return None if found is None else float(found) / 1000

    def _statement(self, name: str, queue: QueueTable) -> Command:
        claimed = self._book.claim_tables(queue).claimed
        return self._database.dialect.statement(f"nginn/queue.{name}", queue=queue, claimed=claimed)
