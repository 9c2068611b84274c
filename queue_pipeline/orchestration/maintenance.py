"""Maintenance: purge, due messages, observations and subscriptions, each a job that a schedule or a person can run."""

import os
import time
from collections.abc import Callable, Sequence

import dagster as dg
from pydantic import Field

from queue_pipeline.errors import QueueNotFoundError
from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.external_assets import queues_of
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.op_job import op_job
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.orchestration.storage.old_runs import REMOVE_JOB, keep_days
from queue_pipeline.orchestration.subscribing import subscribe
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.texts import count_of
from queue_pipeline.transport.transport import DEFAULT_PURGE_BATCH

PURGE_JOB = "purge_expired"
AUDIT_JOB = "audit_indexes"
MOVE_SECONDS = 600.0
MOVE_PEEK_SECONDS = 0.5


class PurgeConfig(dg.Config):
    """How many messages are deleted at once."""

    batch: int = Field(DEFAULT_PURGE_BATCH, description="Messages per transaction.")


class MoveConfig(dg.Config):
    """How long the job waits for messages that are due soon."""

    linger_seconds: float = Field(
        60.0, description="Go on while a message is due within this time; at most 10 minutes."
    )


def maintenance_jobs(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.JobDefinition]:
    """The jobs over all queues of all pipelines."""
    queues = queues_of(pipelines)
    needs = {names.transport}

    @dg.op(
        name=names.named("purge"),
        required_resource_keys=needs,
        description="Deletes messages whose time to live is over, and processed messages of NGinn queues after their "
        "retention, batch by batch. Rows that other processes hold stay.",
    )
    def purge(context: dg.OpExecutionContext, config: PurgeConfig) -> None:
        database = transport_of(context, names).transport()
        counts: dict[str, int] = {}
        for queue in queues:
            try:
                counts[queue] = database.purge(queue, config.batch)
            except QueueNotFoundError as error:
                context.log.warning(str(error))
                continue
            context.log.info(f"purged {count_of(counts[queue], 'message')} of {queue}")
        context.add_output_metadata({f"purged_{queue}": count for queue, count in counts.items()})

    @dg.op(
        name=names.named("move"),
        required_resource_keys=needs,
        description="Moves delayed messages into their queues as they become due, and waits for those due soon.",
    )
    def move(context: dg.OpExecutionContext, config: MoveConfig) -> None:
        transport = transport_of(context, names)
        inputs = [(transport.transport(error_queue=each.error_queue), each.input_queue) for each in pipelines]
        moved = move_until_quiet(inputs, config.linger_seconds)
        context.add_output_metadata({"moved": moved})
        context.log.info(f"moved {count_of(moved, 'due message')}")

    @dg.op(
        name=names.named("observe"), required_resource_keys=needs, description="Records depth and age of every queue."
    )
    def observe(context: dg.OpExecutionContext) -> None:
        metadata.observe_queues(context, names, transport_of(context, names).transport(), pipelines)

    @dg.op(
        name=names.named("subscribe_all"),
        required_resource_keys=needs,
        description="Subscribes the input queues of pipelines to the events that they declare.",
    )
    def subscribe_all(context: dg.OpExecutionContext) -> None:
        new, database = 0, transport_of(context, names).transport()
        for pipeline in pipelines:
            for topic in subscribe(database, pipeline):
                new += 1
                context.log.info(f"subscribed {pipeline.endpoint_name} to {topic}")
        context.add_output_metadata({"subscribed": new})

    by_hand = "Moves due messages by hand. The peek sensor moves them while it is switched on."
    subscribes = "Subscribes pipelines to their events by hand. The peek sensor does so once while it is switched on."
    return [
        op_job(purge, names, PURGE_JOB, "Deletes expired messages of every queue.", PurgeConfig),
        op_job(move, names, "move_due", by_hand, MoveConfig),
        op_job(observe, names, "observe_queues", "Observes every queue now."),
        op_job(subscribe_all, names, "subscribe_pipelines", subscribes),
    ]


def maintenance_schedules(status: dg.DefaultScheduleStatus, names: Names) -> list[dg.ScheduleDefinition]:
    """When maintenance runs; the UI changes it. History is removed where the environment says how long it is kept."""
    times = {PURGE_JOB: "17 * * * *", AUDIT_JOB: "23 4 * * *", REMOVE_JOB: "41 3 * * *"}
    off = {REMOVE_JOB} if keep_days(os.environ) is None else set()
    return [
        dg.ScheduleDefinition(
            name=names.named(f"{job}_schedule"),
            job_name=names.named(job),
            cron_schedule=cron,
            default_status=dg.DefaultScheduleStatus.STOPPED if job in off else status,
        )
        for job, cron in times.items()
    ]


def move_until_quiet(
    queues: Sequence[tuple[QueueTransport, str]],
    linger_seconds: float,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Move what is due, and go on while something is due within the linger; returns how many were moved."""
    total, end = 0, now() + MOVE_SECONDS
    while True:
        due: list[float] = []
        for transport, queue in queues:
            table = transport.resolve(queue)
            try:
                total += transport.move_due(table)
                seconds = transport.next_due_seconds(table)
            except QueueNotFoundError:
                continue
            due += [] if seconds is None else [seconds]
        if not due or min(due) > linger_seconds or now() >= end:
            return total
        sleep(min(max(min(due), 0.0), MOVE_PEEK_SECONDS))
