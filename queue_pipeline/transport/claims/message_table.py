"""Claimed messages as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from queue_pipeline.transport.messages import headers as wire

_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("row_version", pa.int64(), nullable=False),
    pa.field("headers", pa.string(), nullable=False),
    pa.field("body", pa.binary()),
]
SCHEMA = pa.schema(_FIELDS)
"""The columns of a claimed message; headers are the stored JSON text, with what version 1 kept in columns."""


def from_rows(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """The rows of the section `read` as columns. A text that is not Unicode makes only its own row unreadable."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * (len(SCHEMA) + 2)
    *columns, correlation_ids, reply_to_addresses = columns
    if any(correlation_ids) or any(reply_to_addresses):
        columns[2] = list(map(_whole, columns[2], correlation_ids, reply_to_addresses))
    arrays = [_array(column, field) for column, field in zip(columns, SCHEMA, strict=True)]
    # SQL Server's drivers write ids in upper case; one message has one id, however it was received.
    arrays[0] = pc.utf8_lower(arrays[0])
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _whole(text: str, correlation_id: str | None, reply_to_address: str | None) -> str:
    """Headers with what stands in columns, so that every copy of the message has it; unreadable ones stay unchanged."""
    if not correlation_id and not reply_to_address:
        return text
    try:
        headers = wire.decode(text)
        whole = wire.add_columns({**headers}, correlation_id, reply_to_address)
        return text if whole == headers else wire.encode(whole)
    except ValueError:
        return text


def _array(column: Sequence[Any], field: pa.Field[Any]) -> Any:
    try:
        return pa.array(column, field.type)
    except UnicodeEncodeError:
        change = _headers if field.name == "headers" else _replaced
        return pa.array([value and change(value) for value in column], field.type)


def _headers(text: str) -> str:
    try:
        wire.check_unicode(text, "headers")
    except ValueError as error:
        return f"{wire.UNREADABLE}{error}"
    return text


def _replaced(text: str) -> str:
    return text.encode(errors="replace").decode()
