"""A claim's messages as columns, ready for Spark: what relates results to them is taken out of their headers."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pydantic_core import SchemaValidator, ValidationError
from pydantic_core import core_schema as core

from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.messages_frame import PAYLOAD
from queue_pipeline.processing.body.parse import BodyParser
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.claim_reader import ClaimReader, Part
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages import headers as wire

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
"""Up to this many messages are read one by one."""
CHUNK_MESSAGES = 200
"""Headers are parsed in chunks: with more live objects each garbage collection takes longer."""
_FLAT = SchemaValidator(core.dict_schema(core.str_schema(), core.nullable_schema(core.str_schema(strict=True))))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row whose headers are no flat JSON object: it goes to the error queue unchanged."""

    row_version: int
    id: str
    problem: str


@dataclass(frozen=True, slots=True)
class ClaimedBatch:
    """The messages of a claim that are in this process, and the rows among them that cannot be read."""

    claim: Claim
    messages: Table
    unreadable: Sequence[Unreadable]
    read_seconds: float = 0.0
    is_whole: bool = True
    """Whether these are all messages of the claim; executors read the others themselves."""

    @property
    def read(self) -> RowsRead:
        """Which messages of its claim these are."""
        unreadable = (row.row_version for row in self.unreadable)
        return RowsRead.of([*self.messages["row_version"].to_pylist(), *unreadable])

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


def _any_between(sorted_versions: Sequence[int], part: Part) -> bool:
    at = bisect_left(sorted_versions, part.first_row_version)
    return at < len(sorted_versions) and sorted_versions[at] <= part.last_row_version


def prepare(part: Any) -> tuple[pa.RecordBatch, list[Unreadable]]:
    """Take apart the headers of a part, one text at a time; rows that are unreadable are left out and named."""
    headers, problems = header_columns(part.column("headers"))
    unreadable = [
        Unreadable(part["row_version"][at].as_py(), part["id"][at].as_py(), problem) for at, problem in problems.items()
    ]
    columns = [
        part.column("id"),
        part.column("row_version"),
        part.column("headers"),
        pc.fill_null(part.column("body"), b""),
        pc.coalesce(headers[wire.MESSAGE_ID], part.column("id")),
        headers[wire.CORRELATION_ID],
        headers[wire.CONVERSATION_ID],
        headers[wire.REPLY_TO_ADDRESS],
        headers[wire.ENCLOSED_MESSAGE_TYPES],
        parse_timestamps(headers[wire.TIME_SENT]),
        headers[wire.ORIGINATING_SAGA_ID],
        headers[wire.ORIGINATING_SAGA_TYPE],
    ]
    readable = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    if problems:
        readable = readable.take(pa.array([at for at in range(part.num_rows) if at not in problems], pa.int64()))
    return readable, unreadable


def header_columns(texts: Array) -> tuple[dict[str, Array], dict[int, str]]:
    """The headers in TAKEN_OUT as columns, null where a row has none, and what is wrong with rows, by position."""
    problems: dict[int, str] = {}
    chunks: dict[str, list[Array]] = {name: [] for name in TAKEN_OUT}
    for start in range(0, len(texts), CHUNK_MESSAGES):
        decoded = [
            _decode(text, start + at, problems)
            for at, text in enumerate(texts.slice(start, CHUNK_MESSAGES).to_pylist())
        ]
        for name, column in chunks.items():
            column.append(_column(decoded, name))
    return {name: pa.chunked_array(column, _TEXT).combine_chunks() for name, column in chunks.items()}, problems


def _decode(text: str, at: int, problems: dict[int, str]) -> Mapping[str, str | None]:
    try:
        # 2.1 microseconds a message with the columns below; Python's own parser takes twice that.
        headers: Mapping[str, str | None] = _FLAT.validate_json(text)
        return headers
    except ValidationError:
        try:
            return wire.decode(text)
        except ValueError as error:
            problems[at] = str(error)
            return {}


def _column(decoded: Sequence[Mapping[str, str | None]], name: str) -> Array:
    values = [headers.get(name) or None for headers in decoded]
    try:
        return pa.array(values, _TEXT)
    except UnicodeEncodeError:
        # Half a surrogate pair: JSON can carry it, Arrow and Spark cannot.
        return pa.array([value and value.encode(errors="replace").decode() for value in values], _TEXT)


def parse_bodies(parser: BodyParser | None, messages: Table) -> tuple[Table, dict[int, Failure]]:
    """The messages whose bodies fit the schema, with the column `payload`, and why others fail, by row version.

    Control messages are left out: they are processed without the transform.
    """
    if parser is None:
        return messages, {}
    messages = without_control(messages)
    parsed = parser.parse(messages["body"])
    with_payload = messages.append_column(PAYLOAD, parsed.payload)
    if not parsed.problems:
        return with_payload, {}
    bad = sorted(parsed.problems)
    versions = messages["row_version"].take(pa.array(bad, pa.int64())).to_pylist()
    refused = {version: parsed.problems[at] for version, at in zip(versions, bad, strict=True)}
    kept = [at for at in range(messages.num_rows) if at not in parsed.problems]
    return with_payload.take(pa.array(kept, pa.int64())), refused


def without_control(messages: Table) -> Table:
    """The messages that a handler would be called for."""
    texts = messages["headers"]
    marked = pc.match_substring(texts, wire.CONTROL_MESSAGE)
    if not pc.any(marked).as_py():
        return messages
    pairs = zip(texts.to_pylist(), marked.to_pylist(), strict=True)
    return messages.filter(pa.array([not (there and wire.is_control(wire.decode(text))) for text, there in pairs]))


def parse_timestamps(texts: Array) -> Array:
    """Timestamps of the wire as instants; null where a sender wrote something else."""
    shaped = pc.match_substring_regex(texts, r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{6} Z$")
    texts = pc.if_else(shaped, texts, pa.scalar(None, _TEXT))
    seconds = pc.strptime(pc.utf8_slice_codeunits(texts, 0, 19), "%Y-%m-%d %H:%M:%S", "us", error_is_null=True)
    # The 30th of February and the 61st second would become the day and the minute that follow.
    same_day = pc.equal(pc.day(seconds), pc.cast(pc.utf8_slice_codeunits(texts, 8, 10), pa.int64()))
    same_second = pc.equal(pc.second(seconds), pc.cast(pc.utf8_slice_codeunits(texts, 17, 19), pa.int64()))
    known = pc.and_(pc.and_(same_day, same_second), pc.greater(pc.year(seconds), 0))
    seconds = pc.if_else(known, seconds, pa.scalar(None, seconds.type))
    fraction = pc.cast(pc.utf8_slice_codeunits(texts, 20, 26), pa.int64())
    return pc.cast(pc.add(pc.cast(seconds, pa.int64()), fraction), pa.timestamp("us", "UTC"))
