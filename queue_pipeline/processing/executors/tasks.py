"""What Spark's tasks do with a pipeline's claim: read a part of it, and stage what the transform made of one.

As functions over batches of Arrow's rather than the data source that programs use: a data source is asked by Spark in
four processes of their own a batch (what it is, what it reads, how it writes, what was written), and those that were
idle for a minute are started anew. Here the driver asks the database itself, and gets reports as the rows of a query.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import types as T

from queue_pipeline.processing.executors.attempts import Messages, stage_partition
from queue_pipeline.processing.executors.claim_source_reader import read_claim_part
from queue_pipeline.processing.executors.manifest import Manifest
from queue_pipeline.processing.executors.settings import ExecutorSettings
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.claim_reader import Part

REPORT = "report"
_REPORTS = pa.schema([pa.field(REPORT, pa.string())])


@dataclass(frozen=True)
class Reading:
    """Reads the parts of a claim whose numbers a task is given; reading again reads the same."""

    settings: ExecutorSettings
    claim: Claim
    parts: Sequence[Part]
    schema: T.StructType

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The messages of each part."""
        for batch in numbers:
            for number in batch.column(0).to_numpy():
                yield read_claim_part(self.settings, self.claim, self.parts[number], self.schema)


@dataclass(frozen=True)
class Staging:
    """Stages what a partition holds under the name of its task's attempt; its report is a row.

    Spark returns one row a partition, that of the attempt which it took for good: a report counts what no other does.
    """

    settings: ExecutorSettings
    claim: Claim
    job: str
    messages: Messages

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage a partition, all or none."""
        report = stage_partition(self.settings, self.claim, self.job, batches, self.messages)
        yield pa.RecordBatch.from_pydict({REPORT: [Manifest.of([report]).model_dump_json()]}, schema=_REPORTS)
