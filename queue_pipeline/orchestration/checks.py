"""Asset checks: indexes of queues; failed, old and expired messages of pipelines."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import dagster as dg

from queue_pipeline.errors import QueueNotFoundError, QueuePipelineError
from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.external_assets import queues_of
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTable, QueueTransport
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.texts import count_of, last_of

ERRORS, AGE, EXPIRED, INDEXES = "error_queue_empty", "oldest_message", "nothing_expired", "indexes"
DESCRIPTIONS = {
    ERRORS: "No message of {0.input_queue} is in {0.error_queue}; if some are, the result lists them with the command "
    "that retries them.",
    AGE: "The oldest message of {0.input_queue} is younger than {0.oldest_message_seconds:g} s.",
    EXPIRED: "No message of {0.input_queue} expired before a run took it.",
}
"""The checks of every pipeline, by name."""
MOST_READ = 1_000
MOST_SHOWN = 20


def evaluation(check: dg.AssetCheckKey, found: dg.AssetCheckResult) -> dg.AssetCheckEvaluation:
    """The event that Dagster keeps of a check."""
    return dg.AssetCheckEvaluation(
        asset_key=check.asset_key,
        check_name=check.name,
        passed=found.passed,
        severity=found.severity,
        description=found.description,
        metadata=found.metadata,
    )


def index_checks(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetChecksDefinition]:
    """One check for each queue."""
    needs = "Whether {} has the indexes and columns that it needs; findings carry the SQL that fixes it."
    return [
        _check(names, names.queue_key(queue), INDEXES, needs.format(queue), partial(check_indexes, queue=queue))
        for queue in queues_of(pipelines)
    ]


def check_indexes(transport: QueueTransport, queue: str) -> dg.AssetCheckResult:
    """Audit the indexes of a queue; one that is missing fails the check."""
    try:
        findings = transport.audit_indexes(queue)
    except QueueNotFoundError as error:
        return _result(False, str(error))
    if not findings:
        return _result(True, f"{queue} has all indexes and columns that it needs", {"findings": 0})
    rows = [
        dg.TableRecord({"finding": one.code, "what": one.message, "cost": one.cost, "fix": one.fix}) for one in findings
    ]
    fixes = "\n".join(f"```sql\n-- {one.section}\n{one.fix}\n```" for one in findings if one.fix)
    values = {"findings": len(findings), "fix": dg.MetadataValue.md(fixes), "details": dg.MetadataValue.table(rows)}
    return _result(False, findings[0].message, values)


def pipeline_checks(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetChecksDefinition]:
    """The checks of all pipelines, to be executed by hand on their assets' pages; the peek loop makes them, too."""
    return [
        _check(
            names,
            names.pipeline_key(pipeline),
            name,
            description.format(pipeline),
            partial(check_pipeline, pipeline=pipeline, name=name),
        )
        for pipeline in pipelines
        for name, description in DESCRIPTIONS.items()
    ]


def report_checks(
    context: dg.OpExecutionContext, names: Names, transport: QueueTransport, pipeline: QueuePipeline, expired: int
) -> None:
    """Record the checks at the end of a run; `expired` is how many expired messages the run itself dropped."""
    try:
        found = {name: check_pipeline(transport, pipeline, name, expired) for name in DESCRIPTIONS}
    except QueuePipelineError as error:
        context.log.warning(f"the checks of {pipeline.name} could not be made: {error}")
        return
    for name, result in found.items():
        # Dagster takes this event here, though the types of its method do not say so.
        event: Any = evaluation(dg.AssetCheckKey(names.pipeline_key(pipeline), name), result)
        context.log_event(event)


def check_pipeline(
    transport: QueueTransport, pipeline: QueuePipeline, name: str, expired: int = 0
) -> dg.AssetCheckResult:
    """Make one check; a queue that is missing fails it."""
    checks: dict[str, Callable[[QueueTransport, QueuePipeline], dg.AssetCheckResult]] = {
        ERRORS: _errors,
        AGE: _age,
        EXPIRED: partial(_expired, dropped=expired),
    }
    try:
        return checks[name](transport, pipeline)
    except QueueNotFoundError as error:
        return _result(False, str(error))


def _check(
    names: Names, asset: dg.AssetKey, name: str, description: str, make: Callable[[QueueTransport], dg.AssetCheckResult]
) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=asset, name=name, description=description, required_resource_keys={names.transport})
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        return make(transport_of(context, names).transport())

    return check


def _result(passed: bool, description: str, values: Mapping[str, Any] | None = None) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        passed=passed, severity=dg.AssetCheckSeverity.WARN, description=description, metadata=values
    )


def _errors(transport: QueueTransport, pipeline: QueuePipeline) -> dg.AssetCheckResult:
    here = transport.resolve(pipeline.input_queue)
    if transport.layouts.of(here).keeps_failed:
        where, (number, is_capped, rows) = f"in {here}", _failed_in_place(transport, here)
    else:
        where = f"of {pipeline.input_queue} in {pipeline.error_queue}"
        number, is_capped, rows = _failed_copies(transport, pipeline, here)
    if not number:
        return _result(True, f"no failed message {where}", {"error_queue_messages": 0})
    many = count_of(number, "failed message", " or more" if is_capped else "")
    every = metadata.retry_all(transport, pipeline)
    values = {
        "error_queue_messages": number,
        "retry_all": metadata.command_line(every),
        "failed_messages": dg.MetadataValue.table(rows),
    }
    return _result(False, f"{many} {where}; fix the cause, then run: {every}", values)


def _failed_copies(
    transport: QueueTransport, pipeline: QueuePipeline, here: QueueTable
) -> tuple[int, bool, list[dg.TableRecord]]:
    """Messages of this pipeline's queue in the error queue; those without a readable queue count, too."""
    last = transport.failed.last_row_version(pipeline.error_queue)
    after = max(BEFORE_ALL, last - MOST_READ)
    recent = transport.failed.list(pipeline.error_queue, limit=MOST_READ, after=after)
    own = [one for one in recent if one.failed_queue in (None, here.canonical, pipeline.input_queue)]
    # Rows beyond those that were read may hold more of them.
    is_capped = bool(own) and len(recent) < transport.peek(pipeline.error_queue, MOST_READ + 1)
    return (
        len(own),
        is_capped,
        [
            metadata.failed_row(one.message_id, one.message_type, _cause(one), one.time_of_failure)
            for one in own[-MOST_SHOWN:][::-1]
        ],
    )


def _failed_in_place(transport: QueueTransport, here: QueueTable) -> tuple[int, bool, list[dg.TableRecord]]:
    """Failed messages of an NGinn queue, which stay in it."""
    found, now = transport.nginn.failed(here, limit=MOST_READ), datetime.now(UTC)
    rows = [
        metadata.failed_row(str(one.id), one.label, one.error or "", now - timedelta(seconds=one.seconds_ago))
        for one in found[-MOST_SHOWN:][::-1]
    ]
    return len(found), len(found) == MOST_READ, rows


def _age(transport: QueueTransport, pipeline: QueuePipeline) -> dg.AssetCheckResult:
    (status,) = transport.status(pipeline.input_queue)
    age, limit = status.oldest_seconds if status.pending else None, pipeline.oldest_message_seconds
    values: dict[str, Any] = {
        "age_of_oldest_s": round(age or 0.0, 3),
        "age_limit_s": limit,
        "depth_messages": status.pending,
    }
    failing = transport.failures.list().get(transport.resolve(pipeline.input_queue).canonical)
    step = "see whether the peek sensor is on, the pipeline paused, or its runs fail"
    if failing is not None:
        values["last_error"] = failing.last_error
        attempts = f"{last_of(failing.failures, 'attempt')} failed"
        step = f"{attempts}, for {failing.since_seconds:,.0f} s: {failing.last_error}"
        if status.abandoned_claims and failing.since_seconds > limit:
            held = count_of(status.claimed or 0, "message")
            return _result(False, f"released batches of {pipeline.input_queue} hold {held}; {step}", values)
    if not status.pending:
        return _result(True, f"{pipeline.input_queue} is empty", values)
    if age is None:
        return _result(True, f"the messages of {pipeline.input_queue} do not say when they were sent", values)
    age_text = (
        f"the oldest of {count_of(status.pending, 'message')} in {pipeline.input_queue} has waited for {age:,.0f} s"
    )
    if age <= limit:
        return _result(True, age_text, values)
    return _result(False, f"{age_text}, more than {limit:g}; {step}", values)


def _expired(transport: QueueTransport, pipeline: QueuePipeline, dropped: int) -> dg.AssetCheckResult:
    (status,) = transport.status(pipeline.input_queue)
    values = {"expired_messages": status.expired, "expired_messages_dropped_by_run": dropped}
    if not status.expired and not dropped:
        return _result(True, f"nothing expired in {pipeline.input_queue}", values)
    return _result(
        False,
        f"{count_of(status.expired + dropped, 'message')} of {pipeline.input_queue} expired before a run took "
        "them; run the pipeline more often, or have the senders set a longer time to live",
        values,
    )


def _cause(message: BrowsedMessage) -> str:
    if message.problem is not None:
        return message.problem
    return f"{message.exception_type or 'no reason is given'}: {message.exception_message or ''}".removesuffix(": ")
