"""Purge: expired messages leave the queue without waiting for their turn to be received."""

from __future__ import annotations

from collections.abc import Callable

from queue_pipeline.transport.addressing import QueueTable
from queue_pipeline.transport.database import Database
from queue_pipeline.transport.errors import ConfigurationError

DEFAULT_PURGE_BATCH = 10_000


class Purger:
    """Deletes expired messages in batches, passing over rows that a receiver holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def purge(
        self, queue: QueueTable, batch: int = DEFAULT_PURGE_BATCH, progress: Callable[[int], None] | None = None
    ) -> int:
        """Delete until a batch comes back short; each batch is a transaction of its own."""
        if batch < 1:
            raise ConfigurationError(f"queue {queue}: a purge batch of {batch}; ask for at least one")
        command = self._database.dialect.statement(f"{queue.layout}/purge", queue=queue)
        total = 0
        while True:
            deleted = self._database.run(lambda own: own.count(command, (batch,)))
            total += deleted
            if progress is not None:
                progress(total)
            if deleted < batch:
                return total
