"""Bodies as programs write them: text, bytes, or values that become JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import to_json

from queue_pipeline.errors import InvalidMessageError

Body: TypeAlias = str | bytes | Mapping[str, Any] | Sequence[Any] | BaseModel


def encoded(body: Body) -> bytes:
    """Text and bytes unchanged; mappings, lists and models as JSON, with dates, decimals and UUIDs as text."""
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, BaseModel):
        return body.model_dump_json().encode()
    if not isinstance(body, Mapping | list | tuple):
        raise InvalidMessageError(
            f"the body is {type(body).__name__}; give text, bytes, a mapping, a list or a pydantic model"
        )
    try:
        text = to_json(body)
        if b"NaN" in text or b"Infinity" in text:
            json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise InvalidMessageError(f"the body cannot be written as JSON: {error}") from None
    return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
