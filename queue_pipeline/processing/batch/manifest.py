"""What tasks report of what they staged, and what a job keeps of those that Spark took for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict
from pyspark.sql.datasource import WriterCommitMessage

from queue_pipeline.processing.results.sorting import Failed
from queue_pipeline.processing.results.table_rows import OutcomeRows
from queue_pipeline.transport.claims.outbox import StagedGroup


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
