"""The schema of bodies as one pydantic core schema: from Spark DDL, a `StructType` or a pydantic model.

A model validates as declared. Spark's types are strict:

- A NOT NULL field must be present and not null; another one may be absent or null. Names are case-sensitive.
- `string` takes text only, numbers take no text. Whole numbers must fit their width.
- A decimal also takes text. It must fit its digits; decimal places beyond them must be zero.
- `timestamp` takes ISO 8601 text, UTC if it names no zone, or a number of seconds since 1970.
- `timestamp_ntz` takes ISO 8601 text without a zone, `date` text such as 2024-05-31, `binary` Base64 text.
- Map keys are text. Fields that are not declared are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticCustomError, SchemaSerializer, SchemaValidator
from pydantic_core import core_schema as core
from pyspark.sql import types as T

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.body.arrow_types import ARROW_TYPE, check_names, payload_column
from queue_pipeline.processing.body.ddl import parse_ddl

BodySchema = str | T.StructType | type[BaseModel]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_LARGEST_SINGLE = 3.4028234663852886e38
_WHOLE: dict[type[T.DataType], tuple[int, pa.DataType]] = {
    T.ShortType: (16, pa.int16()),
    T.IntegerType: (32, pa.int32()),
    T.LongType: (64, pa.int64()),
}
_INSTEAD = {
    "tinyint": "smallint",
    "variant": "a pydantic model with a field of type Any, which keeps any JSON value as its text",
    "char": "string",
    "varchar": "string",
}


@dataclass(frozen=True)
class Declaration:
    """A schema as pydantic uses it; without a serializer, validated values are dictionaries, lists and plain values."""

    name: str
    core: core.CoreSchema
    validator: Any
    serializer: SchemaSerializer | None = None


def check_body_schema(schema: object) -> None:
    """Refuse a schema that bodies cannot be parsed with; this needs and starts no Spark session."""
    declared = declare(schema)
    payload_column(declared.core, declared.name)


def declare(schema: object) -> Declaration:
    """The core schema and the validator of a declared schema."""
    if isinstance(schema, str):
        schema = parse_ddl(schema)
    if isinstance(schema, T.StructType):
        fields = _struct(schema, "")
        return Declaration("the body schema", fields, SchemaValidator(fields))
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return _model(schema)
    raise ConfigurationError(
        f"body schema {schema!r} is not usable; give Spark DDL, a StructType or a pydantic model class"
    )


def _model(model: type[BaseModel]) -> Declaration:
    try:
        adapter = TypeAdapter(model)
        adapter.rebuild()
        return Declaration(model.__name__, adapter.core_schema, adapter.validator, adapter.serializer)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise ConfigurationError(
            f"model {model.__name__} is not complete: {error.message}; define the types that it names before it is used"
        ) from None


def _struct(schema: T.StructType, path: str) -> core.CoreSchema:
    check_names((field.name for field in schema.fields), path.rstrip(".") or "the body schema")
    fields = {
        field.name: core.typed_dict_field(
            _or_null(_value(field.dataType, path + field.name), field.nullable), required=not field.nullable
        )
        for field in schema.fields
    }
    return core.typed_dict_schema(fields, config=core.CoreConfig(val_json_bytes="base64"))


def _or_null(schema: core.CoreSchema, nullable: bool) -> core.CoreSchema:
    return core.nullable_schema(schema) if nullable else schema


def _value(type_: T.DataType, path: str) -> core.CoreSchema:
    match type_:
        case T.StructType():
            return _struct(type_, f"{path}.")
        case T.ArrayType():
            return core.list_schema(_or_null(_value(type_.elementType, f"{path}[]"), type_.containsNull))
        case T.MapType():
            if not isinstance(type_.keyType, T.StringType):
                raise ConfigurationError(
                    f"field {path} has type {type_.simpleString()}; JSON keys are text: use map<string,…>"
                )
            value = _or_null(_value(type_.valueType, f"{path}[]"), type_.valueContainsNull)
            return core.dict_schema(core.str_schema(), value)
        case T.StringType() if type_.simpleString() == "string":
            return core.str_schema(strict=True)
        case T.BooleanType():
            return core.bool_schema(strict=True)
        case T.ShortType() | T.IntegerType() | T.LongType():
            bits, arrow = _WHOLE[type(type_)]
            least = -(1 << bits - 1)
            return core.int_schema(strict=True, ge=least, le=-least - 1, metadata={ARROW_TYPE: arrow})
        case T.DoubleType():
            return core.float_schema(strict=True)
        case T.FloatType():
            single = core.float_schema(strict=True)
            return core.no_info_after_validator_function(_single, single, metadata={ARROW_TYPE: pa.float32()})
        case T.DecimalType():
            return core.decimal_schema(max_digits=type_.precision, decimal_places=type_.scale)
        case T.TimestampType():
            return core.no_info_before_validator_function(_moment, core.datetime_schema())
        case T.TimestampNTZType():
            local = core.datetime_schema(tz_constraint="naive")
            return core.no_info_before_validator_function(
                _text_like(_MOMENT.match, "a date and time without a time zone, such as 2024-05-31T12:00:00"),
                local,
            )
        case T.DateType():
            guard = _text_like(_DATE.fullmatch, "a date such as 2024-05-31")
            return core.no_info_before_validator_function(guard, core.date_schema())
        case T.BinaryType():
            return core.bytes_schema()
        case _:
            instead = _INSTEAD.get(type_.simpleString().partition("(")[0], "string and convert it afterwards")
            raise ConfigurationError(
                f"field {path} has type {type_.simpleString()}, which bodies cannot have; use {instead}"
            )


def _single(value: float) -> float:
    if _LARGEST_SINGLE < abs(value) < float("inf"):
        raise PydanticCustomError("float_range", "Input should be in the range of a 32-bit floating point number")
    return value


def _moment(value: Any) -> Any:
    if type(value) in (int, float):
        try:
            return _EPOCH + timedelta(seconds=value)
        except (OverflowError, ValueError):
            raise PydanticCustomError(
                "datetime_range", "Input should be in the years 1 to 9999 (a number counts seconds since 1970)"
            ) from None
    if type(value) is str and _MOMENT.match(value) is None:
        raise PydanticCustomError("datetime_text", "Input should be a date and time such as 2024-05-31T12:00:00Z")
    return value


def _text_like(matches: Callable[[str], object], words: str) -> Callable[[Any], Any]:
    def guard(value: Any) -> Any:
        if type(value) is not str or not matches(value):
            raise PydanticCustomError("text_like", "Input should be {words}", {"words": words})
        return value

    return guard
