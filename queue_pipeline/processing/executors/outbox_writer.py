"""Stages results from many processes; Spark's commit protocol says which of their attempts count."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.envelopes import Failed
from queue_pipeline.processing.executors.completion import complete_staged
from queue_pipeline.processing.executors.manifest import Manifest, TaskReport
from queue_pipeline.processing.executors.settings import ExecutorSettings
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.errors import QueuePipelineError
from queue_pipeline.transport.ready import ReadyMessages

logger = logging.getLogger(__name__)


class OutboxWriter(DataSourceArrowWriter):
    """Stages what a partition holds under the name of its task's attempt.

    `write` runs in the executors, `commit` and `abort` in a process of their own beside Spark's driver.
    """

    def __init__(self, settings: ExecutorSettings, claim: Claim, job: str, *, completes: bool) -> None:
        """`completes`: the job's end completes the claim; otherwise it keeps a manifest for whoever does."""
        self._settings = settings
        self._claim = claim
        self._job = job
        self._completes = completes

    @abstractmethod
    def messages(self, rows: Table) -> tuple[Sequence[ReadyMessages], Sequence[Failed]]:
        """What is to be sent for the rows of a partition, and which messages failed."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:  # type: ignore[override]
        """Stage a partition, all or none."""
        return stage_partition(self._settings, self._claim, self._job, iterator, self.messages)

    def commit(self, messages: Sequence[Any]) -> None:
        """Make what successful attempts staged count: with the claim at once, or as a manifest."""
        manifest = Manifest.of([report for report in messages if report is not None])
        transport = self._settings.open()
        if self._completes:
            complete_staged(transport, self._claim, manifest)
        else:
            transport.outbox.keep_manifest(self._claim, self._job, manifest.model_dump_json())

    def abort(self, messages: Sequence[Any]) -> None:
        """Drop what was staged."""
        abandon(self._settings, self._claim)


def stage_partition(
    settings: ExecutorSettings,
    claim: Claim,
    job: str,
    batches: Iterable[pa.RecordBatch],
    messages: Callable[[Table], tuple[Sequence[ReadyMessages], Sequence[Failed]]],
) -> TaskReport:
    """Stage a partition, all or none. It is held whole: what belongs to one message must be seen together."""
    filled = [batch for batch in batches if batch.num_rows]
    task = task_name(job)
    if not filled:
        return TaskReport(task, (), ())
    ready, failures = messages(pa.Table.from_batches(filled))
    return TaskReport(task, settings.open().outbox.stage(claim, task, ready), failures)


def abandon(settings: ExecutorSettings, claim: Claim) -> None:
    """Drop what was staged for a claim. Spark asks for this after a commit that raised too: nothing that counts is
    undone, for a claim that was completed, or that is another's by now, is left alone.
    """
    try:
        settings.open().outbox.abandon(claim)
    except QueuePipelineError as error:
        logger.warning("what was staged for claim %s stays until it is completed: %s", claim.claim_id, error)


def task_name(job: str) -> str:
    """A name that no other attempt of any task has."""
    context: Any = TaskContext.get()
    return f"{job}.{context.partitionId()}.{context.taskAttemptId()}"
