"""Messages in the binary format of PostgreSQL's COPY."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from queue_pipeline.transport.dialect import NEVER_EXPIRES, Row

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


def copied_columns(
    ids: bytes, headers: Any, bodies: Any, before: Sequence[bytes] = (), after: Sequence[bytes] = ()
) -> Iterator[bytes | memoryview]:
    """The same of columns: sixteen bytes of each id, and arrays of Arrow's; no row becomes an object.

    `before` and `after` are values that all rows have, on either side of the id.

    Memory as Arrow has it: the driver cuts it up, and of bytes that would be one more copy.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    first_values, further_values = (
        b"".join(_SIZE(len(value)) + value for value in values) for values in (before, after)
    )
    first_values = struct.pack("!h", len(before) + len(after) + 3) + first_values + _SIZE(16)
    begin = np.dtype(
        [("first", f"V{len(first_values)}"), ("id", "V16"), ("further", f"V{len(further_values)}"), ("size", ">i4")]
    )
    yield _HEAD
    for first in range(0, len(headers), ROWS_PER_PIECE):
        texts, contents = (column.slice(first, ROWS_PER_PIECE).cast(pa.binary()) for column in (headers, bodies))
        starts = np.empty(len(texts), begin)
        starts["first"], starts["further"] = np.void(first_values), np.void(further_values)
        starts["id"] = np.frombuffer(ids[16 * first : 16 * (first + len(texts))], "V16")
        starts["size"] = pc.binary_length(texts)
        sizes = pc.binary_length(contents).to_numpy().astype(">i4")
        rows: Any = pc.binary_join_element_wise(
            _fixed(starts.tobytes(), begin.itemsize), texts, _fixed(sizes.tobytes(), 4), contents, b""
        )
        yield memoryview(rows.buffers()[2])
    yield _END


def staged_values(claim_id: str, task: str, pile: int) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """What rows of the outbox have beside their messages, before and after the id; they never expire."""
    before = (uuid.UUID(claim_id).bytes, task.encode(), struct.pack("!i", pile))
    return before, (struct.pack("!q", NEVER_EXPIRES),)


def _fixed(data: bytes, size: int) -> Any:
    """Values of the same size that lie one behind the other."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.binary(size), len(data) // size, [None, pa.py_buffer(data)]).cast(pa.binary())
