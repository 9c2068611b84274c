"""How long to wait before the next try, after failures in a row."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_DOUBLINGS = 60
"""Beyond any longest wait; larger powers overflow a float."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double with each failure, up to the longest one, in seconds."""

    first: float
    longest: float

    def delay(self, failures: int) -> float:
        """Seconds to wait after this many failures in a row; none before the first."""
        if failures < 1:
            return 0.0
        return min(self.longest, self.first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
