"""Staging of results by many processes, under the names of their attempts; Spark reports which of those count."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.arrow import Table, usual_types
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.results.table_rows import OutcomeRows
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages.message_columns import MessageColumns

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TaskReport(WriterCommitMessage):
    """What tasks staged, and what became of the other messages; Spark returns the reports of successful attempts."""

    groups: Sequence[StagedGroup] = ()
    failures: Mapping[int, Failure] = field(default_factory=dict)
    """Why messages failed, by row version."""
    tables: Sequence[OutcomeRows] = ()
    rows: Sequence[tuple[int, int]] = ()
    """The messages that all of it belongs to, as ranges of row versions."""
    empty: Sequence[tuple[int, int]] = ()
    """Those of them without any outcome."""

    @staticmethod
    def joined(reports: Iterable[TaskReport]) -> TaskReport:
        """The report of all tasks of a job."""
        everything = list(reports)
        return TaskReport(
            groups=[group for report in everything for group in report.groups],
            failures={version: why for report in everything for version, why in report.failures.items()},
            tables=[rows for report in everything for rows in report.tables],
            rows=[part for report in everything for part in report.rows],
            empty=[part for report in everything for part in report.empty],
        )


Messages: TypeAlias = Callable[[Table], tuple[Sequence[MessageColumns], TaskReport]]
"""Makes the messages to send of the rows of a partition, and the report of the others."""


def stage_partition(
    settings: ExecutorSettings, claim: Claim, job: str, batches: Iterable[pa.RecordBatch], messages: Messages
) -> TaskReport:
    """Stage a partition, all or none. It is held whole: what belongs to one message must be seen together."""
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        return TaskReport()
    ready, report = messages(usual_types(pa.Table.from_batches(filled)))
    return replace(report, groups=settings.open().outbox.stage(claim, _task_name(job), ready))


def abandon(transport: QueueTransport, claim: Claim) -> None:
    """Drop what was staged for a claim, if it is still held: Spark asks for this after a commit that raised too."""
    try:
        transport.outbox.abandon(claim)
    except QueuePipelineError as error:
        logger.warning("what was staged for claim %s stays until it is completed: %s", claim.claim_id, error)


def new_job() -> str:
    """The name of a job; its tasks' names begin with it."""
    return uuid.uuid4().hex[:12]


def _task_name(job: str) -> str:
    # No other attempt of any task has this name.
    context: Any = TaskContext.get()
    return f"{job}.{context.partitionId()}.{context.taskAttemptId()}"
