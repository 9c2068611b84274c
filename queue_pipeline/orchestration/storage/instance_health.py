"""What Dagster's storage says of the peek loop and of the runs, read without loading any definitions."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, SensorInstigatorData, TickStatus

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.orchestration.names import PEEK_SENSOR, PIPELINE_TAG, Names, owner
from queue_pipeline.orchestration.watch.watched_pipelines import WatchedPipeline, pipelines_of
from queue_pipeline.transport.operations.queue_health import HealthFinding

HOME_VARIABLE = "DAGSTER_HOME"
LAUNCHED = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
SENSOR_DAEMON = "SENSOR"
LONGEST_ERROR = 300
DAEMON_SECONDS = 90.0
"""A daemon reports every 30 s: one that has not for this long does not."""


class InstanceError(QueuePipelineError):
    """The storage of Dagster's instance cannot be read."""


@dataclass(frozen=True, slots=True)
class PeekLoop:
    """The peek sensor of one code location."""

    location: str
    prefix: str
    """What the names of its pipelines begin with in Dagster."""
    is_on: bool
    last_tick_seconds: float | None
    """How long ago a tick last ended well; None if there never was one."""
    last_error: str | None
    """Why the last tick failed, if it did."""
    pipelines: Mapping[str, WatchedPipeline]

    @property
    def names(self) -> Names:
        """The names of its pipelines in Dagster."""
        return Names(self.prefix)

    def findings(self, tick_seconds: float, daemon_seconds: float | None) -> list[HealthFinding]:
        """Problems: it is off, never ticked, or ticked too long ago."""
        subject = f"sensor {self.names.peek_sensor} of {self.location}"
        if not self.is_on:
            return [HealthFinding("sensor", subject, f"the {subject} is off: it starts no runs")]
        age = self.last_tick_seconds
        if age is not None and age <= tick_seconds:
            return []
        last = "has never ended a tick" if age is None else f"ended its last tick {age:,.0f} s ago"
        if daemon_seconds is None or daemon_seconds > max(tick_seconds, DAEMON_SECONDS):
            check, where = "daemon", "the daemon does not report: start it again"
        else:
            check, where = "ticks", "the daemon reports: start the code server again, or reload the code location"
        why = "" if self.last_error is None else f" Its last tick failed: {self.last_error}"
        return [HealthFinding(check, subject, f"the {subject} {last}; {where}.{why}")]


@dataclass(frozen=True, slots=True)
class LaunchedRun:
    """A run that Dagster shows as launched."""

    run_id: str
    pipeline: str
    status: str
    seconds: float
    """Since it was launched."""

    @property
    def owner(self) -> str:
        """Under which name it holds its slots."""
        return owner(self.run_id)


@dataclass(frozen=True, slots=True)
class InstanceSeen:
    """What the storage says."""

    loops: Sequence[PeekLoop]
    daemon_seconds: float | None
    """How long ago the daemon that ticks sensors last reported."""
    runs: Sequence[LaunchedRun]

    @property
    def pipelines(self) -> dict[str, WatchedPipeline]:
        """The pipelines of all peek loops that are on, by the tag of their runs."""
        return {
            loop.names.named(name): one for loop in self.loops if loop.is_on for name, one in loop.pipelines.items()
        }

    def findings(self, tick_seconds: float) -> list[HealthFinding]:
        """Problems of the peek loops."""
        if not self.loops:
            text = f"the sensor {PEEK_SENSOR} was never switched on: it starts no runs"
            return [HealthFinding("sensor", PEEK_SENSOR, text)]
        return [one for loop in self.loops for one in loop.findings(tick_seconds, self.daemon_seconds)]

    def without_slots(self, owners: Collection[str]) -> list[LaunchedRun]:
        """Runs that are none of the owners of slots and batches, though they were launched long enough ago."""
        limits = {name: one.start_seconds for name, one in self.pipelines.items()}
        quiet = [run for run in self.runs if run.owner not in owners and run.pipeline in limits]
        return [run for run in quiet if run.seconds > limits[run.pipeline]]


def look(location: str | None = None, prefix: str | None = None) -> InstanceSeen:
    """Read the storage of `DAGSTER_HOME`: all code locations or one, all prefixes or one."""
    _check_home()
    now = time.time()
    with dg.DagsterInstance.get() as instance:
        states = instance.all_instigator_state(instigator_type=InstigatorType.SENSOR)
        loops = [
            _loop(instance, state, names.prefix, now)
            for state in states
            if (names := Names.of_sensor(state.name)) is not None
            and prefix in (None, names.prefix)
            and location in (None, state.repository_selector.location_name)
        ]
        heartbeat = instance.get_daemon_heartbeats().get(SENSOR_DAEMON)
        pipelines = sorted({loop.names.named(name) for loop in loops for name in loop.pipelines})
        chosen = dg.RunsFilter(statuses=LAUNCHED, tags={PIPELINE_TAG: pipelines})
        records = instance.get_run_records(chosen) if pipelines else []
        runs = [
            LaunchedRun(
                record.dagster_run.run_id,
                record.dagster_run.tags[PIPELINE_TAG],
                record.dagster_run.status.value,
                now - (record.start_time or record.create_timestamp.timestamp()),
            )
            for record in records
        ]
    return InstanceSeen(loops, None if heartbeat is None else now - heartbeat.timestamp, runs)


def _loop(instance: dg.DagsterInstance, state: InstigatorState, prefix: str, now: float) -> PeekLoop:
    data = state.instigator_data if isinstance(state.instigator_data, SensorInstigatorData) else SensorInstigatorData()
    ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=2)
    ended = [tick for tick in ticks if tick.status is not TickStatus.STARTED][:1]
    error = ended[0].tick_data.error if ended and ended[0].status is TickStatus.FAILURE else None
    # Not from the state of the sensor, where the daemon forgets it as soon as the next tick begins.
    good = instance.get_ticks(
        state.instigator_origin_id, state.selector_id, limit=1, statuses=[TickStatus.SUCCESS, TickStatus.SKIPPED]
    )
    since = (good[0].end_timestamp or good[0].timestamp) if good else None
    return PeekLoop(
        location=state.repository_selector.location_name,
        prefix=prefix,
        # One that follows its code is on or off there; if it is off, it has no ticks.
        is_on=state.status is not InstigatorStatus.STOPPED,
        last_tick_seconds=None if since is None else now - since,
        last_error=None if error is None else " ".join(error.message.split())[:LONGEST_ERROR],
        pipelines=pipelines_of(data.cursor),
    )


def _check_home() -> None:
    """Refuse a home that Dagster has not used yet: to open it would create its tables, as services that start do."""
    home = Path(os.environ[HOME_VARIABLE]).expanduser()
    if not home.is_dir():
        raise InstanceError(f"{HOME_VARIABLE} is {home}, which is no folder")
    settings = home / "dagster.yaml"
    is_default = not settings.is_file() or not re.search(r"^(run_)?storage\s*:", settings.read_text(), re.MULTILINE)
    if is_default and not (home / "history" / "runs.db").is_file():
        raise InstanceError(f"Dagster has no storage in {home} yet; create it once: dagster instance migrate")
