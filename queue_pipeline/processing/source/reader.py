"""Reads a claim from many processes: each takes a range of row versions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceReader, InputPartition

from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.source.columns import check_columns, message_columns
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claim_reader import Part

NEEDS_BODY = "body"
PART_MESSAGES = 20_000
PART_BYTES = 16 * 1024 * 1024
"""What a task reads at most: it costs a third of a second before its first message, and holds its part in memory."""


@dataclass
class ClaimPart(InputPartition):
    """What one task reads."""

    part: Part


class ClaimSourceReader(DataSourceReader):
    """Cuts a claim into parts and reads one a task; reading again, as Spark may, reads the same."""

    def __init__(self, settings: ExecutorSettings, claim: Claim, schema: T.StructType) -> None:
        check_columns(schema)
        self._settings = settings
        self._claim = claim
        self._schema = schema

    def partitions(self) -> list[ClaimPart]:
        """One a part, bounded in messages and bytes."""
        return [ClaimPart(part) for part in claim_parts(self._settings.open(), self._claim)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages of one part; bodies are fetched only if the query uses them."""
        # Spark asks for a part without a value where a claim has none.
        if isinstance(partition, ClaimPart):
            yield read_claim_part(self._settings, self._claim, partition.part, self._schema)


def claim_parts(transport: QueueTransport, claim: Claim) -> list[Part]:
    """The parts of a claim, of a size for tasks."""
    return transport.claim_reader.parts(claim, PART_MESSAGES, PART_BYTES)


def read_claim_part(settings: ExecutorSettings, claim: Claim, part: Part, schema: T.StructType) -> pa.RecordBatch:
    """The messages of a part with the columns that are asked for."""
    rows = settings.open().claim_reader.read_part(claim, part, body=NEEDS_BODY in schema.fieldNames())
    return message_columns(rows, schema)
