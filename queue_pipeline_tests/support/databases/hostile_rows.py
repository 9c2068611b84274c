"""Rows as no sender of ours writes them, put into queues byte for byte."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import Backend

ID, TALK, TO = (wire.quote(name) for name in (wire.MESSAGE_ID, wire.CONVERSATION_ID, wire.REPLY_TO_ADDRESS))
MANY_BYTES = 5_000_000
HEADERS = [
    b"",
    b" ",
    b"{}",
    b"null",
    b"5",
    b'"text"',
    b"[]",
    b"{},{}",
    b"{}{}",
    b'{"a":"}',
    b'{"a":5}',
    b'{"a":null}',
    b"\xef\xbb\xbf{}",
    b'{"a":"b"}\x00',
    b"\x00",
    b"\xff",
    b'{"a":"\xff"}',
    b'{"a":"\xed\xa0\x80"}',
    f"{{{ID}:null}}".encode(),
    f'{{{ID}:""}}'.encode(),
    f'{{{ID}:"m"}}{{{ID}:"n"}}'.encode(),
    f'{{{ID}:"first",{ID}:"second"}}'.encode(),
    f'{{{ID}:"m",{TALK}:"talk",{TO}:"billing"}}'.encode(),
    f'{{{TALK}:"half \\ud800"}}'.encode(),
    f'{{{TALK}:"\\udc00\\ud800",{ID}:"NUL \\u0000"}}'.encode(),
    f'{{{ID}:["m"]}}'.encode(),
    f'{{{TALK}:"{{}},{{}}",{ID}:"\U0001f600"}}'.encode(),
    f'{{{wire.quote(wire.TIME_SENT)}:"9999-12-31 23:59:60:999999 Z"}}'.encode(),
    f'{{{wire.quote(wire.TIME_SENT)}:"2026-01-02 03:04:05:000006 Z"}}'.encode(),
]
"""Header texts: unusual ones, and such as no JSON object of texts."""
BODIES = [
    None,
    b"",
    b" ",
    b"null",
    b"5",
    b"{}",
    b"{}{}",
    b'{"n":1}',
    b'{"n":1,"n":2}',
    b'{"n":null}',
    b'{"n":"\\ud800"}',
    b'{"n":1,"s":"\\ud800"}',
    b'{"n":1,"s":"NUL \\u0000"}',
    b'{"n":1,"s":"raw \x00"}',
    b'\xef\xbb\xbf{"n":3}',
    b"\xff\xfe{\x00}\x00",
    b"\x00",
    b"\xff",
    b'{"n":1e400}',
    b'{"n":' + b"9" * 5_000 + b"}",
    b"[" * 5_000,
]
"""Bodies of which some fit `n INT, s STRING`."""
LARGE = f'{{{TALK}:"{"x" * MANY_BYTES}"}}'.encode()
LARGE_BODY = b'{"n":1,"s":"' + b"y" * MANY_BYTES + b'"}'


class HostileRow(NamedTuple):
    """A row before it is stored; `id` may be that of another."""

    id: str
    headers: bytes
    body: bytes | None


_ids = st.builds(uuid.UUID, int=st.integers(0, 2**128 - 1)).map(str)
_texts = st.dictionaries(
    st.sampled_from([wire.MESSAGE_ID, wire.CONVERSATION_ID, "own"]), st.text(max_size=5), max_size=3
)
hostile_rows = st.lists(
    st.builds(
        HostileRow,
        _ids,
        st.sampled_from(HEADERS) | _texts.map(lambda headers: json.dumps(headers).encode()) | st.binary(max_size=6),
        st.sampled_from(BODIES) | st.binary(max_size=6),
    ),
    min_size=2,
    max_size=12,
)
"""Whole batches, hostile rows among ordinary ones."""


def storable_in(backend: Backend, rows: Sequence[HostileRow]) -> list[HostileRow]:
    """Those rows that a database can hold; SQLite takes every one of them, and several of one id."""
    if backend.name == "sqlite":
        return list(rows)
    return list({row.id: row for row in rows if _is_plain(row.headers)}.values())


def insert(transport: QueueTransport, backend: Backend, queue: str, rows: Sequence[HostileRow]) -> None:
    """Put rows into a queue as they are."""
    table = transport.resolve(queue).qualified
    headers = "CAST(? AS TEXT)" if backend.name == "sqlite" else "?"
    for row in rows:
        text = row.headers if backend.name == "sqlite" else row.headers.decode()
        identity = row.id if backend.name != "postgresql" else uuid.UUID(row.id)
        statement = f"INSERT INTO {table} (Id, Headers, Body) VALUES (?, {headers}, ?)"
        backend.sql(transport, statement, (identity, text, row.body))


def stored(transport: QueueTransport, backend: Backend, queue: str) -> list[tuple[bytes, bytes | None]]:
    """The rows of a queue byte for byte."""
    table = transport.resolve(queue).qualified
    headers = {"sqlite": "CAST(Headers AS BLOB)", "postgresql": "convert_to(headers, 'UTF8')"}[backend.name]
    order = {"sqlite": "RowVersion", "postgresql": "seq"}[backend.name]
    found = backend.sql(transport, f"SELECT {headers}, Body FROM {table} ORDER BY {order}")
    return [(bytes(text), None if body is None else bytes(body)) for text, body in found]


def _is_plain(text: bytes) -> bool:
    try:
        return "\0" not in text.decode()
    except UnicodeDecodeError:
        return False
