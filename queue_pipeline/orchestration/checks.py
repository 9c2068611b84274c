"""Asset checks: the indexes of queues, and of pipelines that nothing failed, waits for long or expired."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.errors import QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.failed.failed_message import FailedMessage
from queue_pipeline.transport.texts import count_of

ERRORS, AGE, EXPIRED, INDEXES = "error_queue_empty", "oldest_message", "nothing_expired", "indexes"
DESCRIPTIONS = {
    ERRORS: "No message of {0.input_queue} waits in {0.error_queue}; those that do are listed with how to retry them.",
    AGE: "The oldest message of {0.input_queue} is younger than {0.oldest_message_seconds:g} s.",
    EXPIRED: "No message of {0.input_queue} expired before anybody took it.",
}
MOST_LOOKED_AT = 1_000
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What a check found."""

    name: str
    passed: bool
    description: str
    metadata: dict[str, Any] = field(default_factory=dict)


def index_checks(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetChecksDefinition]:
    """One check a queue."""
    queues = dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues)
    return [_index_check(queue, names) for queue in queues]


def _index_check(queue: str, names: Names) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=names.queue_key(queue),
        name=INDEXES,
        description=f"Whether {queue} has the indexes and columns that it needs; findings carry the SQL that fixes it.",
        required_resource_keys={names.transport},
    )
    def indexes(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = look_at_indexes(transport_of(context, names).transport(), queue)
        return dg.AssetCheckResult(
            passed=found.passed,
            severity=dg.AssetCheckSeverity.WARN,
            description=found.description,
            metadata=found.metadata,
        )

    return indexes


def look_at_indexes(transport: QueueTransport, queue: str) -> CheckOutcome:
    """Audit the indexes of a queue; one that is missing fails the check."""
    try:
        findings = transport.audit_indexes(queue)
    except QueueNotFoundError as error:
        return CheckOutcome(INDEXES, False, str(error))
    if not findings:
        return CheckOutcome(INDEXES, True, f"{queue} has all indexes and columns that it needs", {"findings": 0})
    rows = [
        dg.TableRecord({"finding": one.code, "what": one.message, "cost": one.cost, "fix": one.fix}) for one in findings
    ]
    fixes = "\n".join(f"```sql\n-- {one.section}\n{one.fix}\n```" for one in findings if one.fix)
    values = {
        "findings": len(findings),
        "fix": dg.MetadataValue.md(fixes),
        "details": dg.MetadataValue.table(rows),
    }
    return CheckOutcome(INDEXES, False, findings[0].message, values)


def pipeline_checks(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetChecksDefinition]:
    """The checks of all pipelines, to be executed by hand on their assets' pages; the peek loop makes them, too."""
    return [_check(pipeline, name, names) for pipeline in pipelines for name in DESCRIPTIONS]


def report_checks(
    context: dg.OpExecutionContext, names: Names, transport: QueueTransport, pipeline: QueuePipeline, expired: int
) -> None:
    """Record the checks as they are at the end of a run that dropped so many expired messages itself."""
    try:
        outcomes = look(transport, pipeline, DESCRIPTIONS, expired)
    except QueuePipelineError as error:
        context.log.warning(f"the checks of {pipeline.name} could not be made: {error}")
        return
    for one in outcomes:
        # Dagster takes this event here, though the types of its method do not say so.
        event: Any = evaluation(names.pipeline_key(pipeline), one)
        context.log_event(event)


def evaluation(asset: dg.AssetKey, outcome: CheckOutcome) -> dg.AssetCheckEvaluation:
    """An outcome as the event that Dagster keeps."""
    return dg.AssetCheckEvaluation(
        asset_key=asset,
        check_name=outcome.name,
        passed=outcome.passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=outcome.description,
        metadata=outcome.metadata,
    )


def look(
    transport: QueueTransport, pipeline: QueuePipeline, checks: Sequence[str] | dict[str, str], expired: int = 0
) -> list[CheckOutcome]:
    """Make checks by name."""
    made = {ERRORS: _errors, AGE: _age, EXPIRED: _expired}
    return [made[name](transport, pipeline, expired) for name in checks]


def look_once(transport: QueueTransport, pipeline: QueuePipeline, name: str) -> CheckOutcome:
    """Make one check; a queue that is missing fails it."""
    try:
        (found,) = look(transport, pipeline, [name])
    except QueueNotFoundError as error:
        return CheckOutcome(name, False, str(error))
    return found


def _check(pipeline: QueuePipeline, name: str, names: Names) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=names.pipeline_key(pipeline),
        name=name,
        description=DESCRIPTIONS[name].format(pipeline),
        required_resource_keys={names.transport},
    )
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = look_once(transport_of(context, names).transport(), pipeline, name)
        return dg.AssetCheckResult(
            passed=found.passed,
            severity=dg.AssetCheckSeverity.WARN,
            description=found.description,
            metadata=found.metadata,
        )

    return check


def _errors(transport: QueueTransport, pipeline: QueuePipeline, _: int) -> CheckOutcome:
    """Failures of this pipeline's queue; what cannot be read may be anybody's and counts too."""
    queue, here = pipeline.error_queue, transport.resolve(pipeline.input_queue)
    if transport.layouts.of(here).keeps_failed:
        return _failed_in_place(transport, pipeline)
    last = transport.failed.last_row_version(queue)
    recent = transport.failed.list(queue, limit=MOST_LOOKED_AT, after=max(BEFORE_ALL, last - MOST_LOOKED_AT))
    own = [one for one in recent if one.failed_queue in (None, here.canonical, pipeline.input_queue)]
    if not own:
        return CheckOutcome(
            ERRORS, True, f"nothing of {pipeline.input_queue} is in {queue}", {"error_queue_messages": 0}
        )
    # More rows than were looked at may hold more of them.
    many = count_of(len(own), "message", " or more" if len(recent) < transport.peek(queue, MOST_LOOKED_AT + 1) else "")
    every = metadata.retry_all(transport, pipeline)
    return CheckOutcome(
        ERRORS,
        False,
        f"{many} of {pipeline.input_queue} failed and wait in {queue}; fix the cause, then run: {every}",
        {
            "error_queue_messages": len(own),
            "retry_all": metadata.command_line(every),
            "failed_messages": _table(own[-MOST_SHOWN:][::-1]),
        },
    )


def _failed_in_place(transport: QueueTransport, pipeline: QueuePipeline) -> CheckOutcome:
    """Failed messages of an NGinn queue, which stay in it."""
    queue = transport.resolve(pipeline.input_queue)
    found = transport.nginn.failed(queue, limit=MOST_LOOKED_AT)
    if not found:
        return CheckOutcome(ERRORS, True, f"nothing in {queue} has failed", {"error_queue_messages": 0})
    many = count_of(len(found), "message", " or more" if len(found) == MOST_LOOKED_AT else "")
    every = metadata.retry_all(transport, pipeline)
    rows = [
        dg.TableRecord({"id": one.id, "type": one.label or "", "cause": (one.error or "")[: metadata.LONGEST_ERROR]})
        for one in found[-MOST_SHOWN:][::-1]
    ]
    return CheckOutcome(
        ERRORS,
        False,
        f"{many} of {queue} failed and wait there; fix the cause, then run: {every}",
        {
            "error_queue_messages": len(found),
            "retry_all": metadata.command_line(every),
            "failed_messages": dg.MetadataValue.table(rows),
        },
    )


def _age(transport: QueueTransport, pipeline: QueuePipeline, _: int) -> CheckOutcome:
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
        since = f"{failing.since_seconds:,.0f} s"
        step = f"the last {failing.failures:,} attempts failed, since {since}: {failing.last_error}"
        if status.abandoned_claims and failing.since_seconds > limit:
            waits = f"{count_of(status.claimed or 0, 'message')} of {pipeline.input_queue} wait in released batches"
            return CheckOutcome(AGE, False, f"{waits}; {step}", values)
    if not status.pending:
        return CheckOutcome(AGE, True, f"{pipeline.input_queue} is empty", values)
    if age is None:
        return CheckOutcome(
            AGE, True, f"the messages of {pipeline.input_queue} do not tell when they were sent", values
        )
    told = f"the oldest of {count_of(status.pending, 'message')} in {pipeline.input_queue} has waited for {age:,.0f} s"
    if age <= limit:
        return CheckOutcome(AGE, True, told, values)
    return CheckOutcome(AGE, False, f"{told}, more than {limit:g}; {step}", values)


def _expired(transport: QueueTransport, pipeline: QueuePipeline, dropped: int) -> CheckOutcome:
    (status,) = transport.status(pipeline.input_queue)
    values = {"expired_messages": status.expired, "expired_messages_dropped_by_run": dropped}
    if not status.expired and not dropped:
        return CheckOutcome(EXPIRED, True, f"nothing expired in {pipeline.input_queue}", values)
    return CheckOutcome(
        EXPIRED,
        False,
        f"{count_of(status.expired + dropped, 'message')} of {pipeline.input_queue} expired before anybody took them; "
        "let the pipeline run more often, or its senders give them longer to live",
        values,
    )


def _table(messages: Sequence[FailedMessage]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(
        [
            dg.TableRecord(
                {
                    "id": one.message_id,
                    "type": one.message_type or "",
                    "cause": _told(one)[: metadata.LONGEST_ERROR],
                    "time": f"{one.time_of_failure:%Y-%m-%d %H:%M:%S} UTC" if one.time_of_failure else "",
                }
            )
            for one in messages
        ]
    )


def _told(message: FailedMessage) -> str:
    if message.problem is not None:
        return message.problem
    return f"{message.exception_type or 'no reason is given'}: {message.exception_message or ''}".removesuffix(": ")
