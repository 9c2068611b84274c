"""The sensor: the peek loop as Dagster ticks it."""

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import dagster as dg

from queue_pipeline.errors import ConfigurationError, QueuePipelineError
from queue_pipeline.orchestration.names import PIPELINE_TAG, SLOTS_TAG, Names
from queue_pipeline.orchestration.peek_loop import STOPPING, Cursor, Start, tick
from queue_pipeline.orchestration.resources import QueueTransportResource, transport_of
from queue_pipeline.orchestration.subscribing import Subscriber
from queue_pipeline.orchestration.watch.code_server import this_code_server
from queue_pipeline.orchestration.watch.queue_observations import observe_changes
from queue_pipeline.orchestration.watch.run_upkeep import Deployment, end_runs
from queue_pipeline.orchestration.watch.surroundings import DagsterSurroundings
from queue_pipeline.orchestration.watch.upkeep import Upkeep
from queue_pipeline.orchestration.watch.watched_pipelines import WatchedPipeline
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.transport.due_mover import DueMover

TICK_VARIABLE = "QUEUE_PIPELINE_TICK_SECONDS"
DEFAULT_TICK_SECONDS = 40.0
"""Dagster gives a tick 60 s; what is left is for the last peek, which may wait 15 s for a lock, and a slow machine."""
LONGEST_TICK_SECONDS = 42.0
LATEST_OBSERVATION_SECONDS = 44.0
"""After the beginning of the tick: an observation or a check may wait for a lock, too."""

logger = logging.getLogger(__name__)


def peek_sensor(
    pipelines: Sequence[QueuePipeline],
    jobs: Sequence[Any],
    status: dg.DefaultSensorStatus,
    code: SourceCode | None,
    names: Names,
) -> dg.SensorDefinition:
    """One sensor for all queues: every looping sensor holds a worker of the code server, and eight starve it."""
    upkeep, subscriber = Upkeep(pipelines), Subscriber(pipelines)

    @dg.sensor(
        name=names.peek_sensor,
        jobs=list(jobs),
        required_resource_keys={names.transport},
        minimum_interval_seconds=1,
        default_status=status,
        description=(
            "Peeks at the queues of all pipelines and starts runs when messages wait. While it is switched on, it also "
            "moves delayed messages that are due, releases what ended runs hold, and checks pipelines. Click on the "
            "result of a tick below: it shows the runs that the tick started, or the reason why it started none."
        ),
    )
    def peek_queues(context: dg.SensorEvaluationContext, **_: object) -> dg.SensorResult:
        # Dagster adds the resources by their keys when the sensor is called as a function, and in no other case.
        began, seconds, server = time.time(), tick_seconds(), this_code_server()
        transport = transport_of(context, names)
        # A preview is the first tick that Dagster knows of: it peeks once, and changes nothing.
        is_real = bool(pipelines) and seconds > 0 and context.last_tick_completion_time is not None
        mover = _mover(transport, pipelines) if is_real else None
        database = transport.transport()
        place = Deployment(context.instance, database, _location(context), server, names)
        world = DagsterSurroundings(place, code, mover, upkeep if is_real else None)
        unsubscribed = subscriber.subscribe(database) if is_real else []
        until = began + seconds if is_real else began
        outcome = tick(pipelines, world, Cursor.load(context.cursor), until=until)
        if server.is_stopping:
            _end_runs(place)
            return dg.SensorResult(skip_reason=STOPPING, cursor=outcome.cursor.dump())
        cursor = replace(outcome.cursor, pipelines=tuple(map(WatchedPipeline.of, pipelines)))
        said = [*outcome.said, *_due_trouble(mover, outcome.said)]
        events: list[dg.AssetObservation | dg.AssetCheckEvaluation] = []
        if not cursor.database_failures:
            latest = began + LATEST_OBSERVATION_SECONDS
            observations, observed = observe_changes(names, pipelines, database, cursor.observed, until=latest)
            cursor = replace(cursor, observed=observed)
            events += [*observations, *(upkeep.take_evaluations(lambda: time.time() < latest) if is_real else ())]
            said += [*unsubscribed, *upkeep.troubles()]
        elif cursor.database_failures == 1:
            context.log.warning(outcome.said[0])
        requests = [_run_request(names, start) for start in outcome.starts]
        return dg.SensorResult(
            run_requests=requests or None,
            skip_reason=None if requests else dg.SkipReason("; ".join(said) or "there are no pipelines"),
            cursor=cursor.dump(),
            asset_events=events,
        )

    return peek_queues


def tick_seconds() -> float:
    """How long a tick may loop; `QUEUE_PIPELINE_TICK_SECONDS` shortens it."""
    given = os.environ.get(TICK_VARIABLE)
    if given is None:
        return DEFAULT_TICK_SECONDS
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= LONGEST_TICK_SECONDS:
        raise ConfigurationError(f"{TICK_VARIABLE} is {given!r}; give 0 to {LONGEST_TICK_SECONDS:g} seconds")
    return seconds


def _location(context: dg.SensorEvaluationContext) -> str | None:
    return context.code_location_origin.location_name if context.code_location_origin is not None else None


def _end_runs(place: Deployment) -> None:
    """Have the runs that would be killed with a code server finish their batches and end: it waits for them."""
    try:
        end_runs(place, place.server.runs, STOPPING)
    except QueuePipelineError as error:
        logger.warning("runs were not asked to end, though %s: %s", STOPPING, error)


def _mover(resource: QueueTransportResource, pipelines: Sequence[QueuePipeline]) -> DueMover:
    """Moves what is due in the input queues; forwards that fail go to the error queue of their pipeline."""
    return DueMover((resource.transport(error_queue=each.error_queue), each.input_queue) for each in pipelines)


def _due_trouble(mover: DueMover | None, said: Sequence[str]) -> list[str]:
    """Why delayed messages do not move, unless the tick reports the same error."""
    trouble = mover.last_error if mover is not None else None
    if trouble is None or any(trouble in sentence for sentence in said):
        return []
    return [f"delayed messages do not move: {trouble}"]


def _run_request(names: Names, start: Start) -> dg.RunRequest:
    """No run_key: Dagster never accepts the same one again, even after a failed run. Runs are counted by tag."""
    tags = {
        PIPELINE_TAG: names.pipeline_tag(start.pipeline),
        SLOTS_TAG: str(start.slots),
        "queue_pipeline/waiting": start.waiting,
    }
    return dg.RunRequest(job_name=names.job(start.pipeline), tags=tags)
