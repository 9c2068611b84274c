"""The peek loop under a clock of its own: time passes when it sleeps, and when the world says so."""

from __future__ import annotations

from dataclasses import dataclass, field

from queue_pipeline.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    LockTimeoutError,
    QueueNotFoundError,
    TableNotFoundError,
)
from queue_pipeline.orchestration.peek_loop import (
    Cursor,
    Peeked,
    Runs,
    tick,
)
from queue_pipeline.processing.declaration.pipeline import QueuePipeline

BUDGET = 40.0


def pipeline(name="orders", **options):
    return QueuePipeline(name=name, input_queue=name, transform=lambda messages: messages, **options)


@dataclass
class World:
    """What the loop sees: queues that fill at given moments, runs, pauses, a database that may be unavailable."""

    time: float = 1_000_000.0
    waiting: dict = field(default_factory=dict)
    at: dict = field(default_factory=dict)
    missing: set = field(default_factory=set)
    held: set = field(default_factory=set)
    working: dict = field(default_factory=dict)
    away: bool = False
    denied: set = field(default_factory=set)
    locked: set = field(default_factory=set)
    capped: bool = False
    peeks: list = field(default_factory=list)
    slept: list = field(default_factory=list)
    due: list = field(default_factory=list)
    due_look: float = 30.0
    looks: list = field(default_factory=list)
    upkeep: list = field(default_factory=list)
    stops_at: float = 1e9

    def __post_init__(self):
        self.began = self.time

    def now(self):
        return self.time

    def sleep(self, seconds):
        assert seconds > 0
        self.slept.append(seconds)
        self.time += min(seconds, max(0.0, self.stops_at - self.elapsed))

    def is_stopping(self):
        return self.elapsed >= self.stops_at

    @property
    def elapsed(self):
        return self.time - self.began

    def end_old_runs(self, pipelines):
        pass

    def look_after(self, until):
        self.upkeep.append((round(self.elapsed, 6), round(until - self.began, 6)))

    def paused(self):
        if self.away:
            raise DatabaseUnavailableError("postgresql at db:5432 does not answer")
        if "everything" in self.denied:
            raise AccessDeniedError("no login")
        if "everything" in self.locked:
            raise LockTimeoutError("another session holds a lock")
        if "everything" in self.missing:
            raise TableNotFoundError("no such table: QueueClaims; create the tables with: queue-pipeline install QUEUE")
        return self.held

    def peek(self, pipeline):
        self.peeks.append((pipeline.name, round(self.elapsed, 6)))
        if pipeline.name in self.denied:
            raise AccessDeniedError(f"no right on {pipeline.name}")
        if pipeline.name in self.locked:
            self.time += 15
            raise LockTimeoutError(f"{pipeline.name}: another session holds a lock")
        if pipeline.name in self.missing:
            raise QueueNotFoundError(pipeline.input_queue)
        if self.elapsed >= self.at.get(pipeline.name, 0.0):
            return Peeked(self.waiting.get(pipeline.name, 0), self.capped)
        return Peeked(0)

    def move_due(self):
        self.looks.append(round(self.elapsed, 6))
        later = [moment for moment in self.due if moment > self.elapsed + 1e-6]
        return min([*(moment - self.elapsed for moment in later), self.due_look])

    def runs(self, pipeline):
        return self.working.get(pipeline.name, Runs())

    def tick(self, *pipelines, cursor=Cursor(), budget=BUDGET):  # noqa: B008 - frozen
        self.began = self.time
        self.peeks.clear()
        return tick(pipelines, self, cursor, until=self.time + budget)
