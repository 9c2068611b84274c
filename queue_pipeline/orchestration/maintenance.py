"""Maintenance: purge, index audit, freed claims and due messages, each a job that a schedule or the CLI can run."""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import metadata, names
from queue_pipeline.orchestration.subscribing import subscribe
from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.claims import Claims
from queue_pipeline.transport.errors import ClaimLostError, QueueNotFoundError

PURGE_JOB = "purge_expired"
AUDIT_JOB = "audit_indexes"
CHECK_JOB = "check_pipelines"
FREE_CLAIMS_JOB = "free_claims"
MOVE_DUE_JOB = "move_due"
OBSERVE_JOB = "observe_queues"
SUBSCRIBE_JOB = "subscribe_pipelines"
MAINTENANCE_NAMES = (
    "purge",
    "free",
    "move",
    "observe",
    "subscribe_all",
    PURGE_JOB,
    AUDIT_JOB,
    CHECK_JOB,
    FREE_CLAIMS_JOB,
    MOVE_DUE_JOB,
    OBSERVE_JOB,
    SUBSCRIBE_JOB,
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


def maintenance_jobs(pipelines: Sequence[QueuePipeline]) -> list[dg.JobDefinition]:
    """The jobs over all queues of all pipelines."""
    queues = list(dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues))

    @dg.op(description="Deletes messages whose time to live is over, batch by batch, past rows that others hold.")
    def purge(context: dg.OpExecutionContext, config: PurgeConfig, transport: QueueTransportResource) -> None:
        def purge_one(database: QueueTransport, queue: str) -> int:
            return database.purge(queue, config.batch)

        _on_each(context, transport.transport(), queues, purge_one, "purged")

    @dg.op(description="Lets go of batches that ended runs hold; drops what is staged for none.")
    def free(context: dg.OpExecutionContext, transport: QueueTransportResource) -> None:
        database = transport.transport()
        freed = free_claims(
            database.claims,
            lambda owner: _has_ended(context.instance, owner),
            lambda owner: _died(context.instance, owner),
        )
        for claim in freed:
            context.log.info(f"freed {claim.messages:,} messages of {claim.queue}, held by {claim.owner}")
        places = sum(
            database.receivers.release_owner(receiver.owner)
            for receiver in database.receivers.list()
            if _has_ended(context.instance, receiver.owner)
        )
        swept = database.outbox.sweep()
        context.add_output_metadata(
            {"messages": sum(claim.messages for claim in freed), "places": places, "staged": swept}
        )

    @dg.op(description="Moves delayed messages into their queues as they become due, and waits for those due soon.")
    def move(context: dg.OpExecutionContext, config: MoveConfig, transport: QueueTransportResource) -> None:
        inputs = [(transport.transport(error_queue=each.error_queue), each.input_queue) for each in pipelines]
        moved = move_until_quiet(inputs, config.linger_seconds)
        context.add_output_metadata({"moved": moved})
        context.log.info(f"moved {moved:,} due messages")

    @dg.op(description="Records depth and age of every queue.")
    def observe(context: dg.OpExecutionContext, transport: QueueTransportResource) -> None:
        database = transport.transport()
        for pipeline in pipelines:
            metadata.observe_queues(context, database, pipeline)

    @dg.op(description="Subscribes the input queues of pipelines to the events that they declare.")
    def subscribe_all(context: dg.OpExecutionContext, transport: QueueTransportResource) -> None:
        new = 0
        for pipeline in pipelines:
            for topic in subscribe(transport.transport(), pipeline):
                new += 1
                context.log.info(f"subscribed {pipeline.endpoint_name} to {topic}")
        context.add_output_metadata({"subscribed": new})

    @dg.job(name=PURGE_JOB, description="Deletes expired messages of every queue.")
    def purge_job() -> None:
        purge()

    @dg.job(name=FREE_CLAIMS_JOB, description="Frees batches that nobody works on any more.")
    def free_job() -> None:
        free()

    @dg.job(
        name=MOVE_DUE_JOB,
        description="Moves due messages by hand; while the peek sensor is switched on they move by themselves.",
    )
    def move_job() -> None:
        move()

    @dg.job(name=OBSERVE_JOB, description="Observes every queue now.")
    def observe_job() -> None:
        observe()

    @dg.job(
        name=SUBSCRIBE_JOB,
        description="Makes the subscriptions of pipelines by hand; the peek sensor makes them once when it is on.",
    )
    def subscribe_job() -> None:
        subscribe_all()

    return [purge_job, free_job, move_job, observe_job, subscribe_job]


def maintenance_schedules(status: dg.DefaultScheduleStatus) -> list[dg.ScheduleDefinition]:
    """When maintenance runs; the UI changes it."""
    times = {
        PURGE_JOB: "17 * * * *",
        AUDIT_JOB: "23 4 * * *",
        FREE_CLAIMS_JOB: "*/5 * * * *",
        CHECK_JOB: "3-59/5 * * * *",
    }
    return [
        dg.ScheduleDefinition(name=f"{job}_schedule", job_name=job, cron_schedule=cron, default_status=status)
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
                total += transport.delayed.move_due(table)
                seconds = transport.delayed.next_due_seconds(table)
            except QueueNotFoundError:
                continue
            if seconds is not None:
                soonest = seconds if soonest is None else min(soonest, seconds)
        if soonest is None or soonest > linger_seconds or now() >= end:
            return total
        sleep(min(max(soonest, 0.0), MOVE_PEEK_SECONDS))


def free_claims(claims: Claims, has_ended: Callable[[str], bool], died: Callable[[str], bool]) -> list[Claim]:
    """Let go of what ended owners hold, as it was listed; returns what was freed.

    A claim that another owner took over since the listing is left alone. One whose lease ran out needs no help: the
    next receiver takes it over, unless its owner lives and renews it.
    """
    freed = []
    for status in claims.list():
        claim = status.held
        if claim is None or not has_ended(claim.owner):
            continue
        with contextlib.suppress(ClaimLostError):
            claims.release(claim, failed=died(claim.owner))
            freed.append(claim)
    return freed


def _died(instance: dg.DagsterInstance, owner: str) -> bool:
    """Whether an ended run may have died of its messages: nobody cancelled it."""
    run = instance.get_run_by_id(names.run_of(owner) or "")
    return run is None or run.status is not dg.DagsterRunStatus.CANCELED


def _has_ended(instance: dg.DagsterInstance, owner: str) -> bool:
    """Whether an owner is a run of this instance that is over."""
    run_id = names.run_of(owner)
    run = instance.get_run_by_id(run_id) if run_id else None
    return run is not None and run.is_finished


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
