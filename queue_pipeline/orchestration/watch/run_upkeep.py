"""Runs and what they hold in the database, which says who works: a run that works holds a slot or a batch.

What ended runs hold is released. A run that holds nothing, though Dagster shows it as started, is reported as failed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.events import JobFailureData, RunFailureReason

from queue_pipeline.orchestration.names import PIPELINE_TAG, Names, owner, run_of
from queue_pipeline.orchestration.watch.code_server import CodeServer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.operations.process_identity import is_gone
from queue_pipeline.transport.operations.slots import SlotHolder
from queue_pipeline.transport.texts import count_of

LAUNCHED = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
ORPHAN_SECONDS = 20.0
"""How long a run may hold nothing whose code server was replaced: its process was killed with it, or ends soon."""
LONGEST_GAP_SECONDS = 30.0
"""After a longer gap between two looks it is not known whether a run held something meanwhile."""
QUEUED_SECONDS = 15.0
"""How long a run is queued before others end for it: Dagster starts queued runs every five seconds."""
LINGER_SECONDS = 5.0
"""How long a run must have had its slots to count as lingering: a new one has no batch yet."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A Dagster instance, the database of its queues, and the code location that looks after them."""

    instance: dg.DagsterInstance
    transport: QueueTransport
    location: str | None = None
    server: CodeServer = field(default_factory=CodeServer)
    names: Names = field(default_factory=Names)

    def has_launched(self, run: dg.DagsterRun) -> bool:
        """Whether a run is one of this code location: another may have a pipeline of the same name elsewhere."""
        origin = run.remote_job_origin
        return self.location is None or (origin is not None and origin.location_name == self.location)

    def is_orphan(self, run: dg.DagsterRun) -> bool:
        """Whether a run is a process of a code server, but not of this one."""
        is_a_process = isinstance(self.instance.run_launcher, dg.DefaultRunLauncher)
        return is_a_process and self.server.is_known and run.run_id not in self.server.runs


class RunUpkeep:
    """Looks at the runs of some pipelines every few seconds, and remembers which of them hold nothing."""

    def __init__(self, pipelines: Sequence[QueuePipeline], clock: Callable[[], float] = time.monotonic) -> None:
        self._pipelines = pipelines
        self._clock = clock
        self._looked_at = clock()
        self._without_since: dict[tuple[str, dg.DagsterRunStatus], float] = {}

    def look(self, place: Deployment) -> None:
        """Release what ended runs hold, report those that are gone, and end runs that only wait while others do."""
        slots = place.transport.slots.list(expired=True)
        holders = [slot for slot in slots if slot.lease_seconds > 0]
        leases = [(one.owner, one.lease_seconds) for one in place.transport.claims.list() if one.owner is not None]
        with_batch = {owner for owner, _ in leases}
        working = {holder.owner for holder in holders} | {owner for owner, seconds in leases if seconds > 0}
        known = _runs(place.instance, {slot.owner for slot in slots} | with_batch)
        # Also of slots whose lease ran out: a code server that was restarted may look later than that.
        gone = {slot.owner for slot in slots if is_gone(slot.process)}
        for holder, run in known.items():
            if run.is_finished:
                _release(place, run)
            elif holder in gone:
                _report(place, run, "its process is gone")
        self._report_lost(place, working)
        _end_lingering(place, [one for one in holders if one.owner in known and one.owner not in with_batch])

    def _report_lost(self, place: Deployment, working: Collection[str]) -> None:
        """Report runs that have held nothing for longer than a run may take to start, or to end.

        The time is that of this process, so that no clocks need to agree.
        """
        now = self._clock()
        if now - self._looked_at > LONGEST_GAP_SECONDS:
            self._without_since.clear()
        self._looked_at = now
        start_seconds = {place.names.pipeline_tag(pipeline): pipeline.start_seconds for pipeline in self._pipelines}
        tags = {PIPELINE_TAG: list(start_seconds)}
        launched = place.instance.get_runs(dg.RunsFilter(tags=tags, statuses=LAUNCHED))
        without = [run for run in launched if place.has_launched(run) and owner(run.run_id) not in working]
        keys = [(run.run_id, run.status) for run in without]
        self._without_since = {key: self._without_since.get(key, now) for key in keys}
        for run, key in zip(without, keys, strict=True):
            seconds = now - self._without_since[key]
            longest = start_seconds[run.tags[PIPELINE_TAG]]
            if seconds >= (min(longest, ORPHAN_SECONDS) if place.is_orphan(run) else longest):
                _report(place, run, f"it has held neither a slot nor a batch for {seconds:.0f} s")


def end_runs(place: Deployment, run_ids: Collection[str], reason: str) -> None:
    """Have runs take no further batch."""
    owners = {owner(run_id) for run_id in run_ids}
    _end(place, [one for one in place.transport.slots.list() if one.owner in owners], reason)


def _end_lingering(place: Deployment, idle: Sequence[SlotHolder]) -> None:
    """End runs that only wait for messages while others wait to be started."""
    lingering = [one for one in idle if one.ending is None and one.since_seconds > LINGER_SECONDS]
    if not lingering:
        return
    before = datetime.now(UTC) - timedelta(seconds=QUEUED_SECONDS)
    queued = dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED], created_before=before)
    if place.instance.get_runs(queued, limit=1):
        _end(place, lingering, "it only waited for messages, and other runs are queued")


def _end(place: Deployment, holders: Sequence[SlotHolder], reason: str) -> None:
    for holder in holders:
        place.transport.slots.end(place.transport.resolve(holder.queue), holder.owner, reason)


def _runs(instance: dg.DagsterInstance, owners: Collection[str]) -> dict[str, dg.DagsterRun]:
    """The runs of this instance among some owners."""
    run_ids = [run_id for one in owners if (run_id := run_of(one)) is not None]
    runs = instance.get_runs(dg.RunsFilter(run_ids=run_ids)) if run_ids else []
    return {owner(run.run_id): run for run in runs}


def _report(place: Deployment, run: dg.DagsterRun, why: str) -> None:
    """End a run in Dagster, and release what it may hold."""
    is_cancelled = run.status is dg.DagsterRunStatus.CANCELING
    message = f"The run is over: {why}, though Dagster showed it as {run.status.value}. Another run continues."
    logger.warning("run %s is over: %s", run.run_id, why)
    if is_cancelled:
        place.instance.report_run_canceled(run, message)
    else:
        reason = JobFailureData(error=None, failure_reason=RunFailureReason.UNEXPECTED_TERMINATION)
        place.instance.report_run_failed(run, message, reason)
    _release(place, run, is_cancelled)


def _release(place: Deployment, run: dg.DagsterRun, is_cancelled: bool | None = None) -> None:
    """Release what a run holds. One that failed releases it itself: if it could not, it may have died of a message."""
    if is_cancelled is None:
        is_cancelled = run.status is dg.DagsterRunStatus.CANCELED
    holder = owner(run.run_id)
    for claim in place.transport.claims.release_owner(holder, died=not is_cancelled):
        messages = count_of(claim.messages, "message")
        logger.info("released %s of %s, held by run %s", messages, claim.queue, run.run_id)
    # After the claims, so that the run that takes a slot finds its batch.
    if slots := place.transport.slots.release_owner(holder):
        logger.info("released %s, held by run %s", count_of(slots, "slot"), run.run_id)
