"""The peek loop: watches the queues of all pipelines, and decides when runs are started.

It gets queues, runs and the clock from its caller: the sensor gives the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from queue_pipeline.orchestration.watch.watched_pipelines import WatchedPipeline, read_pipelines
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.concurrency import Demand, RampUp, share, slots_to_start
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    LockTimeoutError,
    QueueNotFoundError,
    TableNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.transport.texts import count_of

DATABASE_BACKOFF = Backoff(first=1.0, longest=30.0)
STOPPING = "the code server stops"
_WHAT = {AccessDeniedError: "refuses access", LockTimeoutError: "is locked", TransientDatabaseError: "is busy"}
"""What is wrong with a database, by its error; any other one is away."""


@dataclass(frozen=True, slots=True)
class Peeked:
    """What a look at one queue found."""

    waiting: int
    capped: bool = False


@dataclass(frozen=True, slots=True)
class Runs:
    """The runs of a pipeline: slots at work, and how the last ones ended."""

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
    """What the loop sees of the world."""

    def peek(self, pipeline: QueuePipeline) -> Peeked:
        """Count what waits."""

    def runs(self, pipeline: QueuePipeline) -> Runs:
        """Count who is at work."""

    def paused(self) -> set[str]:
        """The names of pipelines that are held."""

    def end_old_runs(self, pipelines: Sequence[QueuePipeline]) -> None:
        """Have runs end that work with other code than the one that is deployed now."""

    def look_after(self, until: float) -> None:
        """Do what is due beside the peeks, if it can begin before a time."""

    def move_due(self) -> float:
        """Move delayed messages that are due; returns the seconds until the next look at them."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """What is kept from one tick to the next."""

    ramp_up: Mapping[str, RampUp] = field(default_factory=dict)
    database_failures: int = 0
    database_retry_at: float = 0.0
    observed: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    pipelines: Sequence[WatchedPipeline] = ()
    """What the loop watches, for those who read the cursor: the loop itself knows it."""

    def dump(self) -> str:
        """As the text that Dagster keeps."""
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def load(text: str | None) -> Cursor:
        """From the text that Dagster kept; without it, or if it cannot be read, the loop begins anew."""
        try:
            values: dict[str, Any] = json.loads(text or "{}")
            ramp_up = {
                name: RampUp(**{counter: int(count) for counter, count in memory.items()})
                for name, memory in values.get("ramp_up", {}).items()
            }
            observed = {name: (float(when), str(what)) for name, (when, what) in values.get("observed", {}).items()}
            failures, retry_at = values.get("database_failures", 0), values.get("database_retry_at", 0.0)
            pipelines = tuple(read_pipelines(values).values())
            return Cursor(ramp_up, max(0, int(failures)), float(retry_at), observed, pipelines)
        except (ValueError, TypeError, AttributeError, OverflowError):
            return Cursor()


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


def tick(
    pipelines: Sequence[QueuePipeline],
    world: Surroundings,
    cursor: Cursor,
    *,
    now: Callable[[], float],
    sleep: Callable[[float], None],
    budget_seconds: float,
    is_stopping: Callable[[], bool] = lambda: False,
) -> Tick:
    """Peek until something waits, the time of the tick is over, or the process stops.

    The whole tick returns at once when a run is to be started: nothing is submitted before it does.
    """
    end = now() + budget_seconds
    next_peek = {pipeline.name: 0.0 for pipeline in pipelines}
    said: dict[str, str] = {}
    if cursor.database_failures and not _wait_for_database(cursor, end, now, sleep, is_stopping):
        return Tick((), cursor, (_away(cursor),))
    while True:
        if is_stopping():
            # A run that is requested now would not be started, and count as failed.
            return Tick((), cursor, (STOPPING,))
        starts: list[Start] = []
        ready = [pipeline for pipeline in pipelines if now() >= next_peek[pipeline.name]]
        try:
            world.end_old_runs(pipelines)
            paused = world.paused() if ready else set()
            for pipeline in ready:
                next_peek[pipeline.name] = now() + pipeline.peek_delay
                if pipeline.name in paused:
                    said[pipeline.name] = f"{pipeline.name} is paused"
                    continue
                try:
                    found = world.peek(pipeline)
                except (QueueNotFoundError, AccessDeniedError) as error:
                    said[pipeline.name] = str(error)
                    continue
                except LockTimeoutError as error:
                    # It has waited for long: the others come first, and not all of them if they are locked, too.
                    said[pipeline.name], next_peek[pipeline.name] = str(error), end
                    if now() >= end:
                        break
                    continue
                new, cursor, said[pipeline.name] = _decide(pipeline, found, world, cursor, now())
                starts += new
            cursor = replace(cursor, database_failures=0, database_retry_at=0.0)
        except (DatabaseUnavailableError, TransientDatabaseError, AccessDeniedError) as error:
            failures = cursor.database_failures + 1
            wait = DATABASE_BACKOFF.delay(failures)
            cursor = replace(cursor, database_failures=failures, database_retry_at=now() + wait)
            what = _WHAT.get(type(error), "is away")
            reason = f"the database {what}: {error}; next try in {wait:g} s" if failures == 1 else _away(cursor)
            return Tick((), cursor, (reason,))
        except TableNotFoundError as error:
            queues = ", ".join(dict.fromkeys(pipeline.input_queue for pipeline in pipelines))
            return Tick((), cursor, (f"{queues}: {error}",))
        world.look_after(end)
        # Also when runs are started: they move what is due in their own queues only.
        due_seconds = world.move_due()
        if starts and not is_stopping():
            return Tick(starts, cursor, tuple(said.values()))
        pause = min(min(next_peek.values(), default=end) - now(), due_seconds)
        if not pipelines or now() + max(pause, 0.0) >= end:
            return Tick((), cursor, tuple(said.values()))
        if pause > 0:
            sleep(pause)


def _decide(
    pipeline: QueuePipeline, found: Peeked, world: Surroundings, cursor: Cursor, now: float
) -> tuple[list[Start], Cursor, str]:
    """Ask the policy; a pipeline whose last runs failed waits before it is tried again."""
    if not found.waiting:
        nothing = Demand(0, False, 0, pipeline.batch_messages, pipeline.max_concurrency)
        return [], _ask(pipeline, nothing, cursor)[1], f"{pipeline.name}: nothing waits"
    runs = world.runs(pipeline)
    # What others do says nothing about why runs fail here.
    if runs.failed_in_a_row and runs.last_failure is not None and runs.slots == runs.elsewhere:
        left = runs.last_failure + pipeline.retries.backoff.delay(runs.fruitless - 1) - now
        if left > 0:
            waits = f"next try in {left:.0f} s, {_wait(found)}"
            why = f". {runs.last_error}" if runs.last_error else ""
            return [], cursor, f"{pipeline.name}: the last {count_of(runs.failed_in_a_row, 'run')} failed; {waits}{why}"
    is_limited = pipeline.retries.is_limited(runs.failed_attempts)
    most = 1 if is_limited else pipeline.max_concurrency
    demand = Demand(found.waiting, found.capped, runs.slots, pipeline.batch_messages, most)
    slots, cursor = _ask(pipeline, demand, cursor)
    many = f"{found.waiting:,}{' or more' if found.capped else ''}"
    starts = [Start(pipeline, slots, many) for slots in _slots(pipeline, slots, demand)]
    sentence = f"{pipeline.name}: {_wait(found)}, {count_of(runs.slots, 'slot')} at work"
    if runs.elsewhere:
        sentence += f", {runs.elsewhere} of them on other machines"
    if is_limited:
        sentence += f"; one batch at a time, because the last {count_of(runs.failed_attempts, 'attempt')} failed"
    return starts, cursor, sentence


def _ask(pipeline: QueuePipeline, demand: Demand, cursor: Cursor) -> tuple[int, Cursor]:
    """How many slots the policy starts; the cursor keeps what `ramp_up` has counted."""
    policy = pipeline.concurrency_policy
    slots, memory = slots_to_start(policy, demand, cursor.ramp_up.get(pipeline.name, RampUp()))
    if policy == "ramp_up":
        cursor = replace(cursor, ramp_up={**cursor.ramp_up, pipeline.name: memory})
    return slots, cursor


def _slots(pipeline: QueuePipeline, slots: int, demand: Demand) -> list[int]:
    """Slots as runs. A run takes as many batches at once as it may, so that it grows with its queue by itself;
    the policy `ramp_up` starts them one by one, and says how many.
    """
    runs = share(slots, pipeline.slots)
    if not slots or pipeline.concurrency_policy == "ramp_up":
        return runs
    left = demand.room - sum(runs[:-1])
    return [*runs[:-1], min(pipeline.slots, left)]


def _wait_for_database(
    cursor: Cursor,
    end: float,
    now: Callable[[], float],
    sleep: Callable[[float], None],
    is_stopping: Callable[[], bool],
) -> bool:
    """Wait until the database may be tried again; False if that is after the end of the tick."""
    # No longer than any backoff is: the clock may have been set back since.
    retry_at = min(cursor.database_retry_at, now() + DATABASE_BACKOFF.longest)
    while now() < retry_at:
        if now() >= end or is_stopping():
            return False
        sleep(min(retry_at, end) - now())
    return True


def _away(cursor: Cursor) -> str:
    return f"the database still cannot be used after {cursor.database_failures} tries"


def _wait(found: Peeked) -> str:
    """`1 message waits`, `1,000 or more messages wait`."""
    is_one = found.waiting == 1 and not found.capped
    return f"{count_of(found.waiting, 'message', ' or more' if found.capped else '')} {'waits' if is_one else 'wait'}"
