"""Staging of results by many processes, under the names of their attempts; Spark reports which of those count."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
from pydantic import BaseModel, ConfigDict
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from queue_pipeline.processing.arrow import Table, usual_types
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.results.sorting import Failed
from queue_pipeline.processing.results.table_rows import OutcomeRows
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.errors import QueuePipelineError
from queue_pipeline.transport.messages.message_columns import MessageColumns


class TaskReport(WriterCommitMessage):
    """A task's report of what it staged; Spark hands on those of successful attempts only."""

    def __init__(
        self,
        task: str,
        groups: Sequence[StagedGroup] = (),
        failures: Sequence[Failed] = (),
        rows: Sequence[tuple[int, int]] = (),
        tables: Sequence[OutcomeRows] = (),
        empty: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.task = task
        self.groups = list(groups)
        self.failures = list(failures)
        self.rows = list(rows)
        self.tables = list(tables)
        self.empty = list(empty)


class Manifest(BaseModel):
    """All that a job staged: the groups that count, the messages that failed, and which messages results belong to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    groups: list[StagedGroup]
    failures: list[Failed]
    rows: list[tuple[int, int]] = []
    """Ranges of row versions; what tasks have for tables travels beside it, as Arrow."""
    empty: list[tuple[int, int]] = []
    """Those of them that have no outcome."""

    @staticmethod
    def of(reports: Iterable[TaskReport | Manifest]) -> Manifest:
        """The manifest of a job's tasks, or of manifests of some of them each."""
        everything = list(reports)
        return Manifest(
            groups=[group for report in everything for group in report.groups],
            failures=[failed for report in everything for failed in report.failures],
            rows=[part for report in everything for part in report.rows],
            empty=[part for report in everything for part in report.empty],
        )


@dataclass(frozen=True, slots=True)
class PartitionResults:
    """What becomes of the rows of a partition: messages to send, messages that failed, rows for tables."""

    ready: Sequence[MessageColumns] = ()
    failures: Sequence[Failed] = ()
    tables: Sequence[OutcomeRows] = ()
    rows: Sequence[tuple[int, int]] = ()
    """The messages that all of it belongs to, as ranges of row versions."""
    empty: Sequence[tuple[int, int]] = ()
    """Those of them without any outcome."""


Messages: TypeAlias = Callable[[Table], PartitionResults]

logger = logging.getLogger(__name__)


def stage_partition(
    settings: ExecutorSettings,
    claim: Claim,
    job: str,
    batches: Iterable[pa.RecordBatch],
    messages: Messages,
) -> TaskReport:
    """Stage a partition, all or none. It is held whole: what belongs to one message must be seen together."""
    filled = [batch for batch in batches if batch.num_rows]
    task = task_name(job)
    if not filled:
        return TaskReport(task)
    made = messages(usual_types(pa.Table.from_batches(filled)))
    groups = settings.open().outbox.stage(claim, task, made.ready)
    return TaskReport(task, groups, made.failures, made.rows, made.tables, made.empty)


def abandon(transport: QueueTransport, claim: Claim) -> None:
    """Drop what was staged for a claim. Spark asks for this after a commit that raised too: nothing that counts is
    undone, for a claim that was completed, or that is another's by now, is left alone.
    """
    try:
        transport.outbox.abandon(claim)
    except QueuePipelineError as error:
        logger.warning("what was staged for claim %s stays until it is completed: %s", claim.claim_id, error)


def new_job() -> str:
    """The name of a job; its tasks' names begin with it."""
    return uuid.uuid4().hex[:12]


def task_name(job: str) -> str:
    """A name that no other attempt of any task has."""
    context: Any = TaskContext.get()
    return f"{job}.{context.partitionId()}.{context.taskAttemptId()}"
