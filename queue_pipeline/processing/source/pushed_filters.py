"""Spark's filters as conditions of a browse: the database finds the messages, and Spark checks what is left over."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from queue_pipeline.transport.inspection.conditions import BrowsedColumn, Condition, Kind, Operator

MOST_VALUES = 500
"""Of all conditions together: statements of SQL Server take 2,100 values."""

_OPERATORS: dict[type[Filter], Operator] = {
    EqualTo: "=",
    EqualNullSafe: "=",
    LessThan: "<",
    LessThanOrEqual: "<=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    In: "IN",
    IsNull: "IS NULL",
    IsNotNull: "IS NOT NULL",
    StringStartsWith: "LIKE",
}
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PART_OF_GUID = re.compile(r"[0-9a-f-]{1,36}")
"""Without characters that mean something in a pattern of LIKE."""


def pushed_condition(filter_: Filter, columns: Mapping[str, BrowsedColumn], most_values: int) -> Condition | None:
    """The condition that a filter is in the database; None if only Spark can check it.

    Where a column is not exact, the condition lets more messages pass than the filter, and never fewer.
    """
    negated = isinstance(filter_, Not)
    inner: Any = filter_.child if isinstance(filter_, Not) else filter_
    operator = _OPERATORS.get(type(inner))
    column = columns.get(inner.attribute[0]) if operator and len(inner.attribute) == 1 else None
    if operator is None or column is None:
        return None
    if negated and (not column.exact or type(inner) not in (EqualTo, In)):
        return None
    if operator in ("IS NULL", "IS NOT NULL"):
        return Condition(inner.attribute[0], operator) if column.exact else None
    given = inner.value if operator == "IN" else (inner.value,)
    # Nothing equals NULL; and nothing is unlike a list with NULL in it, which Spark is left to find out.
    known = [value for value in given if value is not None]
    if not known or len(known) > most_values or (negated and len(known) < len(given)):
        return None
    bound = [made for value in known if (made := _VALUES[column.kind](operator, value)) is not None]
    if len(bound) < len(known):
        return None
    return Condition(inner.attribute[0], operator, tuple(bound), negated)


def _number(operator: Operator, value: Any) -> int | None:
    return value if type(value) is int and operator != "LIKE" else None


def _flag(operator: Operator, value: Any) -> int | None:
    return int(value) if type(value) is bool and operator in ("=", "IN") else None


def _moment(operator: Operator, value: Any) -> int | None:
    """Milliseconds, as the column has them; a time between two of them bounds, and equals none."""
    if not isinstance(value, datetime) or value.tzinfo is None or operator == "LIKE":
        return None
    whole, rest = divmod(value - _BEGINNING, _MILLISECOND)
    if not rest:
        return whole
    return {">": whole, "<=": whole, ">=": whole + 1, "<": whole + 1}.get(operator)


def _guid(operator: Operator, value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    if operator == "LIKE":
        return f"{value}%" if _PART_OF_GUID.fullmatch(value) else None
    return value if operator in ("=", "IN") and _GUID.fullmatch(value) else None


def _text(operator: Operator, value: Any) -> str | None:
    """A text that is no GUID in its usual form: by such a one, an unreadable message has to be found, too."""
    is_other = isinstance(value, str) and not _GUID.fullmatch(value)
    return value if is_other and operator in ("=", "IN") and "\0" not in value else None


_VALUES: dict[Kind, Callable[[Operator, Any], int | str | None]] = {
    Kind.NUMBER: _number,
    Kind.FLAG: _flag,
    Kind.MOMENT: _moment,
    Kind.GUID: _guid,
    Kind.TEXT: _text,
}
