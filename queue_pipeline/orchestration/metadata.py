"""The figures of runs and queues as Dagster's metadata; the UI plots every number. docs/metadata.md explains each."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from queue_pipeline.errors import QueueNotFoundError, QueuePipelineError
from queue_pipeline.orchestration.external_assets import queues_of
from queue_pipeline.orchestration.names import Names
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.failures.decision import Step
from queue_pipeline.processing.results.failed_copies import ids_of
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.processing.spark.internals.parts import missing_parts
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE, absolute
from queue_pipeline.transport.inspection.status import QueueStatus
from queue_pipeline.transport.texts import Refusal, count_of, few_of_each

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
        f"{count_of(pipeline.retries.attempts, 'attempt')} in all",
        "audit_queue": pipeline.audit_queue or "none",
        "transaction_mode": pipeline.transaction_mode.value,
        "batch": f"{count_of(pipeline.batch_messages, 'message')}, {count_of(pipeline.batch_bytes, 'byte')}",
        "max_concurrency": pipeline.max_concurrency,
        "concurrency_policy": pipeline.concurrency_policy,
        "peek_delay_s": pipeline.peek_delay,
    }


def of_run(recent: RunFigures, retry: str, whole: RunFigures | None = None, ended_because: str = "") -> dict[str, Any]:
    """What a run did since its last report; at its end also the sums of the `whole` run. `retry` is a command.

    The UI sorts plots by name, and these are named so that what matters comes first.
    """
    values: dict[str, Any] = {"handled_messages_per_s": round(recent.messages_per_second, 1)}
    if (latency := recent.latency) is not None:
        values["latency_p50_s"] = round(latency.p50, 3)
        values["latency_p95_s"] = round(latency.p95, 3)
        values["latency_max_s"] = round(latency.longest, 3)
    values |= {
        "messages_in": recent.messages,
        "messages_out": recent.sent,
        "messages_to_error_queue": recent.failed,
        "messages_to_retry_later": recent.delayed,
        "messages_unread_expired": recent.expired,
        "messages_without_outcome": recent.without_outcome,
    }
    shown = recent if whole is None else whole
    if shown.failures:
        values["failed_messages"] = dg.MetadataValue.table(
            [
                failed_row(one.message_id or one.id, one.message_type, f"{one.error_type}: {one.error}", one.failed_at)
                for one in shown.failures
            ]
        )
        values["retry_all"] = command_line(retry)
    if shown.slowest:
        values["slowest_messages"] = _table(
            {"id": one, "latency_s": round(seconds, 3)} for one, seconds in shown.slowest
        )
    return values if whole is None else {**values, **_of_whole_run(whole, ended_because)}


def _of_whole_run(figures: RunFigures, ended_because: str) -> dict[str, Any]:
    values: dict[str, Any] = {
        "run_ended_because": ended_because,
        "run_messages_in": figures.messages,
        "run_messages_out": figures.sent,
        "run_messages_to_error_queue": figures.failed,
        "run_batches": figures.batches,
        "run_batches_by_executors": figures.batches_by_executors,
        "run_highest_attempt": figures.attempts,
        "run_failed_attempts": figures.failed_attempts,
        "run_bytes_in": figures.bytes,
        "run_table_rows": figures.table_rows,
        "run_busy_s": round(figures.busy_seconds, 3),
        "run_read_s": round(figures.read_seconds, 3),
        "run_transform_s": round(figures.transform_seconds, 3),
        "run_complete_s": round(figures.complete_seconds, 3),
    }
    if missing := missing_parts():
        values["spark_parts_missing"] = len(missing)
        values["spark_parts_lost"] = _table({"part": part, "lost": lost} for part, lost in missing.items())
    return values


def failed_row(identity: str, message_type: str | None, cause: str, time: datetime | None) -> dg.TableRecord:
    """A failed message in a table."""
    when = "" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"
    return dg.TableRecord({"id": identity, "type": message_type or "", "cause": cause[:LONGEST_ERROR], "time": when})


def retry_all(transport: QueueTransport, pipeline: QueuePipeline) -> str:
    """What a person types to return the failed messages of a pipeline, once the cause is fixed."""
    queue = transport.resolve(pipeline.input_queue)
    if transport.layouts.of(queue).keeps_failed:
        return command(transport, "nginn", "retry", queue.canonical, "--all")
    return command(transport, "errors", "retry", "--from", pipeline.input_queue, error_queue=pipeline.error_queue)


def command(transport: QueueTransport, *words: str, error_queue: str = "error") -> str:
    """A command line that works on the database of a pipeline wherever it is pasted.

    Where the address of a server is kept stays a matter of the environment: no page shows it.
    """
    url, settings = absolute(transport.database.url), transport.settings
    is_file = url.get_backend_name() == "sqlite"
    database = shlex.quote(url.set(drivername="sqlite").render_as_string()) if is_file else f'"${ENVIRONMENT_VARIABLE}"'
    options = {"--error-queue": None if error_queue == "error" else error_queue}
    if settings is not None:
        options |= {"--schema": settings.schema, "--catalog": settings.catalog}
    given = [word for option, value in options.items() if value for word in (option, value)]
    return f"queue-pipeline --database {database} {shlex.join([*given, *words])}"


def command_line(line: str) -> dg.MarkdownMetadataValue:
    """A command as the UI shows it: in one piece, with a button that copies it."""
    return dg.MetadataValue.md(f"```\n{line}\n```")


def lines(pipeline: QueuePipeline, attempted: Attempted) -> Iterator[tuple[int, str]]:
    """What failed in an attempt, and what happens to its messages."""
    if attempted.failure is not None:
        reason = f"{attempted.failure.error_type}: {attempted.failure.message[:LONGEST_ERROR]}"
        if attempted.step is Step.RETRY:
            claim = attempted.again[0]
            what = f"{count_of(claim.messages, 'message')} failed (attempt {claim.failures})"
            yield logging.INFO, f"{what} and will be tried again at once: {reason}"
        elif attempted.step is Step.WAIT:
            yield logging.INFO, f"1 message failed and waits, uncounted, while others are tried: {reason}"
        elif attempted.step is Step.ISOLATE:
            number = sum(claim.messages for claim in attempted.again)
            held = f"{count_of(number, 'message')} {'was' if number == 1 else 'were'} in work"
            yield logging.WARNING, f"{held} when Spark or a part of it died; each batch will be tried alone: {reason}"
        elif attempted.step is Step.SPLIT and attempted.again:
            sizes = " and ".join(f"{claim.messages:,}" for claim in attempted.again)
            yield logging.INFO, f"a batch failed and will be tried in parts of {sizes} messages: {reason}"
        else:
            failed = [one for report in attempted.reports for one in report.failed]
            delayed = sum(report.delayed for report in attempted.reports)
            if delayed:
                yield logging.WARNING, f"{count_of(delayed, 'message')} failed and will be tried again later: {reason}"
            if failed:
                ids = ", ".join(ids_of(failed[:FEW_IDS])) + (", …" if len(failed) > FEW_IDS else "")
                messages = count_of(len(failed), "message")
                yield logging.ERROR, f"{messages} moved to {pipeline.failed_in} ({ids}): {reason}"
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
    return f"{count_of(figures.batches, 'batch')} in {seconds:.0f} s: {_outcome(figures, figures.failed)}"


def _outcome(figures: BatchReport | RunFigures, failed: int) -> str:
    extra = "".join(
        f", {count:,} {what}"
        for count, what in (
            (figures.without_outcome, "had no result"),
            (failed, "failed"),
            (figures.delayed, "to be tried again later"),
            (figures.expired, "expired"),
            (figures.table_rows, "table row" if figures.table_rows == 1 else "table rows"),
        )
        if count
    )
    return (
        f"{count_of(figures.messages, 'message')} in, {figures.sent:,} out{extra}; read {figures.read_seconds:.2f} s, "
        f"transform {figures.transform_seconds:.2f} s, complete {figures.complete_seconds:.2f} s"
    )


def of_queue(status: QueueStatus) -> dict[str, Any]:
    """The figures of a queue; unknown ones are left out."""
    values: Mapping[str, Any] = {
        "age_of_oldest_s": status.oldest_seconds if status.pending else 0.0,
        "depth_messages": status.pending,
        "due_later_messages": status.delayed,
        "due_next_s": status.next_due_seconds,
        "expired_messages": status.expired,
        "in_work_batches": status.claims,
        "in_work_batches_abandoned": status.abandoned_claims,
        "in_work_messages": status.claimed,
        "latency_s": None if status.latency_milliseconds is None else status.latency_milliseconds / 1000,
        "processed_messages": status.processed,
    }
    return {name: value for name, value in values.items() if value is not None}


def queue_observation(
    names: Names, transport: QueueTransport, queue: str, error_queue: str | None = None
) -> dg.AssetObservation | None:
    """A queue as it is now, with how many of its messages failed; None while it is not installed."""
    try:
        (status,) = transport.status(queue)
    except QueueNotFoundError:
        return None
    values = of_queue(status)
    if status.failed is not None:
        values["error_queue_messages"] = status.failed
    elif error_queue is not None:
        try:
            values["error_queue_messages"] = transport.status(error_queue)[0].pending
        except QueueNotFoundError:
            values["error_queue_messages"] = 0
    return dg.AssetObservation(names.queue_key(queue), metadata=values)


def observe_queues(
    context: dg.OpExecutionContext, names: Names, transport: QueueTransport, pipelines: Sequence[QueuePipeline]
) -> None:
    """Record the queues of pipelines as they are now; a queue that cannot be read fails no run."""
    error_queues = {pipeline.input_queue: pipeline.error_queue for pipeline in pipelines}
    for queue in queues_of(pipelines):
        try:
            observation = queue_observation(names, transport, queue, error_queues.get(queue))
        except QueuePipelineError as error:
            context.log.warning(f"queue {queue} could not be observed: {error}")
            continue
        if observation is not None:
            context.log_event(observation)


def _table(rows: Any) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(row) for row in rows])
