"""Rows as an Arrow array of the payload's type; a value that does not fit its column is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyarrow import types

from queue_pipeline.processing.arrow import compute

# The years 1 to 9999 in microseconds since 1970, in which Python and .NET can hold a moment.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def array_of(rows: list[Any], type_: pa.DataType) -> pa.Array[Any]:
    """The rows as an array; raises what Arrow raises, or ValueError, if a value cannot be held."""
    array: Any = pa.array(rows, type_)
    _check(array, type_)
    return array  # type: ignore[no-any-return]


def misfit(value: Any, type_: pa.DataType, place: str = "") -> str:
    """Which value of a row does not fit its column, and why; empty if all fit."""
    try:
        array_of([value], type_)
        return ""
    except Exception as error:
        reason = str(error)
    for step, part, part_type, nullable in _parts(value, type_):
        inner = f"{place}.{step}" if place else step
        if part is None and not nullable:
            return f"{inner}: Input should not be null"
        if found := misfit(part, part_type, inner):
            return found
    return f"{place}: {reason}" if place else reason


def _parts(value: Any, type_: Any) -> Iterator[tuple[str, Any, pa.DataType, bool]]:
    if types.is_struct(type_) and isinstance(value, dict):
        for field in type_:
            yield field.name, value.get(field.name), field.type, field.nullable
    elif types.is_list(type_) and isinstance(value, list | tuple | set | frozenset):
        for at, item in enumerate(value):
            yield str(at), item, type_.value_type, type_.value_field.nullable
    elif types.is_map(type_) and isinstance(value, dict):
        for key, item in value.items():
            yield str(key), key, type_.key_type, False
            yield str(key), item, type_.item_type, type_.item_field.nullable


def _check(array: Any, type_: Any) -> None:
    """Refuse what Arrow accepts and Spark does not: null in a NOT NULL column, a moment outside of the calendar."""
    if types.is_struct(type_):
        for at, field in enumerate(type_):
            _check_part(array.field(at), field)
    elif types.is_list(type_):
        _check_part(array.values, type_.value_field)
    elif types.is_map(type_):
        _check(array.keys, type_.key_type)
        _check_part(array.items, type_.item_field)
    elif types.is_timestamp(type_) and len(array) > array.null_count:
        found = compute.min_max(array.view(pa.int64())).as_py()
        if found["min"] < _FIRST or found["max"] > _LAST:
            raise ValueError("Input should be in the years 1 to 9999 in UTC")


def _check_part(array: Any, field: Any) -> None:
    if array.null_count and not field.nullable:
        raise ValueError(f"{field.name} should not be null")
    _check(array, field.type)
