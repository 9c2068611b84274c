"""Claimed messages as columns: from rows as a driver returns them, from a few values that hold many messages, or from
rows as COPY has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queue_pipeline.transport.arrow_column import uuid_texts

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

_NO_VALUE = -1
_SIGNATURE = 19
"""Bytes before the first row of a binary COPY."""
_END = b"\xff\xff"
_SIZE = np.dtype(">i4")
# Each value comes after its size, and the first size after the number of values.
_ID = 2 + _SIZE.itemsize
_VERSION = _ID + 16 + _SIZE.itemsize
_EXPIRED = _VERSION + 8 + _SIZE.itemsize
_HEADERS = _EXPIRED + 1 + _SIZE.itemsize


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
        uuid_texts(ids),
        pa.array(np.frombuffer(versions, ">i8").astype(np.int64)),
        _values(pa.string(), header_sizes, headers),
        _values(pa.binary(), body_sizes, bodies),
        nothing,
        nothing,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class Copied(NamedTuple):
    """What came by COPY: messages, and how many more there were that had expired."""

    messages: pa.RecordBatch
    expired: int


def from_copied(gathered: Sequence[bytes], sizes: Sequence[int]) -> Copied:
    """The rows of `receive_copied.sql` and `claim_read_copied.sql` in COPY's binary format, which came a row a piece.

    No row becomes an object: between the starts and ends of headers and bodies, all that was received is one column of
    Arrow's, of which those are taken.
    """
    data = _joined(gathered)
    starts = _row_starts(data, sizes)
    count = len(starts)
    if not count:
        return Copied(from_rows(()), 0)
    headers = starts + _HEADERS
    header_ends = headers + _at(data, headers - _SIZE.itemsize, _SIZE)
    bodies = header_ends + _SIZE.itemsize
    body_sizes = _at(data, header_ends, _SIZE)
    has_body = body_sizes != _NO_VALUE
    places = np.stack((headers, header_ends, bodies, bodies + np.where(has_body, body_sizes, 0)), 1)
    stretches: Any = pa.Array.from_buffers(
        pa.binary(), 4 * count - 1, [None, pa.py_buffer(places.astype(np.int32).tobytes()), data]
    )
    contents = stretches.take(pa.array(np.arange(2, 4 * count, 4)))
    if not has_body.all():
        contents = pc.if_else(pa.array(has_body), contents, pa.scalar(None, pa.binary()))
    nothing = pa.nulls(count, pa.string())
    arrays = [
        uuid_texts(_at(data, starts + _ID, np.dtype("V16")).tobytes()),
        pa.array(_at(data, starts + _VERSION, np.dtype(">i8")).astype(np.int64)),
        stretches.take(pa.array(np.arange(0, 4 * count, 4))).cast(pa.string()),
        contents,
        nothing,
        nothing,
    ]
    messages = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    expired = _at(data, starts + _EXPIRED, np.dtype("u1")) != 0
    if expired.any():
        messages = messages.filter(pa.array(~expired))
    return Copied(messages, int(expired.sum()))


def _joined(gathered: Sequence[bytes]) -> pa.Buffer:
    """In memory of Arrow's, which keeps it for the next time."""
    joined = pa.allocate_buffer(sum(map(len, gathered)))
    view, end = memoryview(joined).cast("B"), 0
    for part in gathered:
        view[end : end + len(part)] = part
        end += len(part)
    return joined


def _row_starts(data: pa.Buffer, sizes: Sequence[int]) -> Any:
    """Where the rows begin among all bytes: behind the signature of the format, and before its end."""
    if not sizes or sizes[0] < _SIGNATURE or data[-len(_END) :].to_pybytes() != _END:
        raise ValueError("a COPY did not come to its end")
    counted = np.asarray(sizes, np.int64)
    ends = np.cumsum(counted)
    starts = ends - counted
    starts[0] = _SIGNATURE
    # The signature and the end may be pieces of their own.
    return starts[ends - starts > len(_END)]


def _at(data: pa.Buffer, places: Any, kind: Any) -> Any:
    """The values of a type that begin at these places."""
    everywhere: Any = np.ndarray((data.size - kind.itemsize + 1,), kind, memoryview(data), strides=(1,))
    return everywhere[places]


def _values(kind: Any, sizes: Any, data: bytes) -> Any:
    """Values that lie one behind the other, as Arrow itself keeps them."""
    is_there = sizes != _NO_VALUE
    offsets = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(np.where(is_there, sizes, 0), out=offsets[1:])
    missing = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little").tobytes())
    buffers = [missing, pa.py_buffer(offsets.tobytes()), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind, len(sizes), buffers)
