"""`health`: whether messages are processed; for people, liveness probes and cron."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from queue_pipeline.cli.failures import redact
from queue_pipeline.cli.output import answer
from queue_pipeline.cli.parameters import Seconds, Text, any_queues_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport.database.setting import absolute, shown
from queue_pipeline.transport.operations.queue_health import HealthFinding, Limits, QueuesSeen, Watched, every_queue
from queue_pipeline.transport.operations.queue_health import look as look_at_queues
from queue_pipeline.transport.texts import count_of

if TYPE_CHECKING:
    from queue_pipeline.orchestration.storage.instance_health import InstanceSeen

UNHEALTHY = 1
HOME_VARIABLE = "DAGSTER_HOME"
OLDEST_SECONDS = 900.0
SECOND_LOOK_SECONDS = 2.0
"""A run that ends has released its slots a moment before Dagster knows: it is reported only if it stays so."""
DAGSTER_CHECKS = ("dagster", "sensor", "daemon", "ticks")
CHECKS = (*DAGSTER_CHECKS, "runs", "database", "queue", "oldest_message", "failing", "overdue", "abandoned")
SECONDS = Seconds(0.1, 86_400.0 * 365, "a number of seconds from 0.1 to those of a year")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be checked, and by which limits."""

    queues: Sequence[str]
    home: str | None
    """The home of Dagster; None to check the database only."""
    location: str | None
    prefix: str | None
    tick_seconds: float
    oldest_seconds: float | None
    timeout_seconds: float
    limits: Limits
    checks: Sequence[str]
    """Which checks decide; what the others find are notes."""

    @property
    def needs_queues(self) -> bool:
        """Whether the database has to be asked."""
        return self.home is None or not set(self.checks) <= set(DAGSTER_CHECKS)


@dataclass(frozen=True, slots=True)
class Health:
    """What was found, and what was checked."""

    findings: Sequence[HealthFinding]
    instance: InstanceSeen | None
    queues: Sequence[str]


def _limit(name: str, default: float | None, explanation: str) -> Callable[[Any], Any]:
    return click.option(name, type=SECONDS, metavar="N", default=default, show_default=True, help=explanation)


@click.command()
@any_queues_argument
@click.option("--database-only", is_flag=True, help="Check the queues only, not Dagster.")
@click.option(
    "--check",
    "checks",
    type=click.Choice(CHECKS),
    multiple=True,
    help="Only this check decides about the exit code; repeatable. `ticks` is for the liveness of a code server.",
)
@click.option("--location", type=Text(), metavar="NAME", help="Check this code location only.")
@click.option("--prefix", type=Text(), metavar="NAME", help="Check the pipelines with this prefix in Dagster only.")
@_limit(
    "--tick-seconds", 120.0, "How long ago the last tick of the peek sensor may have ended; a tick takes up to 60 s."
)
@_limit("--oldest-seconds", None, "How long a message may wait. Default: what its pipeline declares, else 900.")
@_limit("--overdue-seconds", 60.0, "How long a delayed message may be overdue.")
@_limit("--abandoned-seconds", 120.0, "How long a batch may have no holder.")
@_limit("--failing-seconds", 600.0, "How long all attempts on a queue may fail.")
@_limit("--timeout-seconds", 10.0, "How long Dagster's storage, and then the database, may take to answer.")
@with_session
def health(
    session: Session,
    /,
    database_only: bool,
    checks: tuple[str, ...],
    overdue_seconds: float,
    abandoned_seconds: float,
    failing_seconds: float,
    **chosen: Any,
) -> None:
    """Check that messages flow; the exit code is 1 if they do not.

    The command checks the peek sensor and the runs of the Dagster instance in DAGSTER_HOME, and the queues of the
    pipelines that the sensor watches. Without Dagster, or before the first tick, it checks the given queues, or all
    queues of the schema but the error queue. It changes nothing and loads no definitions.
    """
    home = None if database_only else os.environ.get(HOME_VARIABLE) or None
    limits = Limits(overdue_seconds, abandoned_seconds, failing_seconds)
    asked = Asked(home=home, checks=checks or CHECKS, limits=limits, **chosen)
    with progress(session, "checking"):
        found = _examine(session, asked)
    problems = [_document(one) for one in found.findings if one.is_problem]
    notes = [_document(one) for one in found.findings if not one.is_problem]
    document = {
        "healthy": not problems,
        "problems": problems,
        "notes": notes,
        "queues": list(found.queues),
        "dagster": None if found.instance is None else {"home": home, **asdict(found.instance)},
    }
    lines = [f"problem: {one['description']}" for one in problems] + [f"note: {one['description']}" for one in notes]
    answer(session, document, *lines, _summary(found, len(problems)))
    if problems:
        raise click.exceptions.Exit(UNHEALTHY)


def _examine(session: Session, asked: Asked) -> Health:
    # A setting that cannot be used is an error of usage; only what follows is one of health.
    session.url(), session.nginn_settings()
    findings: list[HealthFinding] = []
    instance: InstanceSeen | None = None
    queues: Sequence[str] = ()
    try:
        instance = _instance(session, asked)
        findings += instance.findings(asked.tick_seconds) if instance is not None else ()
    except Exception as error:
        findings.append(HealthFinding("dagster", str(asked.home), f"Dagster cannot be checked: {_words(error)}"))
    if asked.home is None:
        text = f"ticks and runs are not checked, without {HOME_VARIABLE} or with --database-only"
        findings.append(HealthFinding("dagster", HOME_VARIABLE, text, is_problem=False))
    try:
        if asked.needs_queues:
            seen = _queues(session, asked, instance)
            findings += seen.findings
            queues = seen.queues
            findings += _without_slots(session, asked, instance, seen) if instance is not None else ()
    except Exception as error:
        where = shown(absolute(session.url()))
        findings.append(
            HealthFinding("database", "database", f"the queues of {where} cannot be checked: {_words(error)}")
        )
    decided = [
        replace(
            one,
            description=_safe(session, one.description),
            is_problem=one.is_problem and one.check in asked.checks,
        )
        for one in findings
    ]
    return Health(decided, instance, queues)


def _instance(session: Session, asked: Asked) -> InstanceSeen | None:
    if asked.home is None:
        return None
    # Dagster takes half a second to load, which is not needed to check the database only.
    from queue_pipeline.orchestration.storage.instance_health import look

    seen = _in_time(lambda: look(asked.location, asked.prefix), asked.timeout_seconds, "Dagster's storage")
    loops = [replace(loop, last_error=loop.last_error and _safe(session, loop.last_error)) for loop in seen.loops]
    return replace(seen, loops=loops)


def _queues(session: Session, asked: Asked, instance: InstanceSeen | None) -> QueuesSeen:
    known = [] if instance is None else [one.watched for one in instance.pipelines.values()]
    limit = asked.oldest_seconds or OLDEST_SECONDS
    if asked.queues:
        declared = {one.queue: one for one in known}
        watched = [declared.get(queue, Watched(queue, limit)) for queue in asked.queues]
    else:
        watched = known
    if asked.oldest_seconds is not None:
        watched = [Watched(one.queue, asked.oldest_seconds, one.pipeline) for one in watched]

    def look() -> QueuesSeen:
        with session.transport() as transport:
            return look_at_queues(transport, watched or every_queue(transport, limit), asked.limits)

    return _in_time(look, asked.timeout_seconds, "the database")


def _without_slots(session: Session, asked: Asked, instance: InstanceSeen, queues: QueuesSeen) -> list[HealthFinding]:
    """Runs that Dagster shows as working, and the database does not."""
    suspects = instance.without_slots(queues.owners)
    if not suspects:
        return []
    time.sleep(SECOND_LOOK_SECONDS)
    again = _instance(session, asked)
    still = again.without_slots(_queues(session, asked, again).owners) if again is not None else []
    still_ids = {run.run_id for run in still}
    return [
        HealthFinding(
            "runs",
            run.run_id,
            f"run {run.run_id} of {run.pipeline} has been {run.status} for {run.seconds:,.0f} s and holds no slot: "
            "its process may be gone",
        )
        for run in suspects
        if run.run_id in still_ids
    ]


def _in_time(work: Callable[[], T], seconds: float, what: str) -> T:
    """What some work returns. The thread is a daemon: work that takes too long ends with this process."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    if not wait([done], seconds).done:
        raise QueuePipelineError(f"{what} did not answer in {seconds:g} s")
    return done.result()


def _words(error: Exception) -> str:
    """An error in a line; an error of other code with its type."""
    return str(error) if isinstance(error, QueuePipelineError) else f"{type(error).__name__}: {error}"


def _safe(session: Session, text: str) -> str:
    """A text of Dagster's or the database's in one line, without secrets."""
    return redact(" ".join(text.split()), session.secrets())


def _document(finding: HealthFinding) -> dict[str, str]:
    return {"check": finding.check, "subject": finding.subject, "description": finding.description}


def _summary(found: Health, problems: int) -> str:
    loops = [] if found.instance is None else found.instance.loops
    ages = [loop.last_tick_seconds for loop in loops if loop.last_tick_seconds is not None]
    ticks = f", last tick {min(ages):.0f} s ago" if ages else ""
    state = f"not healthy: {count_of(problems, 'problem')}" if problems else "healthy"
    return f"{state}; {count_of(len(found.queues), 'queue')} checked{ticks}"
