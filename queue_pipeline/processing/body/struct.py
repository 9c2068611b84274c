"""The shape of a body that was declared with Spark's types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from queue_pipeline.processing.body.checks import (
    date_in_calendar,
    decimal_places,
    distinct_keys,
    instant_in_calendar,
)
from queue_pipeline.processing.body.shape import MAX_DIGITS, Check, Field, Leaf, ListOf, MapOf, Record, Shape
from queue_pipeline.transport.errors import ConfigurationError

_PLAIN = (StringType, BooleanType, ShortType, IntegerType, LongType, FloatType, DoubleType, BinaryType)
_INSTEAD = {
    "tinyint": "smallint, since Spark reads 200 as -56 into a tinyint",
    "variant": "string, which keeps any JSON value as its text",
    "char": "string",
    "varchar": "string",
}


def struct_shape(schema: StructType, path: str = "") -> Record:
    """A record whose NOT NULL fields are required."""
    check_names((field.name for field in schema.fields), path.rstrip(".") or "the body schema")
    return Record(
        tuple(
            Field(field.name, field.name, _shape(field.dataType, path + field.name), not field.nullable)
            for field in schema.fields
        )
    )


def leaf(type_: DataType, *checks: Check) -> Leaf:
    """A value with the checks that its type needs anyway: what Spark would silently round or shift is refused."""
    own: list[Check] = []
    if isinstance(type_, DecimalType) and type_.precision < MAX_DIGITS:
        own.append(decimal_places(type_.scale))
    elif isinstance(type_, TimestampType):
        own.append(instant_in_calendar())
    elif isinstance(type_, DateType | TimestampNTZType):
        own.append(date_in_calendar())
    return Leaf(type_, (*own, *checks))


def check_names(names: Iterable[str], place: str) -> None:
    """Refuse an empty record, and names that Spark cannot tell apart."""
    counts = Counter(name.lower() for name in names)
    if not counts:
        raise ConfigurationError(f"{place} has no fields; declare at least one")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ConfigurationError(f"{place} has two fields named {twice[0]} (Spark ignores case); rename one")


def _shape(type_: DataType, path: str) -> Shape:
    match type_:
        case StructType():
            return struct_shape(type_, f"{path}.")
        case ArrayType():
            return ListOf(_shape(type_.elementType, f"{path}[]"), not type_.containsNull)
        case MapType():
            if not isinstance(type_.keyType, StringType):
                raise ConfigurationError(
                    f"field {path} has type {type_.simpleString()}; JSON keys are text: use map<string,…>"
                )
            return MapOf(_shape(type_.valueType, f"{path}[]"), not type_.valueContainsNull, (distinct_keys(),))
        case DecimalType() | TimestampType() | TimestampNTZType() | DateType():
            return leaf(type_)
        case _ if isinstance(type_, _PLAIN):
            return leaf(type_)
        case _:
            instead = _INSTEAD.get(type_.simpleString().partition("(")[0], "string and convert it afterwards")
            raise ConfigurationError(
                f"field {path} has type {type_.simpleString()}, which bodies cannot have; use {instead}"
            )
