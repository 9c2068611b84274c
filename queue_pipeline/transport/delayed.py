"""Delayed delivery: messages that are due move from `<queue>.Delayed` into the queue."""

from __future__ import annotations

from queue_pipeline.transport.addressing import DELAYED_SUFFIX, AddressBook, QueueTable
from queue_pipeline.transport.database import Database, Transaction
from queue_pipeline.transport.errors import ConfigurationError, QueueNotFoundError

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
            self._require(transaction, queue, delayed)
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

        def look(transaction: Transaction) -> int | None:
            self._require(transaction, queue, delayed)
            milliseconds: int | None = transaction.rows(command, (1,))[0][1]
            return milliseconds

        milliseconds = self._database.run(look, write=False)
        return None if milliseconds is None else milliseconds / 1000

    def _require(self, transaction: Transaction, queue: QueueTable, delayed: QueueTable) -> None:
        """A plain queue has no delayed table; say so instead of claiming that the queue is missing."""
        if not transaction.rows(self._database.dialect.statement("table_exists", queue=delayed)):
            raise QueueNotFoundError(delayed.canonical, belongs_to=queue.canonical)
