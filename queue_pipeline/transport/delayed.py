"""Delayed delivery: messages that are due move from `<queue>.Delayed` into the queue."""

from __future__ import annotations

from queue_pipeline.transport.addressing import DELAYED_SUFFIX, AddressBook, QueueTable
from queue_pipeline.transport.database import Database, Transaction
from queue_pipeline.transport.errors import ConfigurationError

DEFAULT_MOVE_BATCH = 1_000


class DelayedMover:
    """Moves due messages in due order, without waiting for other movers; storing them is the sender's work."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def move_due(self, queue: QueueTable, batch: int = DEFAULT_MOVE_BATCH) -> int:
        """Move everything that is due now, in batches of one transaction each; returns how many."""
        if batch < 1:
            raise ConfigurationError(f"queue {queue}: a batch of {batch} delayed messages; ask for at least one")
        delayed = self._book.sibling(queue, DELAYED_SUFFIX)

        def move(transaction: Transaction) -> int:
            columns = self._database.shapes.columns(transaction, queue)
            return self._database.dialect.move_due(transaction, queue, delayed, columns, batch)

        total = 0
        while True:
            moved = self._database.run(move)
            total += moved
            if moved < batch:
                return total

    def next_due_seconds(self, queue: QueueTable) -> float | None:
        """Seconds until the next message is due on the database's clock, negative when overdue; None without one."""
        delayed = self._book.sibling(queue, DELAYED_SUFFIX)
        command = self._database.dialect.statement(f"{queue.layout}/count_delayed", queue=queue, delayed=delayed)
        milliseconds = self._database.run(lambda own: own.rows(command, (1,)), write=False)[0][1]
        return None if milliseconds is None else milliseconds / 1000
