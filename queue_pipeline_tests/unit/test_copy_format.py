import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.dialects.copy_format import BYTES_PER_PIECE, copied

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


def row(headers: str = "{}", body: bytes = b"") -> Row:
    return Row(str(uuid.uuid4()), NEVER_EXPIRES, headers, body)


def read(data: bytes) -> list[tuple[str, str, bytes]]:
    """The rows of a COPY, taken apart as PostgreSQL's documentation describes them."""
    assert data[:11] == b"PGCOPY\n\xff\r\n\0"
    assert data[11:19] == bytes(8), "no flags, no extension"
    position = 19
    rows: list[tuple[str, str, bytes]] = []
    while True:
        (fields,) = struct.unpack_from("!h", data, position)
        position += 2
        if fields == -1:
            assert position == len(data), "nothing behind the end"
            return rows
        values = []
        for _ in range(fields):
            (size,) = struct.unpack_from("!i", data, position)
            values.append(data[position + 4 : position + 4 + size])
            position += 4 + size
        identity, headers, body = values
        rows.append((str(uuid.UUID(bytes=identity)), headers.decode(), body))


@given(st.lists(st.builds(row, texts, st.binary(max_size=50))))
def test_rows_are_read_back_as_they_were(rows):
    assert read(b"".join(copied(rows))) == [(each.id, each.headers, each.body) for each in rows]


def test_headers_count_in_bytes_and_not_in_characters():
    rows = [row('{"ключ":"значение 😀"}', "ü".encode()), row()]
    assert read(b"".join(copied(rows))) == [(each.id, each.headers, each.body) for each in rows]


@pytest.mark.parametrize("size", [0, 1, BYTES_PER_PIECE, 3 * BYTES_PER_PIECE])
def test_bodies_of_any_size_come_through(size):
    rows = [row(body=bytes(size)), row(body=b"the next one")]
    assert [body for _, _, body in read(b"".join(copied(rows)))] == [bytes(size), b"the next one"]


def test_many_rows_come_in_pieces_of_a_bounded_size():
    pieces = list(copied(row(body=bytes(1000)) for _ in range(5_000)))
    assert len(pieces) == 5
    assert all(len(piece) < 1.1 * BYTES_PER_PIECE for piece in pieces)


def test_rows_are_made_as_they_are_asked_for():
    taken = []

    def rows():
        for number in range(3_000):
            taken.append(number)
            yield row(body=bytes(1000))

    next(copied(rows()))
    assert len(taken) < 1_100
