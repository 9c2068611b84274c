"""The peek loop: watches the queues of all pipelines, and decides when runs are started.

Queues, runs and the clock are its `Surroundings`: the sensor gives it the real ones, a test its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Protocol

from pydantic import Field, TypeAdapter

from queue_pipeline.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    LockTimeoutError,
    QueueNotFoundError,
    QueuePipelineError,
    TableNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.orchestration.watch.watched_pipelines import WatchedPipeline
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.concurrency import Demand, RampUp, share, slots_to_start
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.texts import count_of, last_of

DATABASE_BACKOFF = Backoff(first=1.0, longest=30.0)
STOPPING = "the code server stops"
_WHAT = {AccessDeniedError: "refuses access", LockTimeoutError: "is locked", TransientDatabaseError: "is busy"}
"""What is wrong with a database, by its error; any other one is away."""


@dataclass(frozen=True, slots=True)
class Peeked:
    """How many messages wait in a queue, and whether there may be more."""

    waiting: int
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a pipeline: slots in use, and how the last ones ended."""

    slots: int = 0
    """Batches that are in work, or may be, over all machines."""
    failed_in_a_row: int = 0
    last_failure: float | None = None
    failed_attempts: int = 0
    """Attempts on batches that failed in a row, over all runs."""
    elsewhere: int = 0
    """How many of the slots are no runs of this Dagster."""
    last_error: str | None = None
    """Why the last of these attempts failed."""

    @property
    def fruitless(self) -> int:
        """Runs that failed in a row without a success in between, as far as that is known."""
        return min(self.failed_in_a_row, self.failed_attempts) if self.failed_attempts else self.failed_in_a_row


class Surroundings(Protocol):
    """What the loop sees and does outside of itself."""

    def now(self) -> float:
        """The time in seconds."""

    def sleep(self, seconds: float) -> None:
        """Wait, but not for longer than until the process stops."""

    def is_stopping(self) -> bool:
        """Whether the process stops."""

    def peek(self, pipeline: QueuePipeline) -> Peeked:
        """Count what waits."""

    def runs(self, pipeline: QueuePipeline) -> Runs:
        """Count the slots in use, and how the last runs ended."""

    def paused(self) -> set[str]:
        """The names of paused pipelines."""

    def end_old_runs(self, pipelines: Sequence[QueuePipeline]) -> None:
        """Have runs end that work with other code than the one that is deployed now."""

    def look_after(self, until: float) -> None:
        """Do the upkeep that is due, as far as it can begin before a time."""

    def move_due(self) -> float:
        """Move delayed messages that are due; returns the seconds until it should be called again."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What is kept from one tick to the next."""

    ramp_up: Mapping[str, RampUp] = field(default_factory=dict)
    database_failures: Annotated[int, Field(ge=0)] = 0
    database_retry_at: float = 0.0
    observed: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    pipelines: tuple[WatchedPipeline, ...] = ()
    """What the loop watches: for readers of the cursor, such as `queue-pipeline health`."""

    def dump(self) -> str:
        """As the text that Dagster keeps."""
        return _CURSOR.dump_json(self).decode()

    @staticmethod
    def load(text: str | None) -> Cursor:
        """From the text that Dagster kept; without it, or if it cannot be read, the loop begins anew."""
        try:
            return _CURSOR.validate_json(text or "{}")
        except ValueError:
            return Cursor()


_CURSOR = TypeAdapter(Cursor)


@dataclass(frozen=True, slots=True)
class Start:
    """A run to be started, and how many batches it may have in work at once."""

    pipeline: QueuePipeline
    slots: int
    waiting: str
    """How many messages, for people: `7`, `1,000 or more`."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The outcome of a tick: runs to start, and sentences about what it saw."""

    starts: Sequence[Start]
    cursor: Cursor
    said: Sequence[str]


def tick(pipelines: Sequence[QueuePipeline], world: Surroundings, cursor: Cursor, *, until: float) -> Tick:
    """Peek until something waits, the time of the tick is over, or the process stops.

    The tick returns at once when a run is to be started: Dagster submits no run before it does.
    """
    return _PeekLoop(pipelines, world, cursor, until).run()


class _PeekLoop:
    """A tick in progress: what it has found of each pipeline, and when each queue is peeked next."""

    def __init__(self, pipelines: Sequence[QueuePipeline], world: Surroundings, cursor: Cursor, until: float) -> None:
        self._pipelines = pipelines
        self._world = world
        self._cursor = cursor
        self._until = until
        self._next_peek = {pipeline.name: 0.0 for pipeline in pipelines}
        self._said: dict[str, str] = {}

    def run(self) -> Tick:
        world = self._world
        if self._cursor.database_failures and not self._wait_for_database():
            return self._ended(self._still_away())
        while not world.is_stopping():
            try:
                starts = self._peek_all()
            except (DatabaseUnavailableError, TransientDatabaseError, AccessDeniedError) as error:
                return self._ended(self._database_failed(error))
            except TableNotFoundError as error:
                queues = ", ".join(dict.fromkeys(pipeline.input_queue for pipeline in self._pipelines))
                return self._ended(f"{queues}: {error}")
            world.look_after(self._until)
            # Also when runs are started: they move what is due in their own queues only.
            due_seconds = world.move_due()
            if starts and not world.is_stopping():
                return self._ended(*self._said.values(), starts=starts)
            pause = min(min(self._next_peek.values(), default=self._until) - world.now(), due_seconds)
            if not self._pipelines or world.now() + max(pause, 0.0) >= self._until:
                return self._ended(*self._said.values())
            if pause > 0:
                world.sleep(pause)
        # A run that is requested now would not be started, and would count as failed.
        return self._ended(STOPPING)

    def _ended(self, *said: str, starts: Sequence[Start] = ()) -> Tick:
        return Tick(starts, self._cursor, said)

    def _peek_all(self) -> list[Start]:
        """Peek at every queue whose time has come; raises what concerns the whole database."""
        self._world.end_old_runs(self._pipelines)
        ready = [pipeline for pipeline in self._pipelines if self._world.now() >= self._next_peek[pipeline.name]]
        paused = self._world.paused() if ready else set()
        starts: list[Start] = []
        for pipeline in ready:
            self._next_peek[pipeline.name] = self._world.now() + pipeline.peek_delay
            if pipeline.name in paused:
                self._said[pipeline.name] = f"{pipeline.name} is paused"
                continue
            try:
                found = self._world.peek(pipeline)
            except (QueueNotFoundError, AccessDeniedError) as error:
                self._said[pipeline.name] = str(error)
            except LockTimeoutError as error:
                # Each wait for a lock is long: other queues come first, and none once the time of the tick is over.
                self._said[pipeline.name], self._next_peek[pipeline.name] = str(error), self._until
                if self._world.now() >= self._until:
                    break
            else:
                starts += self._starts(pipeline, found)
        self._cursor = replace(self._cursor, database_failures=0, database_retry_at=0.0)
        return starts

    def _starts(self, pipeline: QueuePipeline, found: Peeked) -> list[Start]:
        """Ask the policy; a pipeline whose last runs failed waits before it is tried again."""
        name = pipeline.name
        if not found.waiting:
            self._ask(pipeline, Demand(0, False, 0, pipeline.batch_messages, pipeline.max_concurrency))
            self._said[name] = f"{name}: nothing waits"
            return []
        runs = self._world.runs(pipeline)
        # What others do says nothing about why runs fail here.
        if runs.failed_in_a_row and runs.last_failure is not None and runs.slots == runs.elsewhere:
            left = runs.last_failure + pipeline.retries.backoff.delay(runs.fruitless - 1) - self._world.now()
            if left > 0:
                failed, why = last_of(runs.failed_in_a_row, "run"), f". {runs.last_error}" if runs.last_error else ""
                self._said[name] = f"{name}: {failed} failed; next try in {left:.0f} s, {_wait(found)}{why}"
                return []
        is_limited = pipeline.retries.is_limited(runs.failed_attempts)
        most = 1 if is_limited else pipeline.max_concurrency
        demand = Demand(found.waiting, found.capped, runs.slots, pipeline.batch_messages, most)
        self._said[name] = f"{name}: {_wait(found)}, {count_of(runs.slots, 'slot')} in use"
        if runs.elsewhere:
            self._said[name] += f", {runs.elsewhere} of them on other machines"
        if is_limited:
            attempts = last_of(runs.failed_attempts, "attempt")
            self._said[name] += f"; one batch at a time, because {attempts} failed"
        many = f"{found.waiting:,}{' or more' if found.capped else ''}"
        return [Start(pipeline, slots, many) for slots in _slots(pipeline, self._ask(pipeline, demand), demand)]

    def _ask(self, pipeline: QueuePipeline, demand: Demand) -> int:
        """How many slots the policy starts; the cursor keeps what `ramp_up` has counted."""
        policy, counted = pipeline.concurrency_policy, self._cursor.ramp_up
        slots, memory = slots_to_start(policy, demand, counted.get(pipeline.name, RampUp()))
        if policy == "ramp_up":
            self._cursor = replace(self._cursor, ramp_up={**counted, pipeline.name: memory})
        return slots

    def _database_failed(self, error: QueuePipelineError) -> str:
        failures = self._cursor.database_failures + 1
        wait = DATABASE_BACKOFF.delay(failures)
        self._cursor = replace(self._cursor, database_failures=failures, database_retry_at=self._world.now() + wait)
        what = _WHAT.get(type(error), "is away")
        return f"the database {what}: {error}; next try in {wait:g} s" if failures == 1 else self._still_away()

    def _still_away(self) -> str:
        return f"the database still cannot be used after {self._cursor.database_failures} tries"

    def _wait_for_database(self) -> bool:
        """Wait until the database may be tried again; False if that is after the end of the tick."""
        world = self._world
        # No longer than any backoff is: the clock may have been set back since.
        retry_at = min(self._cursor.database_retry_at, world.now() + DATABASE_BACKOFF.longest)
        while world.now() < retry_at:
            if world.now() >= self._until or world.is_stopping():
                return False
            world.sleep(min(retry_at, self._until) - world.now())
        return True


def _slots(pipeline: QueuePipeline, slots: int, demand: Demand) -> list[int]:
    """Slots as runs. A run takes as many batches at once as it may, so that it grows with its queue by itself;
    the policy `ramp_up` starts them one by one, and says how many.
    """
    runs = share(slots, pipeline.slots)
    if not slots or pipeline.concurrency_policy == "ramp_up":
        return runs
    left = demand.room - sum(runs[:-1])
    return [*runs[:-1], min(pipeline.slots, left)]


def _wait(found: Peeked) -> str:
    """`1 message waits`, `1,000 or more messages wait`."""
    is_one = found.waiting == 1 and not found.capped
    return f"{count_of(found.waiting, 'message', ' or more' if found.capped else '')} {'waits' if is_one else 'wait'}"
