"""The columns of a claim as Spark reads it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import types as T

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.claimed_batch import SCHEMA, Unreadable, prepare
from queue_pipeline.processing.spark.internals.calls import arrow_schema

PROBLEM = "problem"
"""Says what is wrong with headers that cannot be read; null for every message that can be used."""
COLUMNS = (
    "id STRING NOT NULL, row_version BIGINT NOT NULL, headers STRING NOT NULL, body BINARY NOT NULL, "
    "message_id STRING NOT NULL, correlation_id STRING, conversation_id STRING, reply_to STRING, message_type STRING, "
    f"enqueued TIMESTAMP, saga_id STRING, saga_type STRING, {PROBLEM} STRING"
)
_NAMES = (*SCHEMA.names, PROBLEM)


def check_columns(schema: T.StructType) -> None:
    """Refuse a column that a claim has not; fewer than all are welcome."""
    if unknown := [name for name in schema.fieldNames() if name not in _NAMES]:
        raise ConfigurationError(f"a claim has no column {', '.join(unknown)}; it has {', '.join(_NAMES)}")


def message_columns(part: Any, schema: T.StructType) -> pa.RecordBatch:
    """A part of a claim with the columns that are asked for; unreadable rows are in it, with what is wrong."""
    readable, unreadable = prepare(part)
    columns: Any = readable.append_column(PROBLEM, pa.nulls(readable.num_rows, pa.string()))
    if unreadable:
        table = pa.Table.from_batches([columns])
        columns = pa.concat_tables([table, _as_they_are(part, unreadable).cast(table.schema)]).combine_chunks()
        (columns,) = columns.to_batches()
    wanted = arrow_schema(schema)
    arrays = [columns.column(name).cast(wanted.field(name).type) for name in wanted.names]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def _as_they_are(part: Any, unreadable: list[Unreadable]) -> Any:
    known = {row.row_version: row.problem for row in unreadable}
    rows = part.filter(pc.is_in(part.column("row_version"), pa.array(list(known), pa.int64())))
    nothing = {name: pa.nulls(rows.num_rows, SCHEMA.field(name).type) for name in SCHEMA.names}
    problems = [known[row_version] for row_version in rows.column("row_version").to_pylist()]
    columns = {
        **nothing,
        "id": rows.column("id"),
        "row_version": rows.column("row_version"),
        "headers": pa.array([""] * rows.num_rows, pa.string()),
        "body": pa.array([b""] * rows.num_rows, pa.binary()),
        "message_id": rows.column("id"),
        PROBLEM: pa.array(problems, pa.string()),
    }
    return pa.table(columns)
