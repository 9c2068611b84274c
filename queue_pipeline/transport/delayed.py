"""Delayed delivery: what is due becomes ready to be received; storing what is due later is the sender's work."""

from __future__ import annotations

from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.layout import Layouts

DEFAULT_MOVE_BATCH = 1_000


class DelayedMessages:
    """Moves due messages in due order, without waiting for other movers."""

    def __init__(self, layouts: Layouts) -> None:
        self._layouts = layouts

    def move_due(self, queue: QueueTable, batch: int = DEFAULT_MOVE_BATCH, *, once: bool = False) -> int:
        """Move everything that is due now, or `once` one batch, in one transaction per batch; returns how many."""
        if batch < 1:
            raise ConfigurationError(f"queue {queue}: a batch of {batch} delayed messages; ask for at least one")
        return self._layouts.of(queue).delayed.move_due(queue, batch, once=once)

    def next_due_seconds(self, queue: QueueTable) -> float | None:
        """Seconds until the next message is due on the database's clock, negative when overdue; None without one."""
        return self._layouts.of(queue).delayed.next_due_seconds(queue)
