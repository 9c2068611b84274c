"""A circuit breaker for a database that is away: say it once, try less often, notice when it is back."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable

TRIGGER_AFTER_SECONDS = 30.0
ARMED_DELAY_SECONDS = 1.0
TRIGGERED_DELAY_SECONDS = 10.0


class BreakerState(enum.Enum):
    """Disarmed while all is well, armed after a failure, triggered when failures have lasted."""

    DISARMED = "disarmed"
    ARMED = "armed"
    TRIGGERED = "triggered"


class CircuitBreaker:
    """Counts nothing: the first failure arms it, time without a success triggers it, any success disarms it."""

    def __init__(
        self,
        *,
        on_armed: Callable[[BaseException], None],
        on_triggered: Callable[[BaseException], None],
        on_disarmed: Callable[[], None],
        trigger_after: float = TRIGGER_AFTER_SECONDS,
        armed_delay: float = ARMED_DELAY_SECONDS,
        triggered_delay: float = TRIGGERED_DELAY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._on_armed = on_armed
        self._on_triggered = on_triggered
        self._on_disarmed = on_disarmed
        self._trigger_after = trigger_after
        self._delays = {
            BreakerState.DISARMED: 0.0,
            BreakerState.ARMED: armed_delay,
            BreakerState.TRIGGERED: triggered_delay,
        }
        self._clock = clock
        self._lock = threading.Lock()
        self._state = BreakerState.DISARMED
        self._armed_at = 0.0
        self._last_error: BaseException | None = None

    @property
    def state(self) -> BreakerState:
        """Where it stands now; reading it triggers a breaker whose time has come."""
        self._trigger_if_due()
        return self._state

    @property
    def delay_seconds(self) -> float:
        """How long a loop should wait before it tries again."""
        return self._delays[self.state]

    def failure(self, error: BaseException) -> float:
        """Note a failure; returns how long to wait before the next try."""
        with self._lock:
            self._last_error = error
            newly_armed = self._state is BreakerState.DISARMED
            if newly_armed:
                self._state = BreakerState.ARMED
                self._armed_at = self._clock()
        if newly_armed:
            self._on_armed(error)
        return self.delay_seconds

    def success(self) -> None:
        """Note a success; the first one after failures disarms."""
        with self._lock:
            if self._state is BreakerState.DISARMED:
                return
            self._state = BreakerState.DISARMED
            self._last_error = None
        self._on_disarmed()

    def _trigger_if_due(self) -> None:
        with self._lock:
            due = self._state is BreakerState.ARMED and self._clock() - self._armed_at >= self._trigger_after
            if not due or self._last_error is None:
                return
            self._state = BreakerState.TRIGGERED
            error = self._last_error
        self._on_triggered(error)
