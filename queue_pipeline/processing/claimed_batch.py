"""A claim's messages as columns, ready for Spark: what relates results to them is taken out of their headers."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.claim_reader import ClaimReader

_TEXT = pa.string()
_FIELDS: list[pa.Field[Any]] = [
    pa.field("id", _TEXT, nullable=False),
    pa.field("row_version", pa.int64(), nullable=False),
    pa.field("headers", _TEXT, nullable=False),
    pa.field("body", pa.binary(), nullable=False),
    pa.field("message_id", _TEXT, nullable=False),
    pa.field("correlation_id", _TEXT),
    pa.field("conversation_id", _TEXT),
    pa.field("reply_to", _TEXT),
    pa.field("message_type", _TEXT),
    pa.field("enqueued", pa.timestamp("us", "UTC")),
]
SCHEMA = pa.schema(_FIELDS)

# In a flat object of strings, a name is followed by a quote; anything else may be a number, a list or an object.
# Between two objects stands a comma.
_SUSPECT = r'"\s*:\s*[^"\s]|\}\s*,\s*\{|^[^{]|[^}]$'


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row whose headers are no flat JSON object: it goes to the error queue as it is."""

    row_version: int
    id: str
    problem: str


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """The messages of a claim, and the rows among them that cannot be read."""

    claim: Claim
    messages: Table
    unreadable: Sequence[Unreadable]
    read_seconds: float = 0.0

    @property
    def came_back(self) -> list[tuple[int, int]]:
        """Messages that failed before and came back after a delay, as ranges of row versions."""
        marked = pc.match_substring(self.messages["headers"], wire.quote(wire.RETRIES))
        if not pc.any(marked).as_py():
            return []
        ranges: list[tuple[int, int]] = []
        previous = False
        for row_version, is_marked in zip(self.messages["row_version"].to_pylist(), marked.to_pylist(), strict=True):
            if is_marked and previous:
                ranges[-1] = (ranges[-1][0], row_version)
            elif is_marked:
                ranges.append((row_version, row_version))
            previous = is_marked
        return ranges

    def halves(self) -> tuple[ClaimedBatch, ClaimedBatch]:
        """The same messages in two batches; what cannot be read stays with the first."""
        middle = self.messages.num_rows // 2
        return (
            replace(self, messages=self.messages.slice(0, middle)),
            ClaimedBatch(replace(self.claim, bytes=0, expired=0), self.messages.slice(middle), ()),
        )


def read_batch(reader: ClaimReader, claim: Claim) -> ClaimedBatch:
    """Read a claim whole; bounded, because claims are."""
    parts: list[pa.RecordBatch] = []
    unreadable: list[Unreadable] = []
    started = time.monotonic()
    for part in reader.read(claim):
        readable, bad = prepare(part)
        parts.append(readable)
        unreadable += bad
    return ClaimedBatch(claim, pa.Table.from_batches(parts, SCHEMA), unreadable, time.monotonic() - started)


def prepare(part: Any) -> tuple[pa.RecordBatch, list[Unreadable]]:
    """Take apart the headers of a part; rows that are unreadable are left out and named."""
    decoded, problems = decode_all(part.column("headers").to_pylist())
    unreadable: list[Unreadable] = []
    if problems:
        for at, problem in problems.items():
            unreadable.append(Unreadable(part["row_version"][at].as_py(), part["id"][at].as_py(), problem))
        keep = [at for at in range(part.num_rows) if at not in problems]
        part, decoded = part.take(pa.array(keep, pa.int64())), [decoded[at] for at in keep]

    def column(name: str) -> Array:
        values = [headers.get(name) or None for headers in decoded]
        try:
            return pa.array(values, _TEXT)
        except UnicodeEncodeError:
            # Half a surrogate pair: JSON can carry it, Arrow and Spark cannot.
            return pa.array([value and value.encode(errors="replace").decode() for value in values], _TEXT)

    columns = [
        part.column("id"),
        part.column("row_version"),
        part.column("headers"),
        pc.fill_null(part.column("body"), b""),
        pc.coalesce(column(wire.MESSAGE_ID), part.column("id")),
        pc.coalesce(column(wire.CORRELATION_ID), part.column("correlation_id")),
        column(wire.CONVERSATION_ID),
        pc.coalesce(column(wire.REPLY_TO_ADDRESS), part.column("reply_to_address")),
        column(wire.ENCLOSED_MESSAGE_TYPES),
        parse_timestamps(column(wire.TIME_SENT)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), unreadable


def decode_all(texts: list[str]) -> tuple[list[dict[str, str]], dict[int, str]]:
    """The headers of many rows, and what is wrong with those that are no flat JSON object, by position.

    All of them are parsed as one document where that cannot go wrong: it takes two thirds of the time of one by one.
    Texts that begin and end with a brace, hold nothing but strings and are not several objects cannot run into each
    other unnoticed: their number tells.
    """
    if not pc.any(pc.match_substring_regex(pa.array(texts, _TEXT), _SUSPECT)).as_py():
        try:
            decoded = json.loads(f"[{','.join(texts)}]")
        except ValueError:
            decoded = []
        if len(decoded) == len(texts):
            return decoded, {}
    decoded, problems = [], {}
    for at, text in enumerate(texts):
        try:
            decoded.append(wire.decode(text))
        except ValueError as error:
            decoded.append({})
            problems[at] = str(error)
    return decoded, problems


def parse_timestamps(texts: Array) -> Array:
    """Timestamps of the wire as instants; null where a sender wrote something else."""
    shaped = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z$")
    texts = pc.if_else(shaped, texts, pa.scalar(None, _TEXT))
    seconds = pc.strptime(pc.utf8_slice_codeunits(texts, 0, 19), "%Y-%m-%d %H:%M:%S", "us", error_is_null=True)
    fraction = pc.cast(pc.utf8_slice_codeunits(texts, 20, 26), pa.int64())
    return pc.cast(pc.add(pc.cast(seconds, pa.int64()), fraction), pa.timestamp("us", "UTC"))
