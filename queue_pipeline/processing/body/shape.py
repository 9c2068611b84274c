"""The shape of a message body: what its JSON holds, field by field, whatever it was declared with.

A DDL string, a `StructType` and a pydantic model all become a `Record`; Spark's types and the checks follow from it.
Building a shape needs no Spark session, so a definition that cannot work is refused when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
)

# A decimal as wide as Spark has.
MAX_DIGITS = 38


@dataclass(frozen=True)
class Check:
    """What a value must be beyond its type: functions from the SQL text of a value to that of an expression."""

    violated: Callable[[str], str]
    shown: Callable[[str], str]
    words: str


@dataclass(frozen=True)
class Leaf:
    """A single value."""

    type: DataType
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class ListOf:
    """A JSON array."""

    element: Shape
    element_required: bool
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class MapOf:
    """A JSON object whose keys are data."""

    value: Shape
    value_required: bool
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Field:
    """One field of a record: `key` is its name in the JSON, `name` in the payload."""

    name: str
    key: str
    shape: Shape
    required: bool
    # SQL text of the value that an absent field gets, and a null one too: Spark does not tell them apart.
    default: str | None = None

    @property
    def expected(self) -> bool:
        """Whether a body must have this field."""
        return self.required and self.default is None


@dataclass(frozen=True)
class Record:
    """A JSON object whose keys are fields."""

    fields: tuple[Field, ...]
    checks: tuple[Check, ...] = ()


Shape = Leaf | ListOf | MapOf | Record


def payload_type(shape: Shape) -> DataType:
    """The type that a value has in the payload."""
    match shape:
        case Leaf():
            return shape.type
        case ListOf():
            return ArrayType(payload_type(shape.element), not shape.element_required)
        case MapOf():
            return MapType(StringType(), payload_type(shape.value), not shape.value_required)
        case Record():
            return record_type(shape)


def record_type(record: Record) -> StructType:
    """The type of a record in the payload."""
    return StructType(
        [StructField(field.name, payload_type(field.shape), not field.required) for field in record.fields]
    )


def wire_type(shape: Shape) -> DataType:
    """The type that the JSON is parsed with: named as in the JSON, and wide enough to see what must be refused."""
    match shape:
        case Leaf(type=DecimalType() as decimal):
            # Spark rounds what has too many decimals; they have to be seen to be refused.
            return DecimalType(MAX_DIGITS, MAX_DIGITS - (decimal.precision - decimal.scale))
        case Leaf():
            return shape.type
        case ListOf():
            return ArrayType(wire_type(shape.element))
        case MapOf():
            return MapType(StringType(), wire_type(shape.value))
        case Record():
            return StructType([StructField(field.key, wire_type(field.shape)) for field in shape.fields])
