"""What Spark's tasks do with a pipeline's claim: read a part of it, and stage what the transform made of one.

These are functions over Arrow batches and not the data source that programs use: Spark asks a data source in four
processes of their own per batch. Here the driver asks the database itself, and gets reports as the rows of a query.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from queue_pipeline.processing.arrow import usual_types
from queue_pipeline.processing.batch.claimed_batch import SCHEMA
from queue_pipeline.processing.batch.messages_frame import PAYLOAD
from queue_pipeline.processing.batch.part_report import read_part
from queue_pipeline.processing.batch.staging import Messages, stage_partition
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.body.parse import BodyParser
from queue_pipeline.processing.source.columns import PROBLEM
from queue_pipeline.processing.spark.internals.calls import arrow_schema, spark_schema
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claim_reader import Part

REPORT = "report"
REPORTS = f"{REPORT} BINARY"


@dataclass(frozen=True)
class Reading:
    """Reads the parts of a claim whose numbers a task is given; reading again reads the same."""

    settings: ExecutorSettings
    claim: Claim
    parts: Sequence[Part]
    schema: T.StructType
    parser: BodyParser | None = None
    job: str | None = None
    """Where the report of each part goes: into the outbox, under this name. None: no report is made."""

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The messages of each part that can be read."""
        wanted = arrow_schema(self.schema)
        for batch in numbers:
            for number in batch.column(0).to_numpy().tolist():
                transport = self.settings.open()
                read = read_part(transport.claim_reader.read_part(self.claim, self.parts[number]), self.parser)
                if self.job is not None:
                    report = read.report.model_dump_json().encode()
                    transport.outbox.report(self.claim, self.job, number, report)
                yield from read.messages.select(wanted.names).cast(wanted).to_batches()


@dataclass(frozen=True)
class Parsing:
    """Parses the bodies of messages that were read before: adds `payload`, and `problem` where there is none."""

    parser: BodyParser

    @property
    def schema(self) -> T.StructType:
        """The columns of a message, the payload, and the problem in words."""
        added = [pa.field(PAYLOAD, self.parser.payload_type), pa.field(PROBLEM, pa.string())]
        return spark_schema(pa.schema([*SCHEMA, *added]))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same messages with two further columns."""
        wanted = arrow_schema(self.schema)
        for batch in batches:
            columns: Any = usual_types(pa.Table.from_batches([batch]))
            parsed = self.parser.parse(columns["body"])
            problems = [
                problem.message if (problem := parsed.problems.get(at)) else None for at in range(batch.num_rows)
            ]
            columns = columns.append_column(PAYLOAD, parsed.payload).append_column(
                PROBLEM, pa.array(problems, pa.string())
            )
            yield from columns.select(wanted.names).cast(wanted).to_batches()


@dataclass(frozen=True)
class Staging:
    """Stages a partition under the name of its attempt; Spark returns the report of one attempt per partition."""

    settings: ExecutorSettings
    claim: Claim
    job: str
    messages: Messages

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Stage a partition, all or none."""
        report = stage_partition(self.settings, self.claim, self.job, batches, self.messages)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(report)], pa.binary())], [REPORT])
