"""Claimed messages as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("row_version", pa.int64(), nullable=False),
    pa.field("headers", pa.string(), nullable=False),
    pa.field("body", pa.binary()),
    pa.field("correlation_id", pa.string()),
    pa.field("reply_to_address", pa.string()),
]
SCHEMA = pa.schema(_FIELDS)
"""The columns of a claimed message; headers are the stored JSON text, the last two what version 1 kept in columns."""


def from_rows(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """The rows of `claim_read.sql`."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    # SQL Server's drivers write ids in upper case; one message has one id, however it was received.
    arrays[0] = pc.utf8_lower(arrays[0])
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
