"""What the peek loop sees of the world: queues in the database, runs in Dagster, and the code of both."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import dagster as dg

from queue_pipeline.orchestration.names import CODE_TAG, PIPELINE_TAG, SLOTS_TAG, owner, run_of
from queue_pipeline.orchestration.peek_loop import Peeked, Runs
from queue_pipeline.orchestration.watch.run_upkeep import LAUNCHED, Deployment
from queue_pipeline.orchestration.watch.upkeep import Upkeep
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.transport.claims.failure_counts import FailureCount
from queue_pipeline.transport.due_mover import RARE_LOOK_SECONDS, DueMover
from queue_pipeline.transport.operations.slots import SlotHolder

MOST_COUNTED = 1_000
RECENT_RUNS = 12
LOADED_AT = time.time()
"""When this process was deployed, if its code is not watched."""
LOOK_FOR_OLD_CODE_SECONDS = 5.0
IN_FLIGHT = [dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, *LAUNCHED]
FAILURE_REASON_TAG = "dagster/failure_reason"
ENDED_FROM_OUTSIDE = ("UNEXPECTED_TERMINATION", "RUN_WORKER_RESTART")
"""Why runs fail that a restart or a deployment ended: that says nothing about the next run."""


class DagsterSurroundings:
    """The real queues and runs."""

    def __init__(
        self,
        place: Deployment,
        code: SourceCode | None = None,
        mover: DueMover | None = None,
        upkeep: Upkeep | None = None,
    ) -> None:
        """Without a `mover` nothing is moved, and without `upkeep` nothing is done for runs that died."""
        self._place = place
        self._instance = place.instance
        self._database = place.transport
        self._code = code
        self._mover = mover
        self._upkeep = upkeep
        self._waiting: dict[str, int] = {}
        self._failing: dict[str, FailureCount] = {}
        self._look_for_old_code_at = 0.0

    def now(self) -> float:
        """The time in seconds."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait, but not for longer than until the code server stops."""
        self._place.server.sleep(seconds)

    def is_stopping(self) -> bool:
        """Whether the code server stops."""
        return self._place.server.is_stopping

    def paused(self) -> set[str]:
        """The names of paused pipelines, read together with what the peeks of this round need."""
        self._waiting = self._database.claims.waiting()
        self._failing = self._database.failures.list()
        return set(self._database.pauses.list())

    def look_after(self, until: float) -> None:
        """Do the upkeep that is due, as far as it can begin before a time."""
        if self._upkeep is not None:
            self._upkeep.look(self._place, lambda: time.time() < until)

    def move_due(self) -> float:
        """Move delayed messages that are due."""
        return self._mover.poll() if self._mover is not None else RARE_LOOK_SECONDS

    def peek(self, pipeline: QueuePipeline) -> Peeked:
        """Messages in the queue, and those in batches that no process holds any more."""
        count = self._database.peek(pipeline.input_queue, MOST_COUNTED)
        abandoned = self._waiting.get(self._database.resolve(pipeline.input_queue).canonical, 0)
        return Peeked(count + abandoned, count >= MOST_COUNTED)

    def end_old_runs(self, pipelines: Sequence[QueuePipeline]) -> None:
        """Have runs take no further batch that were defined by a code server with other code than this one.

        A server that has not loaded the newest files itself ends no run: its runs load them, and notice by themselves.
        """
        if self._code is None or self._mover is None or time.monotonic() < self._look_for_old_code_at:
            return
        self._look_for_old_code_at = time.monotonic() + LOOK_FOR_OLD_CODE_SECONDS
        queues = {self._place.names.pipeline_tag(pipeline): pipeline.input_queue for pipeline in pipelines}
        tags = {PIPELINE_TAG: list(queues)}
        runs = self._instance.get_runs(dg.RunsFilter(tags=tags, statuses=IN_FLIGHT))
        old = [run for run in runs if run.tags.get(CODE_TAG, self._code.fingerprint) != self._code.fingerprint]
        if not old or self._code.change() is not None:
            return
        for run in old:
            queue = self._database.resolve(queues[run.tags[PIPELINE_TAG]])
            self._database.slots.end(queue, owner(run.run_id), "other code is deployed")

    def runs(self, pipeline: QueuePipeline) -> Runs:
        """Who is at work, and how the last runs ended.

        A run in flight counts as a whole, unless this code location did not launch it: that one, perhaps started from
        the command line, counts by what it holds in the database. Those that died are reported by `look_after`.
        """
        tags = {PIPELINE_TAG: self._place.names.pipeline_tag(pipeline)}
        working = self._instance.get_runs(dg.RunsFilter(tags=tags, statuses=IN_FLIGHT))
        alive = [run for run in working if self._place.has_launched(run)]
        queue = self._database.resolve(pipeline.input_queue)
        held = {holder.owner: holder for holder in self._database.slots.list(queue)}
        others, elsewhere = self._others(held, alive)
        slots = sum(_slots_of(run, pipeline, held) for run in alive) + others
        failed, last = self._failed_in_a_row(tags)
        failing = self._failing.get(queue.canonical)
        attempts, last_error = (failing.failures, failing.last_error) if failing else (0, None)
        return Runs(slots, failed, last, attempts, elsewhere, last_error)

    def _failed_in_a_row(self, tags: Mapping[str, str]) -> tuple[int, float | None]:
        """How many runs of this code failed, and when the last did. New code has not failed yet, and a deployment that
        ends runs is no failure of theirs: those that were created before it do not count.
        """
        failed, last = 0, None
        since = self._code.changed_at() if self._code is not None else LOADED_AT
        for record in self._instance.get_run_records(dg.RunsFilter(tags=tags), limit=RECENT_RUNS):
            status = record.dagster_run.status
            if status in IN_FLIGHT or status is dg.DagsterRunStatus.CANCELED or _was_ended(record.dagster_run):
                continue
            if status is not dg.DagsterRunStatus.FAILURE or record.create_timestamp.timestamp() < since:
                break
            failed += 1
            last = last or record.end_time
        return failed, last

    def _others(self, held: Mapping[str, SlotHolder], counted: Sequence[dg.DagsterRun]) -> tuple[int, int]:
        """Slots in the queue that none of these runs has, and how many of them no run of this Dagster has.

        A new run would not get them: they belong to another machine, or to a run without the pipeline's tag.
        """
        ours = {owner(run.run_id) for run in counted}
        left = {name: holder.slots for name, holder in held.items() if name not in ours}
        run_ids = [run_id for name in left if (run_id := run_of(name)) is not None]
        known = self._instance.get_runs(dg.RunsFilter(run_ids=run_ids, statuses=IN_FLIGHT)) if run_ids else []
        here = sum(left[owner(run.run_id)] for run in known)
        return sum(left.values()), sum(left.values()) - here


def _was_ended(run: dg.DagsterRun) -> bool:
    return run.tags.get(FAILURE_REASON_TAG) in ENDED_FROM_OUTSIDE


def _slots_of(run: dg.DagsterRun, pipeline: QueuePipeline, held: Mapping[str, SlotHolder]) -> int:
    """How many batches a run may have in work; one that takes no more has those that it is about to finish."""
    holder = held.get(owner(run.run_id))
    if holder is not None and holder.ending is not None:
        return holder.slots
    given = run.tags.get(SLOTS_TAG, "")
    return int(given) if given.isdigit() else pipeline.slots
