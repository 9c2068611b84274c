"""Rows in the binary format of COPY become columns, whatever they hold and however they were cut into pieces."""

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.claimed_columns import from_copied

SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
END = b"\xff\xff"

messages = st.tuples(
    st.uuids(),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
    st.text(max_size=40),
    st.none() | st.binary(max_size=40),
)


def value(data):
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def row(message):
    id_, version, expired, headers, body = message
    values = (id_.bytes, struct.pack(">q", version), bytes([expired]), headers.encode(), body)
    return struct.pack(">h", len(values)) + b"".join(map(value, values))


def columns(pieces):
    middle = len(pieces) // 2
    return from_copied([b"".join(pieces[:middle]), b"".join(pieces[middle:])], list(map(len, pieces)))


@given(st.lists(messages, max_size=8), st.booleans())
def test_every_row_is_read_as_it_was_written(rows, has_pieces_of_their_own):
    encoded = [row(message) for message in rows]
    if has_pieces_of_their_own or not encoded:
        pieces = [SIGNATURE, *encoded, END]
    else:
        pieces = [SIGNATURE + encoded[0], *encoded[1:], END]
    copied = columns(pieces)
    kept = [message for message in rows if not message[2]]
    assert copied.expired == len(rows) - len(kept)
    assert [tuple(found.values())[:4] for found in copied.messages.to_pylist()] == [
        (str(id_), version, headers, body) for id_, version, _, headers, body in kept
    ]


def test_no_rows_are_no_messages():
    for pieces in ([SIGNATURE, END], [SIGNATURE + END]):
        copied = columns(pieces)
        assert (copied.messages.num_rows, copied.expired) == (0, 0)


@pytest.mark.parametrize("pieces", [[], [SIGNATURE], [SIGNATURE, row((uuid.uuid4(), 1, False, "{}", b""))]])
def test_what_was_cut_off_is_refused(pieces):
    with pytest.raises(ValueError, match="did not come to its end"):
        columns(pieces)
