"""The satellite of delayed delivery: a thread of the code server that the ticks of the peek sensor keep alive.

A tick cannot move due messages itself, because Dagster leaves up to five seconds between two ticks; nor can a run,
which takes two seconds to start.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence

from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.mover import DueMover
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport

LONGEST_REST_SECONDS = 120.0
"""Without a tick for so long the sensor was switched off, or another code server has it."""


class Satellite:
    """A mover that works while somebody refreshes it."""

    def __init__(
        self, queues: Iterable[tuple[QueueTransport, str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queues = list(queues)
        self._clock = clock
        self._lock = threading.Lock()
        self._until = 0.0
        self._mover: DueMover | None = None

    @property
    def mover(self) -> DueMover | None:
        """The mover at work; None before the first refresh, and when the last one is long past."""
        return self._mover

    @property
    def trouble(self) -> str | None:
        """Why messages cannot be moved right now; None when all is well."""
        mover = self._mover
        return mover.last_error if mover is not None else None

    def refresh(self) -> None:
        """Go on for another while, with a new thread if the last one has ended."""
        with self._lock:
            self._until = self._clock() + LONGEST_REST_SECONDS
            if self._mover is None or not self._mover.is_running:
                self._mover = DueMover(self._queues, go_on=self._is_wanted, clock=self._clock)
                self._mover.start()

    def stop(self) -> None:
        """End the thread now."""
        with self._lock:
            mover, self._mover = self._mover, None
        if mover is not None:
            mover.stop()

    def _is_wanted(self) -> bool:
        with self._lock:
            if self._clock() < self._until:
                return True
            # Forgotten under the lock: a tick at this very moment starts a new mover instead of trusting this one.
            self._mover = None
            return False


_satellites: dict[tuple[tuple[QueueTransport, str], ...], Satellite] = {}
_lock = threading.Lock()


def keep_alive(resource: QueueTransportResource, pipelines: Sequence[QueuePipeline]) -> Satellite:
    """The satellite of these pipelines on this database, at work for another while."""
    # Movers never send with a delay, so no endpoint is named: pipelines of one error queue share a transport, and that
    # is the same object as long as the settings are the same.
    queues = tuple((resource.transport(error_queue=each.error_queue), each.input_queue) for each in pipelines)
    with _lock:
        satellite = _satellites.setdefault(queues, Satellite(queues))
    satellite.refresh()
    return satellite
