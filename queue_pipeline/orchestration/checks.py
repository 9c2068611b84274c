"""Asset checks: indexes of queues; failed, old and expired messages of pipelines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.errors import QueueNotFoundError, QueuePipelineError
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
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

    def evaluation(self, asset: dg.AssetKey) -> dg.AssetCheckEvaluation:
        """As the event that Dagster keeps."""
        return dg.AssetCheckEvaluation(
            asset_key=asset,
            check_name=self.name,
            passed=self.passed,
            severity=dg.AssetCheckSeverity.WARN,
            description=self.description,
            metadata=self.metadata,
        )


def index_checks(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetChecksDefinition]:
    """One check for each queue."""
    needs = "Whether {} has the indexes and columns that it needs; findings carry the SQL that fixes it."
    queues = dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues)
    return [
        _check(names, names.queue_key(queue), INDEXES, needs.format(queue), partial(look_at_indexes, queue=queue))
        for queue in queues
    ]


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
    values = {"findings": len(findings), "fix": dg.MetadataValue.md(fixes), "details": dg.MetadataValue.table(rows)}
    return CheckOutcome(INDEXES, False, findings[0].message, values)


def pipeline_checks(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetChecksDefinition]:
    """The checks of all pipelines, to be executed by hand on their assets' pages; the peek loop makes them, too."""
    return [
        _check(
            names,
            names.pipeline_key(pipeline),
            name,
            description.format(pipeline),
            partial(look_once, pipeline=pipeline, name=name),
        )
        for pipeline in pipelines
        for name, description in DESCRIPTIONS.items()
    ]


def report_checks(
    context: dg.OpExecutionContext, names: Names, transport: QueueTransport, pipeline: QueuePipeline, expired: int
) -> None:
    """Record the checks at the end of a run; `expired` is how many expired messages the run itself dropped."""
    try:
        outcomes = look(transport, pipeline, DESCRIPTIONS, expired)
    except QueuePipelineError as error:
        context.log.warning(f"the checks of {pipeline.name} could not be made: {error}")
        return
    for one in outcomes:
        # Dagster takes this event here, though the types of its method do not say so.
        event: Any = one.evaluation(names.pipeline_key(pipeline))
        context.log_event(event)


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


def _check(
    names: Names, asset: dg.AssetKey, name: str, description: str, look: Callable[[QueueTransport], CheckOutcome]
) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset=asset, name=name, description=description, required_resource_keys={names.transport})
    def check(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
        found = look(transport_of(context, names).transport())
        return dg.AssetCheckResult(
            passed=found.passed,
            severity=dg.AssetCheckSeverity.WARN,
            description=found.description,
            metadata=found.metadata,
        )

    return check


def _errors(transport: QueueTransport, pipeline: QueuePipeline, _: int) -> CheckOutcome:
    """Failures of this pipeline's queue; messages without a readable queue count too."""
    queue, here = pipeline.error_queue, transport.resolve(pipeline.input_queue)
    if transport.layouts.of(here).keeps_failed:
        return _failed_in_place(transport, pipeline)
    last = transport.failed.last_row_version(queue)
    recent = transport.failed.list(queue, limit=MOST_LOOKED_AT, after=max(BEFORE_ALL, last - MOST_LOOKED_AT))
    own = [one for one in recent if one.failed_queue in (None, here.canonical, pipeline.input_queue)]
    rows = [
        metadata.failed_row(one.message_id, one.message_type, _cause(one), one.time_of_failure)
        for one in own[-MOST_SHOWN:][::-1]
    ]
    # More rows than were looked at may hold more of them.
    is_capped = bool(own) and len(recent) < transport.peek(queue, MOST_LOOKED_AT + 1)
    nothing = f"nothing of {pipeline.input_queue} is in {queue}"
    return _failures(transport, pipeline, len(own), is_capped, rows, f"wait in {queue}", nothing)


def _failed_in_place(transport: QueueTransport, pipeline: QueuePipeline) -> CheckOutcome:
    """Failed messages of an NGinn queue, which stay in it."""
    queue = transport.resolve(pipeline.input_queue)
    found = transport.nginn.failed(queue, limit=MOST_LOOKED_AT)
    now = datetime.now(UTC)
    rows = [
        metadata.failed_row(str(one.id), one.label, one.error or "", now - timedelta(seconds=one.seconds_ago))
        for one in found[-MOST_SHOWN:][::-1]
    ]
    nothing = f"nothing in {queue} has failed"
    return _failures(transport, pipeline, len(found), len(found) == MOST_LOOKED_AT, rows, "wait there", nothing)


def _failures(
    transport: QueueTransport,
    pipeline: QueuePipeline,
    number: int,
    is_capped: bool,
    rows: Sequence[dg.TableRecord],
    where: str,
    nothing: str,
) -> CheckOutcome:
    if not number:
        return CheckOutcome(ERRORS, True, nothing, {"error_queue_messages": 0})
    many, every = count_of(number, "message", " or more" if is_capped else ""), metadata.retry_all(transport, pipeline)
    return CheckOutcome(
        ERRORS,
        False,
        f"{many} of {pipeline.input_queue} failed and {where}; fix the cause, then run: {every}",
        {
            "error_queue_messages": number,
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
        attempts = f"the last {count_of(failing.failures, 'attempt')} failed"
        step = f"{attempts}, for {failing.since_seconds:,.0f} s: {failing.last_error}"
        if status.abandoned_claims and failing.since_seconds > limit:
            waits = f"{count_of(status.claimed or 0, 'message')} of {pipeline.input_queue} wait in released batches"
            return CheckOutcome(AGE, False, f"{waits}; {step}", values)
    if not status.pending:
        return CheckOutcome(AGE, True, f"{pipeline.input_queue} is empty", values)
    if age is None:
        return CheckOutcome(AGE, True, f"the messages of {pipeline.input_queue} do not say when they were sent", values)
    age_text = (
        f"the oldest of {count_of(status.pending, 'message')} in {pipeline.input_queue} has waited for {age:,.0f} s"
    )
    if age <= limit:
        return CheckOutcome(AGE, True, age_text, values)
    return CheckOutcome(AGE, False, f"{age_text}, more than {limit:g}; {step}", values)


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


def _cause(message: BrowsedMessage) -> str:
    if message.problem is not None:
        return message.problem
    return f"{message.exception_type or 'no reason is given'}: {message.exception_message or ''}".removesuffix(": ")
