"""Bodies as a pipeline reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from queue_pipeline.processing.body.parse import UNREADABLE_BODY, BodyParser, ParsedBodies
from queue_pipeline.processing.body.schema import BodySchema


def parsed(schema: BodySchema, bodies: Sequence[bytes | str | None]) -> ParsedBodies:
    encoded = [body.encode() if isinstance(body, str) else body for body in bodies]
    found = BodyParser(schema).parse(pa.array(encoded, pa.binary()))
    found.payload.validate(full=True)
    assert len(found.payload) == len(bodies)
    assert [at for at, row in enumerate(found.payload) if not row.is_valid] == sorted(found.problems)
    return found


def payload(schema: BodySchema, body: bytes | str) -> Any:
    """The payload of one body; maps are dictionaries."""
    found = parsed(schema, [body])
    assert not found.problems, found.problems
    return plain(found.payload[0])


def problem(schema: BodySchema, body: bytes | str | None, error_type: str = UNREADABLE_BODY) -> str:
    """What is wrong with one body."""
    found = parsed(schema, [body]).problems
    assert list(found) == [0], "the body is good"
    assert found[0].error_type == error_type, found
    return found[0].message


def plain(scalar: Any) -> Any:
    """A value of Arrow as Python has it."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.MapScalar):
        return {plain(entry["key"]): plain(entry["value"]) for entry in scalar.values or ()}
    if isinstance(scalar, pa.StructScalar):
        return {name: plain(value) for name, value in scalar.items()}
    if isinstance(scalar, pa.ListScalar):
        return [plain(value) for value in scalar.values or ()]
    return scalar.as_py()
