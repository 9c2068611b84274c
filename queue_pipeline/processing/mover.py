"""Moves delayed messages as they become due, beside whatever else a process does."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType

from queue_pipeline.processing.due_schedule import RARE_LOOK_SECONDS, DueSchedule
from queue_pipeline.transport.delayed import DEFAULT_MOVE_BATCH
from queue_pipeline.transport.errors import DatabaseUnavailableError, QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.transport import Queue, QueueTransport

STOP_SECONDS = 5.0

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """A queue whose delayed messages are moved, and what is wrong with it at the moment."""

    transport: QueueTransport
    queue: Queue
    schedule: DueSchedule
    error: str | None = None


class DueMover:
    """A daemon thread that moves what is due in one or several queues; a context manager.

    Any number of movers may work on the same queues, in any number of processes. Nothing ends one but `stop`: while a
    database is away it tries less and less often. Without `start`, `run_once` is the body of a loop of the caller's.
    """

    def __init__(
        self,
        queues: Iterable[tuple[QueueTransport, Queue]],
        *,
        batch: int = DEFAULT_MOVE_BATCH,
        on_moved: Callable[[str, int], None] = lambda queue, count: None,
        go_on: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`on_moved` hears of every move; `go_on` is asked before every look of the thread, which ends when it says no.

        No database is asked anything before the first look.
        """
        self._watched = [_Watched(transport, queue, DueSchedule(clock)) for transport, queue in queues]
        self._batch = batch
        self._on_moved = on_moved
        self._go_on = go_on
        self._wake = threading.Event()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.moved = 0
        """How many messages were moved so far."""

    @property
    def last_error(self) -> str | None:
        """Why messages cannot be moved right now; None when all is well."""
        return next((watched.error for watched in self._watched if watched.error is not None), None)

    @property
    def is_running(self) -> bool:
        """Whether the thread is at work."""
        return self._thread is not None and self._thread.is_alive()

    def notify(self, seconds_from_now: float) -> None:
        """Say that a message was stored that is due so soon; without a notice it is seen half a second late at most."""
        for watched in self._watched:
            watched.schedule.notify(seconds_from_now)
        self._wake.set()

    def run_once(self) -> float:
        """Look at the queues whose time has come, and move what is due; returns the seconds until the next look."""
        for watched in self._watched:
            if not self._stopping and watched.schedule.wait_seconds <= 0:
                self._look(watched)
        return min((watched.schedule.wait_seconds for watched in self._watched), default=RARE_LOOK_SECONDS)

    def start(self) -> None:
        """Start the thread, unless it is at work."""
        if self.is_running:
            return
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="queue_pipeline mover", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a move in work is finished first, for some seconds."""
        self._stopping = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(STOP_SECONDS)

    def __enter__(self) -> DueMover:
        """Start the thread."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the thread."""
        self.stop()

    def _run(self) -> None:
        while not self._stopping and self._go_on():
            self._wake.wait(self.run_once())
            self._wake.clear()

    def _look(self, watched: _Watched) -> None:
        """Read only, unless something is due: on SQLite a writer keeps all others waiting."""
        moved = 0
        watched.schedule.begin()
        try:
            table, delayed = watched.transport.resolve(watched.queue), watched.transport.delayed
            due_in = delayed.next_due_seconds(table)
            if due_in is not None and due_in <= 0:
                moved = delayed.move_due(table, self._batch)
                self.moved += moved
                due_in = delayed.next_due_seconds(table)
        except QueueNotFoundError:
            watched.schedule.missing()
            self._is_well(watched)
        except DatabaseUnavailableError as error:
            # All queues of the database at once: each try may take as long as a login may.
            url = watched.transport.database.url
            self._fail([each for each in self._watched if each.transport.database.url == url], watched, error)
        except Exception as error:
            self._fail([watched], watched, error)
        else:
            watched.schedule.seen(due_in)
            self._is_well(watched)
        if moved:
            # Not among what is caught above: an output that is full is no trouble of a database.
            self._on_moved(str(watched.queue), moved)

    def _fail(self, affected: list[_Watched], first: _Watched, error: Exception) -> None:
        told = str(error) if isinstance(error, QueuePipelineError) else f"{type(error).__name__}: {error}"
        is_new = first.error is None and all(watched.error != told for watched in self._watched)
        for watched in affected:
            watched.schedule.failed()
            watched.error = told
        if is_new:
            # As text: the command line leaves out errors that it will report itself, and this one is not reported.
            logger.warning("due messages of %s cannot be moved: %s; trying again less often", first.queue, told)

    def _is_well(self, watched: _Watched) -> None:
        was_failing, watched.error = watched.error is not None, None
        if was_failing and self.last_error is None:
            logger.info("due messages can be moved again")
