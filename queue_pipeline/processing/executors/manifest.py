"""What tasks report of what they staged, and what a job keeps of those that Spark took for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict
from pyspark.sql.datasource import WriterCommitMessage

from queue_pipeline.processing.envelopes import Failed
from queue_pipeline.transport.outbox import Pile


class TaskReport(WriterCommitMessage):
    """A task's word on what it staged; Spark hands on those of successful attempts only."""

    def __init__(self, task: str, piles: Sequence[Pile], failures: Sequence[Failed]) -> None:
        self.task = task
        self.piles = list(piles)
        self.failures = list(failures)


class Manifest(BaseModel):
    """All that a job staged: the piles that count, and the messages that failed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    piles: list[Pile]
    failures: list[Failed]

    @staticmethod
    def of(reports: Iterable[TaskReport | Manifest]) -> Manifest:
        """The manifest of a job's tasks, or of manifests of some of them each."""
        told = list(reports)
        return Manifest(
            piles=[pile for report in told for pile in report.piles],
            failures=[failed for report in told for failed in report.failures],
        )
