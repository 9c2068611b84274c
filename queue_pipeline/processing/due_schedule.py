"""When to look for due messages: often, exactly when the next one is due, and less and less while it fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOK_SECONDS = 0.5
"""Other processes store delayed messages too and tell nobody, so the table is looked at this often in any case."""
RARE_LOOK_SECONDS = 30.0
"""How often to see whether a queue that has no delayed table has got one."""
RETRY_SECONDS = 0.05
"""The pause before a message that is due but could not be had: another mover holds it, or clocks differ by a little."""
LONGEST_BACKOFF_SECONDS = 30.0


class DueSchedule:
    """The next look at one queue; safe to share between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._next = clock()
        self._notice: float | None = None
        self._failures = 0

    @property
    def wait_seconds(self) -> float:
        """How long until the next look; zero when it is time."""
        with self._lock:
            soonest = self._next
            # Whoever sends goes on telling while the database is away; that is no reason to ask it more often.
            if self._notice is not None and not self._failures:
                soonest = min(soonest, self._notice)
            return max(0.0, soonest - self._clock())

    def notify(self, seconds_from_now: float) -> None:
        """A message was stored that is due so many seconds from now; the earliest one counts."""
        with self._lock:
            due = self._clock() + seconds_from_now
            self._notice = due if self._notice is None else min(self._notice, due)

    def begin(self) -> None:
        """A look begins, which answers the notices whose time has come."""
        with self._lock:
            if self._notice is not None and self._notice <= self._clock():
                self._notice = None

    def seen(self, due_in: float | None) -> None:
        """A look found that the next message is due in so many seconds, or that there is none."""
        pause = LOOK_SECONDS if due_in is None else due_in if due_in > 0 else RETRY_SECONDS
        self._look_again(min(pause, LOOK_SECONDS))

    def missing(self) -> None:
        """A look found no delayed table."""
        self._look_again(RARE_LOOK_SECONDS)

    def failed(self) -> None:
        """A look failed: 1, 2, 4 … 30 s until the next."""
        with self._lock:
            self._next = self._clock() + min(LONGEST_BACKOFF_SECONDS, 2.0 ** min(self._failures, 10))
            self._failures += 1

    def _look_again(self, seconds: float) -> None:
        with self._lock:
            self._failures = 0
            self._next = self._clock() + seconds
