"""Rounds: all ways in turn, each timed, metered and checked."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from queue_pipeline_tests.benchmarks.plan import say
from queue_pipeline_tests.benchmarks.processor_time import Look, Seconds, difference
from queue_pipeline_tests.benchmarks.server import wal_position


@dataclass(frozen=True)
class Way:
    """One way: how many messages it gets, how they are sent, the work that is timed, and what is checked."""

    name: str
    count: int
    prepare: Callable[[], object]
    work: Callable[[], object]
    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way took in one round."""

    count: int
    seconds: float
    wal_bytes: int
    processor: Seconds

    @property
    def speed(self) -> float:
        """Messages a second."""
        return self.count / self.seconds

    def __str__(self) -> str:
        used = "/".join(f"{seconds / self.count * 1e6:.0f}" for seconds in self.processor.values())
        return f"{self.speed:,.0f}/s ({used} us)"


Results = dict[str, list[Measured]]


class Rounds:
    """Runs ways one after the other on one database; the order turns around from round to round."""

    def __init__(self, connection: Any, processes: Callable[[], Look]) -> None:
        self._connection = connection
        self._processes = processes

    def warm_up(self, ways: Sequence[Way], times: int) -> None:
        """Rounds for Java's compiler, which do not count."""
        for number in range(1, times + 1):
            self._round(f"warming Spark up, {number} of {times}", ways)

    def run(self, ways: Sequence[Way], times: int) -> Results:
        """What each way measured in each round."""
        results: Results = {way.name: [] for way in ways}
        for number in range(1, times + 1):
            measured = self._round(f"round {number} of {times}", ways if number % 2 else ways[::-1])
            for name, one in measured.items():
                results[name].append(one)
        return results

    def _round(self, title: str, ways: Sequence[Way]) -> dict[str, Measured]:
        measured = {way.name: self._measure(way) for way in ways}
        say(f"{title}: " + ", ".join(f"{name} {one}" for name, one in measured.items()))
        return measured

    def _measure(self, way: Way) -> Measured:
        way.prepare()
        gc.collect()
        written, used = wal_position(self._connection), self._processes()
        start = time.perf_counter()
        way.work()
        took = time.perf_counter() - start
        measured = Measured(
            way.count,
            took,
            wal_position(self._connection) - written,
            difference(used, self._processes()),
        )
        way.check()
        return measured
