"""Maintenance: purge, index audit, due messages and subscriptions, each a job that a schedule or a person can run."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.orchestration.storage.old_runs import REMOVE_JOB, REMOVE_OP, keep_days
from queue_pipeline.orchestration.subscribing import subscribe
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.errors import QueueNotFoundError

PURGE_JOB = "purge_expired"
AUDIT_JOB = "audit_indexes"
MOVE_DUE_JOB = "move_due"
OBSERVE_JOB = "observe_queues"
SUBSCRIBE_JOB = "subscribe_pipelines"
MAINTENANCE_NAMES = (
    "purge",
    "move",
    "observe",
    "subscribe_all",
    PURGE_JOB,
    AUDIT_JOB,
    MOVE_DUE_JOB,
    OBSERVE_JOB,
    SUBSCRIBE_JOB,
    REMOVE_OP,
    REMOVE_JOB,
)
"""Ops and jobs, whose names no pipeline can have."""
MOVE_LINGER_SECONDS = 60.0
MOVE_SECONDS = 600.0
MOVE_PEEK_SECONDS = 0.5


class PurgeConfig(dg.Config):
    """How purging is done."""

    batch: int = 10_000


class MoveConfig(dg.Config):
    """How long the mover of due messages stays."""

    linger_seconds: float = MOVE_LINGER_SECONDS


def maintenance_jobs(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.JobDefinition]:
    """The jobs over all queues of all pipelines."""
    queues = list(dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues))
    needs = {names.transport}

    @dg.op(
        name=names.named("purge"),
        required_resource_keys=needs,
        description="Deletes messages whose time to live is over, batch by batch, past rows that others hold.",
    )
    def purge(context: dg.OpExecutionContext, config: PurgeConfig) -> None:
        def purge_one(database: QueueTransport, queue: str) -> int:
            return database.purge(queue, config.batch)

        _on_each(context, transport_of(context, names).transport(), queues, purge_one, "purged")

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
        context.log.info(f"moved {moved:,} due messages")

    @dg.op(
        name=names.named("observe"),
        required_resource_keys=needs,
        description="Records depth and age of every queue.",
    )
    def observe(context: dg.OpExecutionContext) -> None:
        database = transport_of(context, names).transport()
        for pipeline in pipelines:
            metadata.observe_queues(context, names, database, pipeline)

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

    @dg.job(
        name=names.named(PURGE_JOB),
        executor_def=dg.in_process_executor,
        description="Deletes expired messages of every queue.",
    )
    def purge_job() -> None:
        purge()

    @dg.job(
        name=names.named(MOVE_DUE_JOB),
        executor_def=dg.in_process_executor,
        description="Moves due messages by hand; while the peek sensor is switched on they move by themselves.",
    )
    def move_job() -> None:
        move()

    @dg.job(name=names.named(OBSERVE_JOB), executor_def=dg.in_process_executor, description="Observes every queue now.")
    def observe_job() -> None:
        observe()

    @dg.job(
        name=names.named(SUBSCRIBE_JOB),
        executor_def=dg.in_process_executor,
        description="Makes the subscriptions of pipelines by hand; the peek sensor makes them once when it is on.",
    )
    def subscribe_job() -> None:
        subscribe_all()

    return [purge_job, move_job, observe_job, subscribe_job]


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
    """Move what is due, and stay while something is due within the linger; returns how many were moved."""
    total, end = 0, now() + MOVE_SECONDS
    while True:
        soonest: float | None = None
        for transport, queue in queues:
            table = transport.resolve(queue)
            try:
                total += transport.move_due(table)
                seconds = transport.next_due_seconds(table)
            except QueueNotFoundError:
                continue
            if seconds is not None:
                soonest = seconds if soonest is None else min(soonest, seconds)
        if soonest is None or soonest > linger_seconds or now() >= end:
            return total
        sleep(min(max(soonest, 0.0), MOVE_PEEK_SECONDS))


def _on_each(
    context: dg.OpExecutionContext,
    transport: QueueTransport,
    queues: Sequence[str],
    work: Callable[[QueueTransport, str], int],
    verb: str,
) -> None:
    counts: dict[str, Any] = {}
    for queue in queues:
        try:
            counts[queue] = work(transport, queue)
        except QueueNotFoundError as error:
            context.log.warning(str(error))
            continue
        context.log.info(f"{verb} {counts[queue]:,} messages of {queue}")
    context.add_output_metadata({f"{verb}_{queue}": count for queue, count in counts.items()})
