"""Defaults of a pydantic model as SQL text, to be cast to the type of the field."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    TimestampType,
)

from queue_pipeline.processing.body import sql
from queue_pipeline.processing.body.shape import Leaf, ListOf, MapOf, Record, Shape
from queue_pipeline.transport.errors import ConfigurationError


def default_sql(value: Any, shape: Shape, place: str) -> str | None:
    """The SQL text of a default, or None for the default None."""
    text = None
    match shape:
        case _ if value is None:
            return None
        case ListOf() if value == []:
            text = "array()"
        case MapOf() if value == {}:
            text = "map()"
        case Leaf():
            text = _literal(value.value if isinstance(value, Enum) else value, shape.type)
        case ListOf() | MapOf() | Record():
            pass
    if text is None:
        raise ConfigurationError(
            f"{place} has the default {value!r}, which Spark cannot fill in; "
            "use a literal of the field's type, an empty list or dict, or None"
        )
    return text


def _literal(value: Any, type_: DataType) -> str | None:
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    match type_:
        case StringType() if isinstance(value, str | UUID):
            return sql.text(str(value))
        case BooleanType() if isinstance(value, bool):
            return str(value).lower()
        case LongType() if number and isinstance(value, int) and -(2**63) <= value < 2**63:
            return f"'{value}'"
        case DoubleType() if number:
            return f"'{float(value)}'"
        case DecimalType() if number and Decimal(str(value)).is_finite():
            return f"'{value}'"
        case DateType() if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return f"DATE'{value.isoformat()}'"
        case TimestampType() if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return f"TIMESTAMP'{value.astimezone(dt.UTC).isoformat()}'"
        case _:
            return None
