"""How long pipelines stood still while messages waited, and after which faults."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

import sqlalchemy as sa

from tools.chaos.dagster.background import Background
from tools.chaos.dagster.plan import INPUTS
from tools.chaos.dagster.shop import Look, look

_LOOK_SECONDS = 0.25


class Standstills:
    """Attributes standstills to faults: a pure account of looks and faults, by a clock of the caller's."""

    def __init__(self, started_at: float) -> None:
        self.times: Counter[str] = Counter()
        self.longest: defaultdict[str, dict[str, float]] = defaultdict(dict)
        """Seconds by kind of fault and pipeline."""
        self._faults: list[tuple[float, str]] = []
        self._moved_at: dict[str, float] = dict.fromkeys(INPUTS, started_at)
        """When a pipeline last completed something, or had nothing to do."""
        self._completed_at: dict[str, float] = dict.fromkeys(INPUTS, started_at)
        self._done: dict[str, int] = dict.fromkeys(INPUTS, 0)
        self.waiting: dict[str, int] = dict.fromkeys(INPUTS, 0)

    def fault(self, kind: str, now: float) -> None:
        """A fault begins."""
        self.times[kind] += 1
        self._faults.append((now, kind))

    def observe(self, found: Mapping[str, Look], now: float, paused: Collection[str] = ()) -> None:
        """Note what a look found: a standstill belongs to the faults during it, and to the last one before."""
        for pipeline, (done, waiting) in found.items():
            has_completed, is_paused = done > self._done[pipeline], pipeline in paused
            if (has_completed or waiting) and not is_paused:
                self._attribute(pipeline, now)
            if has_completed:
                self._completed_at[pipeline] = now
            if has_completed or not waiting or is_paused:
                self._moved_at[pipeline] = now
            self._done[pipeline], self.waiting[pipeline] = done, waiting

    def has_completed_since(self, pipelines: Collection[str], moment: float) -> bool:
        """Whether each of the pipelines has completed something since."""
        return all(self._completed_at[pipeline] > moment for pipeline in pipelines)

    def of(self, kind: str, pipelines: Collection[str]) -> float:
        """The longest standstill after a kind of fault among pipelines."""
        return max((self.longest[kind].get(pipeline, 0.0) for pipeline in pipelines), default=0.0)

    @property
    def done(self) -> int:
        """What all pipelines have completed."""
        return sum(self._done.values())

    def _attribute(self, pipeline: str, now: float) -> None:
        since = self._moved_at[pipeline]
        later = [fault for fault in self._faults if fault[0] >= since]
        last_before = self._faults[: len(self._faults) - len(later)][-1:]
        for began, kind in (*last_before, *later):
            longest = self.longest[kind]
            longest[pipeline] = max(now - max(began, since), longest.get(pipeline, 0.0))


class Watch(Background):
    """Looks at the database all the time, in a thread of its own."""

    def __init__(self, engine: sa.Engine) -> None:
        self.standstills = Standstills(time.monotonic())
        self.paused: set[str] = set()
        self.lock = threading.Lock()
        self._engine = engine
        super().__init__("watch")

    def fault(self, kind: str) -> None:
        """A fault begins now."""
        with self.lock:
            self.standstills.fault(kind, time.monotonic())

    def has_completed_since(self, pipelines: Collection[str], moment: float) -> bool:
        """Whether each of the pipelines has completed something since."""
        with self.lock:
            return self.standstills.has_completed_since(pipelines, moment)

    def waiting(self) -> int:
        """Messages that were not completed at the last look."""
        with self.lock:
            return sum(self.standstills.waiting.values())

    def _run(self) -> None:
        while not self._is_closed.wait(_LOOK_SECONDS):
            try:
                with self._engine.connect() as connection:
                    found = look(connection)
            except (sa.exc.OperationalError, sa.exc.InterfaceError):
                # The database is away: time goes on.
                continue
            with self.lock:
                self.standstills.observe(found, time.monotonic(), self.paused)
