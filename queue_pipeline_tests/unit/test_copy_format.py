import struct
import time
import uuid

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.dialects.copy_format import (
    BYTES_PER_PIECE,
    ROWS_PER_PIECE,
    copied,
    copied_columns,
    staged_values,
)
from queue_pipeline.transport.messages import new_row_id_bytes

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


def row(headers: str = "{}", body: bytes = b"") -> Row:
    return Row(str(uuid.uuid4()), NEVER_EXPIRES, headers, body)


def read(data: bytes) -> list[tuple[str, str, bytes]]:
    """The rows of a COPY of messages."""
    return [(str(uuid.UUID(bytes=identity)), headers.decode(), body) for identity, headers, body in values_of(data)]


def values_of(data: bytes) -> list[list[bytes]]:
    """The rows of a COPY, taken apart as PostgreSQL's documentation describes them."""
    assert data[:11] == b"PGCOPY\n\xff\r\n\0"
    assert data[11:19] == bytes(8), "no flags, no extension"
    position = 19
    rows: list[list[bytes]] = []
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
        rows.append(values)


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


# --- columns -----------------------------------------------------------------------------------------------


def as_columns(rows):
    """What `copied_columns` takes, of the same rows."""
    ids = b"".join(uuid.UUID(each.id).bytes for each in rows)
    headers = pa.array([each.headers for each in rows], pa.string())
    return ids, headers, pa.array([each.body for each in rows], pa.binary())


def assert_copied_alike(rows):
    assert b"".join(copied_columns(*as_columns(rows))) == b"".join(copied(rows))


@given(st.lists(st.builds(row, texts, st.binary(max_size=50))))
def test_columns_are_copied_byte_for_byte_as_rows_are(rows):
    assert_copied_alike(rows)


def test_columns_of_no_rows_are_copied_as_no_rows():
    assert_copied_alike([])
    assert read(b"".join(copied_columns(*as_columns([])))) == []


def test_headers_of_columns_count_in_bytes_and_bodies_may_be_empty():
    assert_copied_alike([row('{"ключ":"значение 😀"}', "ü".encode()), row(), row("", b""), row("{}", bytes(300))])


@pytest.mark.parametrize("count", [1, ROWS_PER_PIECE - 1, ROWS_PER_PIECE, ROWS_PER_PIECE + 1, 2 * ROWS_PER_PIECE + 7])
def test_columns_are_copied_in_pieces_of_whole_rows(count):
    rows = [row(f'{{"ü":"{number}"}}', str(number).encode() * (number % 3)) for number in range(count)]
    assert_copied_alike(rows)
    pieces = list(copied_columns(*as_columns(rows)))
    assert len(pieces) == 2 + -(-count // ROWS_PER_PIECE), "the head, the rows and the end"


def test_sliced_columns_are_copied_without_what_lies_around_them():
    rows = [row(f'{{"n":"{number} ü"}}', bytes(number % 5)) for number in range(3 * ROWS_PER_PIECE)]
    first, count = 5, 2 * ROWS_PER_PIECE + 1
    ids, headers, bodies = as_columns(rows)
    part = copied_columns(
        ids[16 * first : 16 * (first + count)], headers.slice(first, count), bodies.slice(first, count)
    )
    assert b"".join(part) == b"".join(copied(rows[first : first + count]))


def test_columns_are_copied_as_they_are_asked_for():
    rows = [row(body=bytes(100)) for _ in range(3 * ROWS_PER_PIECE)]
    pieces = copied_columns(*as_columns(rows))
    assert next(pieces) == b"PGCOPY\n\xff\r\n\0" + bytes(8)
    assert len(next(pieces)) < 200 * ROWS_PER_PIECE


# --- ids of columns ----------------------------------------------------------------------------------------


def new_ids(count):
    data = new_row_id_bytes(count)
    assert type(data) is bytes and len(data) == 16 * count
    return [uuid.UUID(bytes=data[at : at + 16]) for at in range(0, len(data), 16)]


@pytest.mark.parametrize("count", [1, 4095, 4096, 4097, 10_000])
def test_ids_of_columns_are_different_uuids_of_version_7(count):
    ids = new_ids(count)
    assert len(set(ids)) == count
    assert {identity.version for identity in ids} == {7}
    assert {identity.variant for identity in ids} == {uuid.RFC_4122}


def test_ids_of_columns_ascend_within_a_block():
    ids = new_ids(3 * 4096 + 1)
    for first in range(0, len(ids), 4096):
        block = ids[first : first + 4096]
        assert block == sorted(block)
        assert len({identity.bytes[:6] for identity in block}) == 1, "one moment for all of a block"


def test_ids_of_columns_begin_with_the_time():
    before = time.time_ns() // 1_000_000
    ids = new_ids(5_000)
    after = time.time_ns() // 1_000_000
    moments = [identity.int >> 80 for identity in ids]
    assert before <= min(moments) and max(moments) <= after
    assert moments == sorted(moments)


def test_no_rows_need_no_ids():
    assert new_row_id_bytes(0) == b""


def test_ids_of_two_calls_are_different():
    assert not set(new_ids(5_000)) & set(new_ids(5_000))


def test_values_of_the_outbox_stand_around_the_id():
    rows = [row("{}", b"one"), row('{"a":"b"}', b"")]
    claim = uuid.uuid4()
    copied = copied_columns(*as_columns(rows), *staged_values(str(claim), "job.ü", 3))
    common = [claim.bytes, "job.ü".encode(), struct.pack("!i", 3)]
    never = struct.pack("!q", NEVER_EXPIRES)
    assert values_of(b"".join(copied)) == [
        [*common, uuid.UUID(each.id).bytes, never, each.headers.encode(), each.body] for each in rows
    ]
