"""Messages in the binary format of PostgreSQL's COPY."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator

from queue_pipeline.transport.dialect import Row

BYTES_PER_PIECE = 1024 * 1024
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
