"""Messages in the binary format of PostgreSQL's COPY."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from queue_pipeline.transport.dialect import Row

BYTES_PER_PIECE = 1024 * 1024
ROWS_PER_PIECE = 2_000
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = struct.pack("!h", -1)
_BEGIN = struct.Struct("!hi16si").pack
"""Of a row: three values, sixteen bytes of id, and the size of the headers."""
_SIZE = struct.Struct("!i").pack


def copied(rows: Iterable[Row]) -> Iterator[bytes]:
    """The id, headers and body of rows, as `sql/postgresql/nservicebus/copy.sql` takes them, in pieces of a megabyte.

    Whether they expire is not among them.
    """
    pieces, size = [_HEAD], 0
    for row_id, _, text, body in rows:
        headers = text.encode()
        pieces += (_BEGIN(3, 16, bytes.fromhex(row_id.replace("-", "")), len(headers)), headers, _SIZE(len(body)), body)
        size += len(headers) + len(body)
        if size >= BYTES_PER_PIECE:
            yield b"".join(pieces)
            pieces, size = [], 0
    pieces.append(_END)
    yield b"".join(pieces)


def copied_columns(ids: bytes, headers: Any, bodies: Any) -> Iterator[bytes]:
    """The same of columns: sixteen bytes of each id, and arrays of Arrow's; no row becomes an object."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    begin = np.dtype([("values", ">i2"), ("id_size", ">i4"), ("id", "V16"), ("size", ">i4")])
    yield _HEAD
    for first in range(0, len(headers), ROWS_PER_PIECE):
        texts, contents = (column.slice(first, ROWS_PER_PIECE).cast(pa.binary()) for column in (headers, bodies))
        starts = np.empty(len(texts), begin)
        starts["values"], starts["id_size"] = 3, 16
        starts["id"] = np.frombuffer(ids[16 * first : 16 * (first + len(texts))], "V16")
        starts["size"] = pc.binary_length(texts)
        sizes = pc.binary_length(contents).to_numpy().astype(">i4")
        rows: Any = pc.binary_join_element_wise(
            _fixed(starts.tobytes(), begin.itemsize), texts, _fixed(sizes.tobytes(), 4), contents, b""
        )
        yield rows.buffers()[2].to_pybytes()
    yield _END


def _fixed(data: bytes, size: int) -> Any:
    """Values of the same size that lie one behind the other."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.binary(size), len(data) // size, [None, pa.py_buffer(data)]).cast(pa.binary())
