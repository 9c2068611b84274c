"""What the peek loop does beside its peeks: runs and what they hold, the outbox, the checks of pipelines.

Each part has an interval of its own and fails alone: it is tried again at the next look, and the tick says why.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from queue_pipeline.errors import DatabaseUnavailableError, QueuePipelineError
from queue_pipeline.orchestration.checks import DESCRIPTIONS, INDEXES, check_indexes, check_pipeline, evaluation
from queue_pipeline.orchestration.external_assets import queues_of
from queue_pipeline.orchestration.watch.run_upkeep import Deployment, RunUpkeep
from queue_pipeline.processing.declaration.pipeline import QueuePipeline

LOOK_SECONDS = 5.0
"""Between looks at runs, and before a part that failed is tried again."""
LONGEST_LOOK_SECONDS = 1.0
"""When a look begins nothing more: messages that wait, or become due, are seen between looks."""
SWEEP_SECONDS = 300.0
CHECK_SECONDS = 300.0
INDEX_SECONDS = 86_400.0
REPORT_SECONDS = 3600.0
"""How often a check whose outcome stays the same is reported: each report is a row in Dagster's storage."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Part:
    """Something to do every so often."""

    what: str
    work: Callable[[Deployment], object]
    seconds: float
    next_at: float
    trouble: str | None = None


class Upkeep:
    """What is done beside the peeks, for the life of a code server."""

    def __init__(self, pipelines: Sequence[QueuePipeline], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reported: dict[dg.AssetCheckKey, tuple[bool, float]] = {}
        self._news: dict[dg.AssetCheckKey, Callable[[], dg.AssetCheckResult]] = {}
        now, between = clock(), CHECK_SECONDS / max(1, len(pipelines))
        self._parts = [
            _Part("runs and what they hold", RunUpkeep(pipelines, clock).look, LOOK_SECONDS, now),
            _Part("the outbox", lambda place: place.transport.outbox.sweep(), SWEEP_SECONDS, now),
            *(
                # One after the other, so that many pipelines do not keep a tick busy.
                _Part(f"the checks of {each.name}", self._checks_of(each), CHECK_SECONDS, now + number * between)
                for number, each in enumerate(pipelines)
            ),
            *(
                _Part(f"the indexes of {queue}", self._indexes_of(queue), INDEX_SECONDS, now)
                for queue in queues_of(pipelines)
            ),
        ]

    def look(self, place: Deployment, has_time: Callable[[], bool]) -> None:
        """Do what is due, as long as there is time; nothing is raised. What is left is for the next look."""
        now = self._clock()
        for part in [part for part in self._parts if now >= part.next_at]:
            is_reachable = self._do(part, place)
            if not is_reachable or not has_time() or self._clock() - now >= LONGEST_LOOK_SECONDS:
                return

    def troubles(self) -> list[str]:
        """What could not be done at its last try, and why."""
        return [f"{part.what}: {part.trouble}" for part in self._parts if part.trouble is not None]

    def take_evaluations(self, has_time: Callable[[], bool]) -> list[dg.AssetCheckEvaluation]:
        """The checks to be reported since the last call; what there is no time for is left for the next one.

        They are made again, because a run may have ended, and reported its checks, since they were made.
        """
        evaluations = []
        for key, make in list(self._news.items()):
            if not has_time():
                break
            try:
                outcome = make()
            except DatabaseUnavailableError:
                break
            except QueuePipelineError:
                continue
            del self._news[key]
            self._reported[key] = (outcome.passed, self._clock())
            evaluations.append(evaluation(key, outcome))
        return evaluations

    def _do(self, part: _Part, place: Deployment) -> bool:
        """Do one part; returns whether the database can be reached."""
        try:
            part.work(place)
        except Exception as error:
            # Of the database, or of Dagster's storage: the other parts may work, and this one is tried again.
            if part.trouble is None:
                logger.warning("the peek loop could not look after %s: %s", part.what, error)
            part.trouble, part.next_at = str(error) or type(error).__name__, self._clock() + LOOK_SECONDS
            # Each of the others would wait as long for a database that does not answer.
            return not isinstance(error, DatabaseUnavailableError)
        part.trouble, part.next_at = None, self._clock() + part.seconds
        return True

    def _checks_of(self, pipeline: QueuePipeline) -> Callable[[Deployment], None]:
        def look(place: Deployment) -> None:
            for name in DESCRIPTIONS:
                key = dg.AssetCheckKey(place.names.pipeline_key(pipeline), name)
                self._report(place, key, partial(check_pipeline, place.transport, pipeline, name))

        return look

    def _indexes_of(self, queue: str) -> Callable[[Deployment], None]:
        """A check that never ran has a green tick in the UI: the indexes are checked at the first look."""

        def look(place: Deployment) -> None:
            key = dg.AssetCheckKey(place.names.queue_key(queue), INDEXES)
            self._report(place, key, partial(check_indexes, place.transport, queue))

        return look

    def _report(self, place: Deployment, key: dg.AssetCheckKey, make: Callable[[], dg.AssetCheckResult]) -> None:
        """Report a check when its outcome is not the one that Dagster shows, and every hour."""
        outcome, now = make(), self._clock()
        passed, reported_at = self._reported.get(key, (None, now))
        # Runs report checks, too, and people execute them.
        latest = place.instance.event_log_storage.get_latest_asset_check_execution_by_key([key]).get(key)
        shown = passed if latest is None else latest.status is AssetCheckExecutionRecordStatus.SUCCEEDED
        if {passed, shown} != {outcome.passed} or now - reported_at >= REPORT_SECONDS:
            self._news[key] = make
