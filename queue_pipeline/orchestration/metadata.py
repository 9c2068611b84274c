"""What people look at: the figures of runs and queues as Dagster metadata; numbers plot themselves in the UI."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import names
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Step
from queue_pipeline.processing.results.failed_copies import ids_of
from queue_pipeline.processing.run.recovery import Attempted
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.processing.spark.internals.parts import missing_parts
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.errors import QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.refusals import Refusal, few_of_each
from queue_pipeline.transport.status import QueueStatus

LONGEST_ERROR = 300
FEW_IDS = 5


def declaration(pipeline: QueuePipeline) -> dict[str, Any]:
    """What a pipeline was declared with, for its asset's page."""
    return {
        "input_queue": pipeline.input_queue,
        "output_queues": ", ".join(output.queue for output in pipeline.output_queues) or "none",
        "publishes": ", ".join(event.name for event in pipeline.publishes) or "nothing",
        "subscribes_to": ", ".join(pipeline.subscribes_to) or "nothing",
        "error_queue": pipeline.error_queue,
        "retries": f"{pipeline.retries.immediate_retries} at once, {pipeline.retries.delayed_retries} later, "
        f"{pipeline.retries.attempts} attempts in all",
        "audit_queue": pipeline.audit_queue or "none",
        "transaction_mode": pipeline.transaction_mode.value,
        "batch": f"{pipeline.batch_messages:,} messages, {pipeline.batch_bytes:,} bytes",
        "max_concurrency": pipeline.max_concurrency,
        "concurrency_policy": pipeline.concurrency_policy,
        "peek_delay_s": pipeline.peek_delay,
    }


def of_run(figures: RunFigures, reason: str, error_queue: str) -> dict[str, Any]:
    """The figures of a run."""
    values: dict[str, Any] = {
        "messages_in": figures.messages,
        "messages_out": figures.sent,
        "messages_without_outcome": figures.without_outcome,
        "messages_failed": figures.failed,
        "messages_retried_later": figures.delayed,
        "failed_attempts": figures.failed_attempts,
        "messages_expired": figures.expired,
        "table_rows": figures.table_rows,
        "batches": figures.batches,
        "attempts": figures.attempts,
        "bytes_in": figures.bytes,
        "messages_per_second": round(figures.messages_per_second, 1),
        "busy_s": round(figures.busy_seconds, 3),
        "read_s": round(figures.read_seconds, 3),
        "transform_s": round(figures.transform_seconds, 3),
        "complete_s": round(figures.complete_seconds, 3),
        "ended_because": reason,
    }
    if (latency := figures.latency) is not None:
        values["latency_p50_s"] = round(latency.p50, 3)
        values["latency_p95_s"] = round(latency.p95, 3)
        values["latency_max_s"] = round(latency.longest, 3)
    if figures.slowest:
        values["slowest"] = _table({"id": one, "seconds": round(seconds, 3)} for one, seconds in figures.slowest)
    if figures.failures:
        values["failed"] = _table(
            {
                "id": one.message_id or one.id,
                "type": one.message_type or "",
                "error_type": one.error_type,
                "error": one.error[:LONGEST_ERROR],
                "retry": retry_command(error_queue, one.message_id or one.id),
            }
            for one in figures.failures
        )
    if missing := missing_parts():
        values["spark_parts_missing"] = len(missing)
        values["spark_parts_lost"] = _table({"part": part, "lost": lost} for part, lost in missing.items())
    return values


def retry_command(error_queue: str, *which: str) -> str:
    """What a person types to return messages to where they failed, once the reason is mended."""
    queue = [] if error_queue == "error" else ["--error-queue", error_queue]
    return shlex.join(["queue-pipeline", *queue, "errors", "retry", *which])


def counted(count: int, more: str = "") -> str:
    """So many messages, in words."""
    return f"{count:,}{more} message{'' if count == 1 and not more else 's'}"


def lines(pipeline: QueuePipeline, attempted: Attempted) -> Iterator[tuple[int, str]]:
    """What went wrong in an attempt, and how it goes on."""
    if attempted.failure is not None:
        reason = f"{attempted.failure.error_type}: {attempted.failure.message[:LONGEST_ERROR]}"
        if attempted.step is Step.RETRY:
            claim = attempted.again[0]
            what = f"{counted(claim.messages)} failed (attempt {claim.failures})"
            yield logging.INFO, f"{what} and will be tried again at once: {reason}"
        elif attempted.step is Step.WAIT:
            yield logging.INFO, f"1 message failed and waits, uncounted, while others are tried: {reason}"
        elif attempted.step is Step.ISOLATE:
            messages = counted(sum(claim.messages for claim in attempted.again))
            died = "were in work when Spark or a part of it died"
            yield logging.WARNING, f"{messages} {died}, and are tried alone: {reason}"
        elif attempted.step is Step.SPLIT and attempted.again:
            sizes = " and ".join(f"{claim.messages:,}" for claim in attempted.again)
            yield logging.INFO, f"a batch failed and will be tried in parts of {sizes} messages: {reason}"
        else:
            failed = [one for report in attempted.reports for one in report.failed]
            delayed = sum(report.delayed for report in attempted.reports)
            if delayed:
                yield logging.WARNING, f"{counted(delayed)} failed and will be tried again later: {reason}"
            if failed:
                ids = ", ".join(ids_of(failed[:FEW_IDS])) + (", …" if len(failed) > FEW_IDS else "")
                yield logging.ERROR, f"{counted(len(failed))} moved to {pipeline.failed_in} ({ids}): {reason}"
    for report in attempted.reports:
        if attempted.failure is None:
            refused = [Refusal(one.message_id or one.id, one.error_type, one.error) for one in report.failed]
            for line in few_of_each(refused):
                yield logging.ERROR, f"refused and moved to {pipeline.failed_in}: {line}"


def sentence(report: BatchReport) -> str:
    """A batch in one line of the log."""
    again = f" (generation {report.generation})" if report.generation > 1 else ""
    return f"batch {report.claim_id}{again}: {_outcome(report, len(report.failed))}"


def summary(figures: RunFigures, seconds: float) -> str:
    """Several batches in one line of the log."""
    return f"{figures.batches:,} batches in {seconds:.0f} s: {_outcome(figures, figures.failed)}"


def _outcome(figures: BatchReport | RunFigures, failed: int) -> str:
    extra = "".join(
        f", {count:,} {what}"
        for count, what in (
            (figures.without_outcome, "had no result"),
            (failed, "failed"),
            (figures.delayed, "to be tried again later"),
            (figures.expired, "expired"),
            (figures.table_rows, "table rows"),
        )
        if count
    )
    return (
        f"{figures.messages:,} messages in, {figures.sent:,} out{extra}; read {figures.read_seconds:.2f} s, "
        f"transform {figures.transform_seconds:.2f} s, complete {figures.complete_seconds:.2f} s"
    )


def of_queue(status: QueueStatus) -> dict[str, Any]:
    """The figures of a queue; what its tables do not tell is left out."""
    values: Mapping[str, Any] = {
        "depth": status.pending,
        "oldest_s": status.oldest_seconds if status.pending else 0.0,
        "expired": status.expired,
        "delayed": status.delayed,
        "next_due_s": status.next_due_seconds,
        "claims": status.claims,
        "claimed": status.claimed,
        "abandoned_claims": status.abandoned_claims,
        "processed": status.processed,
        "failed": status.failed,
        "latency_ms": status.latency_milliseconds,
    }
    return {name: value for name, value in values.items() if value is not None}


def queue_observation(
    transport: QueueTransport, queue: str, error_queue: str | None = None
) -> dg.AssetObservation | None:
    """A queue as it is now, with how many of its messages failed; None while it is not installed."""
    try:
        (status,) = transport.status(queue)
    except QueueNotFoundError:
        return None
    values = of_queue(status)
    if status.failed is not None:
        values["errors"] = status.failed
    elif error_queue is not None:
        try:
            values["errors"] = transport.status(error_queue)[0].pending
        except QueueNotFoundError:
            values["errors"] = 0
    return dg.AssetObservation(names.queue_key(queue), metadata=values)


def observe_queues(context: dg.OpExecutionContext, transport: QueueTransport, pipeline: QueuePipeline) -> None:
    """Record the queues of a pipeline as they are at the end of a run, whose outcome does not depend on it."""
    for queue in pipeline.queues:
        error_queue = pipeline.error_queue if queue == pipeline.input_queue else None
        try:
            observation = queue_observation(transport, queue, error_queue)
        except QueuePipelineError as error:
            context.log.warning(f"queue {queue} could not be observed: {error}")
            continue
        if observation is not None:
            context.log_event(observation)


def _table(rows: Any) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows])
