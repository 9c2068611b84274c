"""Parses the bodies of a batch: UTF-8 JSON becomes a typed Arrow column; a bad body fails only its own message.

- A byte order mark is skipped. The last value of a repeated key counts, as in pydantic.
- A time without a zone is taken as UTC.
- A value that pydantic accepts and Spark cannot hold fails its message: an integer of more than 64 bits, a decimal with
  too many digits (nothing is rounded), a moment outside of the years 1 to 9999 in UTC, half a surrogate pair.
- A validator that raises another error than a validation error fails its message with that error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pydantic import ValidationError
from pyspark.sql.types import StructType

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.body.arrow_rows import array_of, misfit
from queue_pipeline.processing.body.arrow_types import payload_column
from queue_pipeline.processing.body.exact_decimals import ExactDecimals, with_long_numbers
from queue_pipeline.processing.body.plain_models import plain_validator
from queue_pipeline.processing.body.schema import BodySchema, Declaration, declare
from queue_pipeline.processing.body.values import Change
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.failed.stack_frames import Frame, frame_of, frames_of, trace_at

UNREADABLE_BODY = "MessageBodyUnreadable"
"""The error type of a body that does not fit its schema."""

CHUNK_MESSAGES = 200
"""More objects alive at once cost more: the garbage collector walks them again and again."""
CHUNK_BYTES = 16_000_000

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN_PROBLEMS, _SHOWN_PLACE, _SHOWN_VALUE, _SHOWN_TEXT = 5, 200, 60, 1_000


@dataclass(frozen=True)
class ParsedBodies:
    """A payload for each body, null where the body at that position has a problem."""

    payload: pa.Array[Any]
    problems: dict[int, Failure]


class BodyParser:
    """Parses the bodies of a schema. Pickled, it is its schema: DDL, a struct's JSON, or the model class."""

    def __init__(self, schema: BodySchema) -> None:
        declared = declare(schema)
        column = payload_column(declared.core, declared.name)
        self.payload_type = column.type
        self._schema = schema
        self._read = _reader(declared, column.change)
        self._decimals = ExactDecimals(declared.core)
        # The stack frame of a refusal: the model, or this parser for a Spark schema.
        self._place = frame_of(schema if isinstance(schema, type) else BodyParser.parse)

    def __reduce__(self) -> tuple[Callable[..., BodyParser], tuple[Any, ...]]:
        if isinstance(self._schema, StructType):
            return _struct_parser, (self._schema.json(),)
        return body_parser, (self._schema,)

    def parse(self, bodies: Array) -> ParsedBodies:
        """The payloads of a binary column, and the problems of those that have none."""
        problems: dict[int, Failure] = {}
        arrays: list[pa.Array[Any]] = []
        start = 0
        for part in bodies.chunks if isinstance(bodies, pa.ChunkedArray) else [bodies]:
            size = max(1, min(CHUNK_MESSAGES, CHUNK_BYTES * len(part) // max(1, part.nbytes)))
            for at in range(0, len(part), size):
                texts = [_json(body) for body in part.slice(at, size).to_pylist()]
                for number in with_long_numbers(texts) if self._decimals.needed else ():
                    texts[number] = self._decimals.rewrite(texts[number])
                arrays.append(self._chunk(start + at, texts, problems))
            start += len(part)
        return ParsedBodies(pa.concat_arrays(arrays) if arrays else pa.array([], self.payload_type), problems)

    def _chunk(self, start: int, texts: list[bytes], problems: dict[int, Failure]) -> pa.Array[Any]:
        rows, read = [], self._read
        for at, text in enumerate(texts, start):
            try:
                rows.append(read(text))
            except MemoryError:
                raise
            except Exception as error:
                rows.append(None)
                problems[at] = _problem(text, error, self._place)
        try:
            return array_of(rows, self.payload_type)
        except Exception:
            return self._row_by_row(start, rows, problems)

    def _row_by_row(self, start: int, rows: list[Any], problems: dict[int, Failure]) -> pa.Array[Any]:
        arrays = []
        for at, row in enumerate(rows, start):
            try:
                arrays.append(array_of([row], self.payload_type))
            except Exception:
                arrays.append(pa.array([None], self.payload_type))
                problems[at] = _failure(UNREADABLE_BODY, misfit(row, self.payload_type), [self._place])
        return pa.concat_arrays(arrays)


def body_parser(schema: BodySchema) -> BodyParser:
    """The parser of a schema, made once in a process."""
    return _struct_parser(schema.json()) if isinstance(schema, StructType) else _parser(schema)


@lru_cache(maxsize=128)
def _parser(schema: Any) -> BodyParser:
    return BodyParser(schema)


@lru_cache(maxsize=128)
def _struct_parser(json_text: str) -> BodyParser:
    return BodyParser(StructType.fromJson(json.loads(json_text)))


def _reader(declared: Declaration, change: Change | None) -> Callable[[bytes], Any]:
    validate, serializer = declared.validator.validate_json, declared.serializer
    plain = None if serializer is None else plain_validator(declared.core)

    def read(text: bytes) -> Any:
        value = validate(text)
        row = value if serializer is None else serializer.to_python(value, by_alias=False, warnings=False)
        return row if change is None else change(row)

    if plain is None:
        return read
    validate_plainly = plain.validate_json

    def read_plainly(text: bytes) -> Any:
        try:
            row = validate_plainly(text)
        except ValidationError:
            return read(text)
        return row if change is None else change(row)

    return read_plainly


def _json(body: bytes | None) -> bytes:
    return b"" if body is None else body.removeprefix(_BYTE_ORDER_MARK)


def _problem(body: bytes, error: Exception, place: Frame) -> Failure:
    is_refusal = isinstance(error, ValidationError)
    error_type = UNREADABLE_BODY if is_refusal else type(error).__name__
    try:
        if isinstance(error, ValidationError):
            text = _encoding_problem(body) or _validation_problem(error)
        else:
            text = str(error)
    except Exception as another:
        # An exception or a value of the model's own that cannot be written.
        text = f"it cannot be shown: {type(another).__name__}"
    return _failure(error_type, text, [place] if is_refusal else frames_of(error.__traceback__))


def _failure(error_type: str, text: str, frames: Sequence[Frame]) -> Failure:
    short = _bounded(text, _SHOWN_TEXT)
    return Failure(error_type, short, trace_at(error_type, short, frames))


def _encoding_problem(body: bytes) -> str | None:
    if not body or body.isspace():
        return "the body is empty"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"the body is not UTF-8 text: byte 0x{body[error.start]:02x} at position {error.start}"
    return None


def _validation_problem(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False)
    texts = []
    for one in found[:_SHOWN_PROBLEMS]:
        place = _bounded(".".join(str(step) for step in one["loc"]), _SHOWN_PLACE)
        given = "" if one["type"] in ("missing", "json_invalid") else f" (given: {_shown(one['input'])})"
        texts.append((f"{place}: " if place else "") + one["msg"] + given)
    if len(found) > len(texts):
        texts.append(f"and {len(found) - len(texts)} more")
    return "; ".join(texts)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return _bounded(repr(value[: _SHOWN_VALUE + 1] if isinstance(value, str) else value), _SHOWN_VALUE)


def _bounded(text: str, length: int) -> str:
    """A bounded text that every database can store."""
    short = text if len(text) <= length else text[:length] + "…"
    return short.encode(errors="backslashreplace").decode().replace("\0", "\\0")
