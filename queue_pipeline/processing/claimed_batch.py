"""A claim's messages as columns, ready for Spark: what relates results to them is taken out of their headers."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.json as pj

from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.header_kinds import columns_by_kind
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.arrow_column import any_holds
from queue_pipeline.transport.claim import Claim, ranges
from queue_pipeline.transport.claim_reader import ClaimReader, Part

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
    pa.field("saga_id", _TEXT),
    pa.field("saga_type", _TEXT),
]
SCHEMA = pa.schema(_FIELDS)

TAKEN_OUT = (
    wire.MESSAGE_ID,
    wire.CORRELATION_ID,
    wire.CONVERSATION_ID,
    wire.REPLY_TO_ADDRESS,
    wire.ENCLOSED_MESSAGE_TYPES,
    wire.TIME_SENT,
    wire.ORIGINATING_SAGA_ID,
    wire.ORIGINATING_SAGA_TYPE,
)
"""Headers that become columns."""
FEW_ROWS = 50
"""So many messages are read one by one."""

# In a flat object of strings, a name is followed by a quote; anything else may be a number, a list or an object.
_SUSPECT = r'"\s*:\s*[^"\s]|^[^{]|[^}]$'


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
        wanted = wire.quote(wire.RETRIES)
        if not any_holds(self.messages["headers"], wanted.encode()):
            return []
        marked = pc.match_substring(self.messages["headers"], wanted)
        if not pc.any(marked).as_py():
            return []
        versions = self.messages["row_version"]
        return ranges(versions.filter(marked).to_pylist(), versions.to_pylist())

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


def read_rows(reader: ClaimReader, claim: Claim, row_versions: Sequence[int]) -> Table:
    """A few messages of a claim, by row version: one by one, or as parts where many are asked for."""
    wanted = sorted(set(row_versions))
    parts = [Part(version, version, 1, 0) for version in wanted]
    if len(wanted) > FEW_ROWS:
        parts = [part for part in reader.parts(claim) if _any_between(wanted, part)]
    readable = [prepare(reader.read_part(claim, part))[0] for part in parts]
    rows = pa.Table.from_batches(readable, SCHEMA)
    return rows.filter(pc.is_in(rows["row_version"], pa.array(wanted, pa.int64())))


def unreadable_rows(reader: ClaimReader, claim: Claim) -> list[Unreadable]:
    """The rows of a claim whose headers cannot be read; bodies are not fetched."""
    found: list[Unreadable] = []
    for part in reader.read(claim, body=False):
        headers: Any = part.column("headers")
        if header_columns(headers, ()) is not None:
            continue
        for at, problem in decode_all(headers.to_pylist())[1].items():
            found.append(Unreadable(part.column("row_version")[at].as_py(), part.column("id")[at].as_py(), problem))
    return found


def _any_between(sorted_versions: Sequence[int], part: Part) -> bool:
    at = bisect_left(sorted_versions, part.first_row_version)
    return at < len(sorted_versions) and sorted_versions[at] <= part.last_row_version


def prepare(part: Any) -> tuple[pa.RecordBatch, list[Unreadable]]:
    """Take apart the headers of a part; rows that are unreadable are left out and named."""
    unreadable: list[Unreadable] = []
    headers = header_columns(part.column("headers"), TAKEN_OUT)
    if headers is None:
        decoded, problems = decode_all(part.column("headers").to_pylist())
        for at, problem in problems.items():
            unreadable.append(Unreadable(part["row_version"][at].as_py(), part["id"][at].as_py(), problem))
        if problems:
            keep = [at for at in range(part.num_rows) if at not in problems]
            part, decoded = part.take(pa.array(keep, pa.int64())), [decoded[at] for at in keep]
        headers = {name: _column(decoded, name) for name in TAKEN_OUT}
    columns = [
        part.column("id"),
        part.column("row_version"),
        part.column("headers"),
        pc.fill_null(part.column("body"), b""),
        pc.coalesce(headers[wire.MESSAGE_ID], part.column("id")),
        pc.coalesce(headers[wire.CORRELATION_ID], part.column("correlation_id")),
        headers[wire.CONVERSATION_ID],
        pc.coalesce(headers[wire.REPLY_TO_ADDRESS], part.column("reply_to_address")),
        headers[wire.ENCLOSED_MESSAGE_TYPES],
        parse_timestamps(headers[wire.TIME_SENT]),
        headers[wire.ORIGINATING_SAGA_ID],
        headers[wire.ORIGINATING_SAGA_TYPE],
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA), unreadable


def header_columns(texts: Array, names: Sequence[str]) -> dict[str, Array] | None:
    """Some headers of many rows as columns, null where a row has none; None if each text has to be looked at.

    Texts that look alike are not parsed at all. Others are parsed as one document: what begins and ends with a brace
    and holds nothing but strings cannot run into its neighbour unnoticed, for their number tells. Whatever Arrow's
    parser makes a fuss about is left to Python's.
    """
    alike = columns_by_kind(texts, names)
    if alike is not None:
        return alike
    if not len(texts) or pc.any(pc.match_substring_regex(texts, _SUSPECT)).as_py():
        return None
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), pa.concat_arrays([texts]))
    document = pc.binary_join(whole, "\n")[0].as_buffer()
    wanted = pa.schema([pa.field(name, _TEXT) for name in names])
    try:
        source: Any = pa.BufferReader(document)
        parsed = pj.read_json(
            source,
            read_options=pj.ReadOptions(use_threads=False, block_size=max(document.size, 1)),
            parse_options=pj.ParseOptions(wanted, newlines_in_values=True, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    if parsed.num_rows != len(texts):
        return None
    nothing = pa.scalar(None, _TEXT)
    found = {name: parsed[name].combine_chunks() for name in names}
    return {name: pc.if_else(pc.equal(column, ""), nothing, column) for name, column in found.items()}


def decode_all(texts: list[str]) -> tuple[list[dict[str, str]], dict[int, str]]:
    """The headers of many rows, and what is wrong with those that are no flat JSON object, by position."""
    decoded: list[dict[str, str]] = []
    problems: dict[int, str] = {}
    for at, text in enumerate(texts):
        try:
            decoded.append(wire.decode(text))
        except ValueError as error:
            decoded.append({})
            problems[at] = str(error)
    return decoded, problems


def _column(decoded: Sequence[Mapping[str, str]], name: str) -> Array:
    values = [headers.get(name) or None for headers in decoded]
    try:
        return pa.array(values, _TEXT)
    except UnicodeEncodeError:
        # Half a surrogate pair: JSON can carry it, Arrow and Spark cannot.
        return pa.array([value and value.encode(errors="replace").decode() for value in values], _TEXT)


def parse_timestamps(texts: Array) -> Array:
    """Timestamps of the wire as instants; null where a sender wrote something else."""
    shaped = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z$")
    texts = pc.if_else(shaped, texts, pa.scalar(None, _TEXT))
    seconds = pc.strptime(pc.utf8_slice_codeunits(texts, 0, 19), "%Y-%m-%d %H:%M:%S", "us", error_is_null=True)
    fraction = pc.cast(pc.utf8_slice_codeunits(texts, 20, 26), pa.int64())
    return pc.cast(pc.add(pc.cast(seconds, pa.int64()), fraction), pa.timestamp("us", "UTC"))
