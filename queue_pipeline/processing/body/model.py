"""The shape of a body that was declared with a pydantic model.

Spark applies what the model declares, pydantic itself never runs: whatever only pydantic could do is refused, so that
no rule of a model is silently skipped. The payload's fields have the Python names and are read from the JSON names,
the aliases.
"""

from __future__ import annotations

import datetime as dt
import types
import typing
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin
from uuid import UUID

from pydantic import BaseModel, RootModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    TimestampType,
)

from queue_pipeline.processing.body.checks import distinct_keys, one_of, uuid
from queue_pipeline.processing.body.constraints import Constraints
from queue_pipeline.processing.body.defaults import default_sql
from queue_pipeline.processing.body.shape import Field, ListOf, MapOf, Record, Shape
from queue_pipeline.processing.body.struct import check_names, leaf
from queue_pipeline.transport.errors import ConfigurationError

_SCALARS: dict[Any, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
    dt.datetime: TimestampType(),
    dt.date: DateType(),
}
_INSTEAD: dict[Any, str] = {
    Any: "str, which keeps any JSON value as its text",
    object: "str, which keeps any JSON value as its text",
    bytes: "str, and decode it afterwards",
    dt.time: "str with a pattern",
    dt.timedelta: "float (seconds), or str with a pattern",
    set: "list[…]",
    frozenset: "list[…]",
    tuple: "list[…], or a model with a field for each part",
    list: "list[…] with the type of its elements",
    dict: "dict[str, …] with the type of its values",
}
# Settings that change what pydantic accepts, at the values at which they do.
_CONFIG = {
    "extra": "forbid",
    "strict": True,
    "str_strip_whitespace": True,
    "str_to_lower": True,
    "str_to_upper": True,
    "populate_by_name": True,
    "validate_by_name": True,
    "validate_by_alias": False,
    "allow_inf_nan": False,
}
_LIMITS = ("str_min_length", "str_max_length")
_VALIDATORS = ("validators", "field_validators", "root_validators", "model_validators")


def model_shape(model: type[BaseModel], outer: tuple[type[BaseModel], ...] = ()) -> Record:
    """A record with the fields of the model; the models in which it is nested are `outer`."""
    name = model.__name__
    if model in outer:
        raise ConfigurationError(f"model {name} contains itself, which no Spark type can; use str for the inner part")
    _refuse_code(model)
    if issubclass(model, RootModel):
        raise ConfigurationError(f"model {name} is a RootModel; declare a BaseModel with the fields of the body")
    fields = tuple(_field(model, key, info, (*outer, model)) for key, info in model.model_fields.items())
    check_names((field.name for field in fields), f"model {name}")
    check_names((field.key for field in fields), f"model {name}")
    return Record(fields)


def _refuse_code(model: type[BaseModel]) -> None:
    for kind in _VALIDATORS:
        for function in getattr(model.__pydantic_decorators__, kind):
            raise ConfigurationError(
                f"model {model.__name__} has the validator {function}, which Spark cannot run; "
                "use Field constraints, or check the payload in the pipeline"
            )
    for setting, value in model.model_config.items():
        if (setting in _CONFIG and value == _CONFIG[setting]) or (setting in _LIMITS and value):
            raise ConfigurationError(
                f"model {model.__name__} sets {setting}={value!r}, which Spark does not apply; "
                "remove it from model_config"
            )


def _field(model: type[BaseModel], name: str, info: FieldInfo, outer: tuple[type[BaseModel], ...]) -> Field:
    place = f"{model.__name__}.{name}"
    alias = info.validation_alias if info.validation_alias is not None else info.alias
    if alias is not None and not isinstance(alias, str):
        raise ConfigurationError(f"{place} has the alias {alias!r}; give it a single name")
    if info.discriminator is not None:
        raise ConfigurationError(f"{place} has a discriminator; declare one model for each message type")
    annotation, optional, metadata = _unwrap(info.annotation, list(info.metadata), place)
    shape = _shape(annotation, metadata, place, outer)
    default = None
    if not info.is_required():
        default = default_sql(_default(info, place), shape, place)
        if default is None and not optional:
            raise ConfigurationError(f"{place} has the default None, but its type does not allow it; use … | None")
        if default is not None and optional:
            raise ConfigurationError(
                f"{place} allows None and has the default {info.default!r}, but Spark does not tell an absent field "
                "from null; make the default None, or take None out of the type"
            )
    return Field(name, alias or name, shape, not optional, default)


def _default(info: FieldInfo, place: str) -> Any:
    factory: Any = info.default_factory
    if factory is None:
        return None if info.default is PydanticUndefined else info.default
    if factory not in (list, dict):
        raise ConfigurationError(
            f"{place} has a default_factory, which Spark cannot call; use a literal default, list or dict"
        )
    return factory()


def _unwrap(annotation: Any, metadata: list[Any], place: str) -> tuple[Any, bool, list[Any]]:
    """Take `Annotated` and `| None` off a type: what remains, whether None is allowed, and the constraints."""
    optional = False
    while True:
        origin = get_origin(annotation)
        if origin is typing.Annotated:
            annotation, *more = get_args(annotation)
            metadata = [*more, *metadata]
        elif origin in (Union, types.UnionType):
            members = [member for member in get_args(annotation) if member is not type(None)]
            if len(members) != 1:
                names = ", ".join(_name(member) for member in members)
                raise ConfigurationError(f"{place} is a union of {names}; use one type, or str for the JSON text")
            annotation, optional = members[0], True
        else:
            return annotation, optional, metadata


def _shape(annotation: Any, metadata: list[Any], place: str, outer: tuple[type[BaseModel], ...]) -> Shape:
    constraints = Constraints.read(metadata, place)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (list, Sequence):
        element, nullable = _part(arguments[0], f"{place}[]", outer)
        return ListOf(element, not nullable, constraints.of_items())
    if origin is dict:
        if arguments[0] is not str:
            raise ConfigurationError(
                f"{place} has keys of type {_name(arguments[0])}; JSON keys are text: use dict[str, …]"
            )
        value, nullable = _part(arguments[1], f"{place}[]", outer)
        return MapOf(value, not nullable, (distinct_keys(), *constraints.of_items()))
    if origin is Literal:
        return _choice(arguments, constraints, place)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice([member.value for member in annotation], constraints, place)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        constraints.refuse_any("a model")
        return model_shape(annotation, outer)
    if annotation is UUID:
        constraints.refuse_any("a UUID")
        return leaf(StringType(), uuid())
    if annotation is Decimal:
        decimal = constraints.decimal_type()
        return leaf(decimal, *constraints.of_number(decimal))
    if annotation in _SCALARS:
        return _scalar(_SCALARS[annotation], constraints)
    instead = _INSTEAD.get(
        origin or annotation, "str, int, float, bool, Decimal, datetime, date, UUID, list, dict or a model"
    )
    raise ConfigurationError(f"{place} has type {_name(annotation)}, which Spark cannot check; use {instead}")


def _part(annotation: Any, place: str, outer: tuple[type[BaseModel], ...]) -> tuple[Shape, bool]:
    inner, optional, metadata = _unwrap(annotation, [], place)
    return _shape(inner, metadata, place, outer), optional


def _scalar(type_: DataType, constraints: Constraints) -> Shape:
    return leaf(type_, *(constraints.of_text() if isinstance(type_, StringType) else constraints.of_number(type_)))


def _choice(values: Iterable[Any], constraints: Constraints, place: str) -> Shape:
    constraints.refuse_any("a choice")
    allowed = list(values)
    if not all(isinstance(value, str) for value in allowed):
        raise ConfigurationError(f"{place} allows values that are not text; use str values, or int with ge and le")
    return leaf(StringType(), one_of([str(getattr(value, "value", value)) for value in allowed]))


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
