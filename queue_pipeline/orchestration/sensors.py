"""The sensors: the peek loop that starts runs, and those that release what failed and cancelled runs held."""

import os
import time
from collections.abc import Sequence
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import metadata, names
from queue_pipeline.orchestration.peek_loop import Cursor, Tick, tick
from queue_pipeline.orchestration.subscribing import subscribe_once
from queue_pipeline.orchestration.surroundings import DagsterSurroundings
from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.source_code import SourceCode
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline.transport.errors import ConfigurationError, QueuePipelineError

PEEK_SENSOR = "peek_queues"
TICK_VARIABLE = "QUEUE_PIPELINE_TICK_SECONDS"
DEFAULT_TICK_SECONDS = 40.0
"""Dagster gives a tick 60 s; what is left is for the last peek, which may wait 15 s for a lock, and a slow machine."""
LONGEST_TICK_SECONDS = 42.0
LATEST_OBSERVATION_SECONDS = 44.0
"""After the beginning of the tick: an observation may wait for a lock as well."""
OBSERVE_EVERY_SECONDS = 60.0
OBSERVE_CHANGES_EVERY_SECONDS = 10.0


def peek_sensor(
    pipelines: Sequence[QueuePipeline],
    jobs: Sequence[Any],
    status: dg.DefaultSensorStatus,
    code: SourceCode | None = None,
) -> dg.SensorDefinition:
    """One sensor for all queues: every looping sensor holds a worker of the code server, and eight starve it."""

    @dg.sensor(
        name=PEEK_SENSOR,
        jobs=list(jobs),
        minimum_interval_seconds=1,
        default_status=status,
        description=(
            "Peeks at the queues of all pipelines and starts runs when messages wait; while it is switched on, delayed "
            "messages move when they are due."
        ),
    )
    def peek_queues(context: dg.SensorEvaluationContext, transport: QueueTransportResource) -> dg.SensorResult:
        began = time.time()
        seconds = tick_seconds()
        is_real = bool(pipelines) and seconds > 0 and _is_switched_on(context, status)
        mover = _mover(transport, pipelines) if is_real else None
        database = transport.transport()
        world = DagsterSurroundings(context.instance, database, code, mover)
        unsubscribed = subscribe_once(transport, pipelines) if is_real else []
        outcome = tick(
            pipelines,
            world,
            Cursor.load(context.cursor),
            now=time.time,
            sleep=time.sleep,
            budget_seconds=max(0.0, began + seconds - time.time()),
        )
        observations, cursor = _observations(pipelines, database, outcome, until=began + LATEST_OBSERVATION_SECONDS)
        requests = [_run_request(start.pipeline, start.slots, start.waiting) for start in outcome.starts]
        if cursor.database_failures == 1:
            context.log.warning(outcome.said[0])
        said = [*outcome.said, *_trouble(mover, outcome), *_news(unsubscribed, outcome)]
        return dg.SensorResult(
            run_requests=requests or None,
            skip_reason=None if requests else dg.SkipReason("; ".join(said) or "there are no pipelines"),
            cursor=cursor.dump(),
            asset_events=observations,
        )

    return peek_queues


def release_sensors(status: dg.DefaultSensorStatus) -> list[dg.SensorDefinition]:
    """What failed and cancelled runs hold is let go at once, instead of when its lease runs out."""

    @dg.run_failure_sensor(
        name="release_claims_of_failed_runs",
        default_status=status,
        description="Lets go of the batches that a failed run still holds.",
        minimum_interval_seconds=5,
    )
    def on_failure(context: dg.RunFailureSensorContext, transport: QueueTransportResource) -> None:
        _release(context, transport, failed=True)

    @dg.run_status_sensor(
        name="release_claims_of_cancelled_runs",
        run_status=dg.DagsterRunStatus.CANCELED,
        default_status=status,
        description="Lets go of the batches that a cancelled run still holds.",
        minimum_interval_seconds=5,
    )
    def on_cancel(context: dg.RunStatusSensorContext, transport: QueueTransportResource) -> None:
        _release(context, transport, failed=False)

    return [on_failure, on_cancel]


def tick_seconds() -> float:
    """How long a tick may loop; `QUEUE_PIPELINE_TICK_SECONDS` shortens it, for previews."""
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


def _is_switched_on(context: dg.SensorEvaluationContext, declared: dg.DefaultSensorStatus) -> bool:
    """Whether the daemon ticks this sensor: a person may try a sensor that is off, and then nothing must be moved."""
    if context.instance.schedule_storage is None:
        return False
    location = context.code_location_origin.location_name if context.code_location_origin is not None else None
    for state in context.instance.all_instigator_state():
        place = state.repository_selector
        if state.name != PEEK_SENSOR or location not in (None, place.location_name):
            continue
        if context.repository_name in (None, place.repository_name):
            # Once reset to what the code says, a sensor is "declared in code" also where the code says off.
            by_code = state.status.value == "DECLARED_IN_CODE"
            return declared is dg.DefaultSensorStatus.RUNNING if by_code else state.status.value == "RUNNING"
    return False


def _mover(resource: QueueTransportResource, pipelines: Sequence[QueuePipeline]) -> DueMover:
    """Moves what is due in the input queues; forwards that fail go to the error queue of their pipeline."""
    return DueMover((resource.transport(error_queue=each.error_queue), each.input_queue) for each in pipelines)


def _trouble(mover: DueMover | None, outcome: Tick) -> list[str]:
    """What keeps delayed messages from moving, unless the tick met the same and reports it."""
    trouble = mover.last_error if mover is not None else None
    if trouble is None or any(trouble in told for told in outcome.said):
        return []
    return [f"delayed messages do not move: {trouble}"]


def _news(troubles: Sequence[str], outcome: Tick) -> list[str]:
    """What keeps events from arriving, unless the database is away, of which the tick tells."""
    return [] if outcome.cursor.database_failures else list(troubles)


def _run_request(pipeline: QueuePipeline, slots: int, waiting: int) -> dg.RunRequest:
    """No run_key: Dagster would refuse the same one for ever, after a failed run too. Runs are counted by tag."""
    tags = {
        names.PIPELINE_TAG: pipeline.name,
        names.SLOTS_TAG: str(slots),
        "queue_pipeline/waiting": str(waiting),
    }
    return dg.RunRequest(job_name=names.job_name(pipeline), tags=tags)


def _observations(
    pipelines: Sequence[QueuePipeline], transport: QueueTransport, outcome: Tick, *, until: float
) -> tuple[list[dg.AssetObservation], Cursor]:
    """Queues whose depth changed, and all of them once a minute; nothing while the database is away.

    A tick that is late, because a table is locked, leaves them out: Dagster would give it up.
    """
    cursor, events = outcome.cursor, []
    if cursor.database_failures:
        return [], cursor
    observed = dict(cursor.observed)
    inputs = {pipeline.input_queue: pipeline.error_queue for pipeline in pipelines}
    for queue in dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues):
        last, before = observed.get(queue, (0.0, ""))
        age = time.time() - last
        if age < OBSERVE_CHANGES_EVERY_SECONDS:
            continue
        if time.time() > until:
            break
        try:
            observation = metadata.queue_observation(transport, queue, inputs.get(queue))
        except QueuePipelineError:
            # A database that went away just now, or one queue that may not be read: no reason to lose the run requests.
            continue
        if observation is None:
            continue
        depth = str(observation.metadata["depth"].value)
        if depth != before or age >= OBSERVE_EVERY_SECONDS:
            observed[queue] = (time.time(), depth)
            events.append(observation)
    return events, Cursor(cursor.ramp_up, cursor.database_failures, cursor.database_retry_at, observed)


def _release(context: dg.RunStatusSensorContext, resource: QueueTransportResource, *, failed: bool) -> None:
    """Let go of what a run holds. One that failed lets go by itself: if it could not, it may have died of a message."""
    run_id = context.dagster_run.run_id
    transport = resource.transport()
    for claim in transport.claims.release_owner(names.owner(run_id), failed=failed):
        context.log.info(f"released {claim.messages:,} messages of {claim.queue}, held by run {run_id}")
    # After the claims, so that whoever takes a place finds its batch.
    if places := transport.receivers.release_owner(names.owner(run_id)):
        context.log.info(f"released {places} places, held by run {run_id}")
