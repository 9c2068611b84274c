"""The payload of a body: the parsed value with its declared names and types, and with defaults filled in."""

from __future__ import annotations

from queue_pipeline.processing.body.shape import Field, Leaf, ListOf, MapOf, Record, Shape, payload_type, wire_type
from queue_pipeline.processing.body.sql import member, text, type_text, when


def payload(shape: Shape, value: str, depth: int = 0) -> str:
    """The SQL text of the payload; the value is taken as it is wherever it can be."""
    declared = type_text(payload_type(shape))
    if not _has_defaults(shape):
        return value if declared == type_text(wire_type(shape)) else f"CAST({value} AS {declared})"
    variable = f"p{depth}"
    match shape:
        case ListOf():
            return f"transform({value}, {variable} -> {payload(shape.element, variable, depth + 1)})"
        case MapOf():
            return f"transform_values({value}, (k{depth}, {variable}) -> {payload(shape.value, variable, depth + 1)})"
        case Record():
            fields = [f"{text(field.name)}, {_member(field, value, depth)}" for field in shape.fields]
            return when(f"{value} IS NOT NULL", f"named_struct({', '.join(fields)})")
        case Leaf():
            return value


def _member(field: Field, record: str, depth: int) -> str:
    value = payload(field.shape, member(record, field.key), depth)
    if field.default is None:
        return value
    return f"coalesce({value}, CAST({field.default} AS {type_text(payload_type(field.shape))}))"


def _has_defaults(shape: Shape) -> bool:
    match shape:
        case Record():
            return any(field.default is not None or _has_defaults(field.shape) for field in shape.fields)
        case ListOf():
            return _has_defaults(shape.element)
        case MapOf():
            return _has_defaults(shape.value)
        case Leaf():
            return False
