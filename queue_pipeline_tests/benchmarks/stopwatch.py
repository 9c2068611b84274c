"""Seconds of named pieces of work, added up within a round."""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class Stopwatch:
    """Adds up how long things take, and how many bytes they write if a counter is given."""

    def __init__(self, bytes_written: Callable[[], int] = lambda: 0) -> None:
        self._bytes_written = bytes_written
        self.seconds: dict[str, float] = defaultdict(float)
        self.bytes: dict[str, int] = defaultdict(int)

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Do the work under a name; what it leaves behind counts, what earlier work left does not."""
        gc.collect()
        written = self._bytes_written()
        start = time.perf_counter()
        result = work()
        self.seconds[name] += time.perf_counter() - start
        self.bytes[name] += self._bytes_written() - written
        return result

    def in_short(self, count: int) -> str:
        """The speed of everything, when each was done to `count` messages."""
        return ", ".join(f"{name} {count / took:,.0f}/s" for name, took in self.seconds.items())
