"""Purge: expired messages leave the queue without waiting for their turn to be received."""

from __future__ import annotations

from collections.abc import Callable

from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.layout import Layouts

DEFAULT_PURGE_BATCH = 10_000


def purge(
    layouts: Layouts,
    queue: QueueTable,
    batch: int = DEFAULT_PURGE_BATCH,
    on_progress: Callable[[int], object] | None = None,
) -> int:
    """Delete until a batch comes back short; each batch is a transaction, and progress is reported after each."""
    if batch < 1:
        raise ConfigurationError(f"queue {queue}: a purge batch of {batch}; ask for at least one")
    tables, total = layouts.of(queue).tables, 0
    while True:
        deleted = tables.purge(queue, batch)
        total += deleted
        if on_progress is not None:
            on_progress(total)
        if deleted < batch:
            return total
