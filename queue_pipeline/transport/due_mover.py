"""Moves delayed messages as they become due, whenever the loop that owns it asks: a run, a tick, the command line."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from queue_pipeline.errors import DatabaseUnavailableError, QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.transport import DEFAULT_MOVE_BATCH, Queue, QueueTransport

LOOK_SECONDS = 0.5
"""Other processes store delayed messages too, so each table is looked at this often in any case."""
RARE_LOOK_SECONDS = 30.0
"""How often to see whether a queue without a delayed table has one now."""
RETRY_SECONDS = 0.05
"""The pause before a message that is due but was not moved: another mover holds it, or clocks differ by a little."""
BACKOFF = Backoff(first=1.0, longest=30.0)

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    transport: QueueTransport
    queue: Queue
    next_look: float = 0.0
    failures: int = 0
    error: str | None = None


class DueMover:
    """Moves what is due in some queues when a loop calls `poll`; several movers may share the queues."""

    def __init__(
        self,
        queues: Iterable[tuple[QueueTransport, Queue]],
        *,
        batch: int = DEFAULT_MOVE_BATCH,
        on_moved: Callable[[str, int], None] = lambda queue, count: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_moved` is called after every move. No database is asked before the first poll."""
        self._watched = [_Watched(transport, queue) for transport, queue in queues]
        self._batch = batch
        self._on_moved = on_moved
        self._clock = clock
        self.moved = 0
        """How many messages were moved so far."""

    @property
    def last_error(self) -> str | None:
        """Why messages cannot be moved right now; None when all is well."""
        return next((watched.error for watched in self._watched if watched.error is not None), None)

    def poll(self) -> float:
        """Move what is due, at most one batch per queue; returns the seconds until the next look.

        Errors of a database are logged, and tried again less and less often.
        """
        for watched in self._watched:
            if self._clock() >= watched.next_look:
                self._look(watched)
        soonest = min((watched.next_look for watched in self._watched), default=self._clock() + RARE_LOOK_SECONDS)
        return max(0.0, soonest - self._clock())

    def _look(self, watched: _Watched) -> None:
        """Read only, unless something is due: on SQLite a writer keeps all others waiting."""
        moved = 0
        try:
            transport = watched.transport
            due_in = transport.next_due_seconds(watched.queue)
            if due_in is not None and due_in <= 0:
                moved = transport.move_due(watched.queue, self._batch, once=True)
                self.moved += moved
                due_in = transport.next_due_seconds(watched.queue)
        except QueueNotFoundError:
            self._succeeded(watched, RARE_LOOK_SECONDS)
        except DatabaseUnavailableError as error:
            # All queues of the database at once: each try may take as long as a login may.
            url = watched.transport.database.url
            self._failed([each for each in self._watched if each.transport.database.url == url], watched, error)
        except Exception as error:
            self._failed([watched], watched, error)
        else:
            self._succeeded(watched, _pause(due_in, more=moved >= self._batch))
        if moved:
            # Not among what is caught above: an output that is full is no trouble of a database.
            self._on_moved(str(watched.queue), moved)

    def _failed(self, affected: list[_Watched], first: _Watched, error: Exception) -> None:
        text = str(error) if isinstance(error, QueuePipelineError) else f"{type(error).__name__}: {error}"
        is_new = first.error is None and all(watched.error != text for watched in self._watched)
        for watched in affected:
            watched.failures += 1
            watched.next_look = self._clock() + BACKOFF.delay(watched.failures)
            watched.error = text
        if is_new:
            # As text: the command line leaves out errors that it will report itself, and this one is not reported.
            logger.warning("due messages of %s cannot be moved: %s; trying again less often", first.queue, text)

    def _succeeded(self, watched: _Watched, pause: float) -> None:
        was_failing, watched.error, watched.failures = watched.error is not None, None, 0
        watched.next_look = self._clock() + pause
        if was_failing and self.last_error is None:
            logger.info("due messages can be moved again")


def _pause(due_in: float | None, *, more: bool) -> float:
    """Seconds until the next look, when the next message is due in `due_in`; none at all after a full batch."""
    if more:
        return 0.0
    if due_in is None:
        return LOOK_SECONDS
    return min(due_in, LOOK_SECONDS) if due_in > 0 else RETRY_SECONDS
