"""Purge: expired messages leave the queue without waiting for their turn to be received."""

from __future__ import annotations

from collections.abc import Callable

from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.layouts.nginn.rows import is_nginn
from queue_pipeline.transport.queues import QueueTable

DEFAULT_PURGE_BATCH = 10_000


class Purger:
    """Deletes expired messages in batches, passing over rows that a receiver holds; of NGinn queues, processed ones."""

    def __init__(self, database: Database, nginn: NGinnQueues) -> None:
        self._database = database
        self._nginn = nginn

    def purge(
        self,
        queue: QueueTable,
        batch: int = DEFAULT_PURGE_BATCH,
        on_progress: Callable[[int], object] | None = None,
    ) -> int:
        """Delete until a batch comes back short; each batch is a transaction, and progress is reported after each."""
        if batch < 1:
            raise ConfigurationError(f"queue {queue}: a purge batch of {batch}; ask for at least one")
        command = self._database.dialect.statement("nservicebus/queue.purge", queue=queue)
        total = 0
        while True:
            if is_nginn(queue):
                deleted = self._nginn.purge(queue, batch)
            else:
                deleted = self._database.run(lambda own: own.count(command, limit=batch))
            total += deleted
            if on_progress is not None:
                on_progress(total)
            if deleted < batch:
                return total
