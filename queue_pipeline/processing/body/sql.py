"""Small pieces of Spark SQL text.

Bodies are checked in SQL text rather than with `Column` objects: Spark Connect sends those as nested messages, of which
protobuf reads a hundred levels, fewer than a list inside a list needs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

NULL_TEXT = "CAST(NULL AS STRING)"

# What a message shows of a value.
_SHOWN_LENGTH = 60


def text(value: str) -> str:
    """A string literal; as bytes where escaping would depend on a setting of the session."""
    if any(character in value for character in "'\"\\") or not value.isprintable():
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    return f"'{value}'"


def number(value: int | float | Decimal | dt.date) -> str:
    """A literal of the type that the value has."""
    match value:
        case dt.date():
            return f"DATE'{value.isoformat()}'"
        case Decimal():
            return f"{value:f}BD"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case _:
            return str(value)


def member(record: str, name: str) -> str:
    """A field of a struct."""
    return f"{record}.`{name.replace('`', '``')}`"


def bind(value: str, variable: str, result: str) -> str:
    """Evaluate `value` once, as `variable`, for all its uses in `result`."""
    return f"get(transform(array({value}), {variable} -> {result}), 0)"


def when(condition: str, result: str, otherwise: str = "NULL") -> str:
    """`result` if the condition is true, and only then evaluated."""
    return f"CASE WHEN {condition} THEN {result} ELSE {otherwise} END"


def first(values: Iterable[str]) -> str:
    """The first that is not null."""
    return f"coalesce({', '.join([*values, NULL_TEXT])})"


def first_in(array: str) -> str:
    """The first element that is not null."""
    return f"get(array_compact({array}), 0)"


def concat(parts: Iterable[str]) -> str:
    """Texts one after the other."""
    return f"concat({', '.join(parts)})"


def plain(value: str) -> str:
    """A value that needs no quotes; a decimal without the zeros that its type adds."""
    return f"regexp_replace(CAST({value} AS STRING), '([.][0-9]*[1-9])0+$|[.]0+$', '$1')"


def quoted(value: str) -> str:
    """Text in quotes, cut when it is long."""
    return concat(["""'"'""", cut(value), """'"'"""])


def cut(value: str) -> str:
    """The beginning of a text."""
    return f"concat(left({value}, {_SHOWN_LENGTH}), if(char_length({value}) > {_SHOWN_LENGTH}, '…', ''))"


def type_text(type_: DataType) -> str:
    """A type as SQL spells it, with names quoted, unlike Spark's own text of it."""
    match type_:
        case StructType():
            names = [(field.name.replace("`", "``"), type_text(field.dataType)) for field in type_.fields]
            return f"struct<{', '.join(f'`{name}`: {inner}' for name, inner in names)}>"
        case ArrayType():
            return f"array<{type_text(type_.elementType)}>"
        case MapType():
            return f"map<string, {type_text(type_.valueType)}>"
        case _:
            return type_.simpleString()
