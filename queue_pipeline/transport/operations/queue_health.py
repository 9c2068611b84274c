"""Queues that need attention: messages that wait for long, attempts that fail, overdue messages, abandoned batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from queue_pipeline.errors import QueueNotFoundError
from queue_pipeline.transport.claims.claim import ClaimStatus
from queue_pipeline.transport.claims.failure_counts import FailureCount
from queue_pipeline.transport.texts import last_of
from queue_pipeline.transport.transport import QueueTransport


@dataclass(frozen=True, slots=True)
class Watched:
    """A queue that a pipeline reads, and how old its oldest message may be."""

    queue: str
    oldest_seconds: float
    pipeline: str | None = None

    @property
    def subject(self) -> str:
        """What it is called for a person."""
        return self.pipeline or self.queue


@dataclass(frozen=True, slots=True)
class Limits:
    """How long something may last before it is a problem."""

    overdue_seconds: float
    abandoned_seconds: float
    failing_seconds: float


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something that a check found: a problem, or a note that explains what a person sees."""

    check: str
    subject: str
    description: str
    is_problem: bool = True


@dataclass(frozen=True, slots=True)
class QueuesSeen:
    """What the database says of some queues, and the owners that work on any."""

    findings: Sequence[HealthFinding]
    owners: Collection[str]
    queues: Sequence[str]


def every_queue(transport: QueueTransport, oldest_seconds: float) -> list[Watched]:
    """All queues of the default schema but the error queue."""
    error_queue = transport.resolve(transport.error_queue).canonical
    tables = transport.queues()
    return [Watched(table.canonical, oldest_seconds) for table in tables if table.canonical != error_queue]


def look(transport: QueueTransport, watched: Sequence[Watched], limits: Limits) -> QueuesSeen:
    """Look at queues, at the first message of each only: to count a long queue takes longer than a probe may."""
    pauses, failing, claims = transport.pauses.list(), transport.failures.list(), transport.claims.list()
    receivers = transport.slots.list()
    findings = [
        HealthFinding(
            "paused", pause.name, f"{pause.name} is paused by {pause.by} for {pause.since_seconds:.0f} s", False
        )
        for pause in pauses.values()
    ]
    for one in watched:
        address = transport.resolve(one.queue).canonical
        findings += _failing(one, failing.get(address), limits.failing_seconds)
        if one.pipeline not in pauses:
            findings += _abandoned(one, [claim for claim in claims if claim.queue == address], limits.abandoned_seconds)
            findings += _oldest(one, transport)
        findings += _overdue(one, transport, limits.overdue_seconds)
    owners = {receiver.owner for receiver in receivers}
    owners |= {claim.owner for claim in claims if claim.owner is not None and claim.lease_seconds > 0}
    return QueuesSeen(findings, owners, [one.queue for one in watched])


def _oldest(watched: Watched, transport: QueueTransport) -> Iterator[HealthFinding]:
    try:
        table = transport.resolve(watched.queue)
        status = transport.layouts.of(table).tables.status(table, most_counted=1)
    except QueueNotFoundError as error:
        yield HealthFinding("queue", watched.subject, str(error))
        return
    age = status.oldest_seconds if status.pending else None
    if age is not None and age > watched.oldest_seconds:
        text = (
            f"the oldest message of {watched.queue} has waited for {age:,.0f} s, more than {watched.oldest_seconds:g}"
        )
        yield HealthFinding("oldest_message", watched.subject, text)


def _overdue(watched: Watched, transport: QueueTransport, seconds: float) -> Iterator[HealthFinding]:
    try:
        due = transport.next_due_seconds(watched.queue)
    except QueueNotFoundError:
        # A plain queue has no delayed messages; one that is missing is reported by its own check.
        return
    if due is not None and -due > seconds:
        text = f"a delayed message of {watched.queue} is overdue for {-due:,.0f} s; the sensor or move-due moves it"
        yield HealthFinding("overdue", watched.subject, text)


def _failing(watched: Watched, count: FailureCount | None, seconds: float) -> Iterator[HealthFinding]:
    if count is not None:
        text = (
            f"{last_of(count.failures, 'attempt')} on {watched.queue} failed, for {count.since_seconds:,.0f} s; the "
            f"last because of: {count.last_error}"
        )
        yield HealthFinding("failing", watched.subject, text, count.since_seconds > seconds)


def _abandoned(watched: Watched, claims: Sequence[ClaimStatus], seconds: float) -> Iterator[HealthFinding]:
    abandoned = [claim for claim in claims if -claim.lease_seconds > seconds]
    if abandoned:
        longest = -min(claim.lease_seconds for claim in abandoned)
        text = (
            f"{sum(claim.messages for claim in abandoned):,} messages of {watched.queue} are in batches that no "
            f"process has held for up to {longest:,.0f} s; see: queue-pipeline claims list"
        )
        yield HealthFinding("abandoned", watched.subject, text)
