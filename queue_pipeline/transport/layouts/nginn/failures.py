"""Failed messages of NGinn queues, which stay in their queue: returned and discarded as those of an error queue are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.returns import Retried
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.messages import Destination
from queue_pipeline.transport.queues import QueueTable


class NGinnFailures:
    """They are chosen by the ids of their rows, or all of them are."""

    def __init__(self, queues: NGinnQueues) -> None:
        self._queues = queues

    def retry(
        self,
        home: QueueTable,
        selection: Selection,
        /,
        to: Destination | None = None,
        *,
        on_progress: Callable[[int], object] | None = None,
    ) -> Retried:
        """Make messages ready again, as new, in the queue that they are in."""
        return Retried(queues=Counter({home.canonical: self._queues.retry_failed(home, *_ids(home, selection))}))

    def discard(
        self, home: QueueTable, selection: Selection, /, *, on_progress: Callable[[int], object] | None = None
    ) -> int:
        """Delete messages for good, all of them some hundred in a transaction; returns how many."""
        if ids := _ids(home, selection):
            return self._queues.discard_failed(home, *ids)
        total = 0
        while found := self._queues.failed(home):
            total += self._queues.discard_failed(home, *(one.id for one in found))
        return total


def _ids(queue: QueueTable, selection: Selection) -> list[int]:
    """The numbers of the rows that are meant; none means all."""
    narrow = selection.message_type or selection.exception or selection.failed_queue
    if narrow or not all(one.isdigit() for one in selection.ids):
        raise ConfigurationError(
            f"failed messages of {queue} are chosen by the ids of their rows, which are numbers, or all: true; see "
            f"them with: queue-pipeline nginn failed {queue}"
        )
    return [int(one) for one in selection.ids]
