"""Claimed messages as columns: from rows as a driver returns them, or from a few values that hold many messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
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

_DASHES = (8, 13, 18, 23)
_TEXT_ID = 36
_NO_VALUE = -1


def from_rows(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """The rows of `claim_read.sql`."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    # SQL Server's drivers write ids in upper case; one message has one id, however it was received.
    arrays[0] = pc.utf8_lower(arrays[0])
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def from_packed(ids: bytes, versions: bytes, sizes: Sequence[bytes], headers: bytes, bodies: bytes) -> pa.RecordBatch:
    """The values of `claim_read_packed.sql`: ids of 16 bytes, versions of 8, sizes of 4, as PostgreSQL sends them."""
    count = len(versions) // 8
    header_sizes, body_sizes = (np.frombuffer(one, ">i4").astype(np.int64) for one in sizes)
    nothing = pa.nulls(count, pa.string())
    arrays = [
        _ids(ids, count),
        pa.array(np.frombuffer(versions, ">i8").astype(np.int64)),
        _values(pa.string(), header_sizes, headers),
        _values(pa.binary(), body_sizes, bodies),
        nothing,
        nothing,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def from_binary_rows(rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Rows that begin with sixteen bytes of id, the row version, headers as UTF-8 and the body."""
    if not rows:
        return from_rows(())
    ids, versions, headers, bodies = (list(column) for column in list(zip(*rows, strict=True))[:4])
    nothing = pa.nulls(len(rows), pa.string())
    arrays = [
        _ids(b"".join(ids), len(rows)),
        pa.array(versions, pa.int64()),
        pa.array(headers, pa.binary()).cast(pa.string()),
        pa.array(bodies, pa.binary()),
        nothing,
        nothing,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def in_order(messages: pa.RecordBatch) -> pa.RecordBatch:
    """Messages by row version; as they are where they are so already, which is usual."""
    versions = messages.column("row_version").to_numpy()
    if bool((versions[1:] > versions[:-1]).all()):
        return messages
    return messages.take(np.argsort(versions))


def content_bytes(messages: pa.RecordBatch) -> int:
    """The bytes of headers and bodies, as a claim counts them."""
    columns: list[Any] = [messages.column(name) for name in ("headers", "body")]
    return sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)


def _ids(ids: bytes, count: int) -> Any:
    digits = np.frombuffer(ids.hex().encode(), np.uint8).reshape(count, 32)
    text = np.full((count, _TEXT_ID), ord("-"), np.uint8)
    text[:, np.delete(np.arange(_TEXT_ID), _DASHES)] = digits
    return _values(pa.string(), np.full(count, _TEXT_ID, np.int64), text.tobytes())


def _values(kind: Any, sizes: Any, data: bytes) -> Any:
    """Values that lie one behind the other, as Arrow itself keeps them."""
    is_there = sizes != _NO_VALUE
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(np.where(is_there, sizes, 0), out=offsets[1:])
    missing = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little").tobytes())
    buffers = [missing, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(sizes), buffers)
