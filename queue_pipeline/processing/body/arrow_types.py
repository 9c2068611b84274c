"""The Arrow type of a payload, from the core schema of a pydantic model.

| declared | column |
|---|---|
| `str`, `int`, `float`, `bool`, `bytes` | string, bigint, double, boolean, binary |
| `Decimal` | decimal of its `max_digits` and `decimal_places`; without them 38 digits, 18 of them decimals |
| `datetime`, `NaiveDatetime` | timestamp (UTC; without a zone it is taken as UTC), timestamp_ntz |
| `date`, `timedelta` | date, day-time interval |
| `Enum`, `Literal` | the type of their values |
| `UUID`, `time`, `Path`, URLs, IP addresses, secrets | string, as pydantic writes them to JSON |
| `list`, `set`, `frozenset`, `tuple` of one type | array |
| `dict` | map, if its keys are single values |
| models, dataclasses, `TypedDict` | struct, with computed fields, without excluded ones |
| union of models | struct with the fields of all; one that a model lacks is null |
| `Any`, other unions, other types, a model inside itself | string: the JSON text, null for null |

Columns have the Python names of the fields, as in `model_dump()`. `Optional` makes a column nullable.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, cast

import pyarrow as pa
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit
from pydantic_core.core_schema import any_schema, definitions_schema

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.body.values import Change, Entries, Fields, Items, enum_value, json_text, text

Node = Any
"""A core schema, or a part of one: a dictionary with a `type`."""

MAX_DIGITS, DEFAULT_PLACES = 38, 18
ARROW_TYPE = "arrow_type"
"""Key in the metadata of a node whose column has another type than its validator suggests."""

WRAPPERS = {
    "definitions": "schema",
    "custom-error": "schema",
    "function-after": "schema",
    "lax-or-strict": "lax_schema",
    "json-or-python": "json_schema",
}
"""Nodes that have the values of another node, by the key of that one."""

SINGLE_VALUES = frozenset(
    ("bool", "int", "float", "str", "bytes", "date", "time", "datetime", "timedelta", "uuid", "literal", "enum")
)
"""Nodes that validate to one value, decimals aside."""

_WRAPPERS = WRAPPERS | {"function-before": "schema", "function-wrap": "schema"}
_TYPES: dict[str, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "timedelta": pa.duration("us"),
}
_CHOICES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


@dataclass(frozen=True)
class Column:
    """A column of the payload; `fields` are those of a struct."""

    type: pa.DataType
    nullable: bool = False
    change: Change | None = None
    fields: tuple[tuple[str, Column], ...] = ()


_JSON = Column(pa.string(), nullable=True, change=json_text)


def payload_column(core: Node, name: str) -> Column:
    """The payload of bodies that this core schema validates; `name` is what errors call it."""
    column = _Columns(core).column(core, name)
    if not column.fields:
        raise ConfigurationError(f"{name} has no fields that could become columns; declare a model with fields")
    return column


def definitions_of(core: Node) -> dict[str, Node]:
    """The shared parts of a core schema, by their references."""
    return {part["ref"]: part for part in core["definitions"]} if core["type"] == "definitions" else {}


def check_names(names: Iterable[str], place: str) -> None:
    """Refuse an empty struct, and names that are equal to Spark."""
    counts = Counter(name.lower() for name in names)
    if not counts:
        raise ConfigurationError(f"{place} has no fields; declare at least one")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ConfigurationError(f"{place} has two fields named {twice[0]} (Spark ignores case); rename one")


class _Columns:
    def __init__(self, core: Node) -> None:
        self._definitions = definitions_of(core)
        self._inside: list[str] = []

    def column(self, node: Node, place: str) -> Column:
        written = node.get("serialization")
        if written and not written.get("when_used", _usual(written)).startswith("json"):
            return self._written(node, written, place)
        if stated := node.get("metadata", {}).get(ARROW_TYPE):
            return Column(stated)
        kind = node["type"]
        if kind in _TYPES:
            return Column(_TYPES[kind])
        if kind in _WRAPPERS:
            return self.column(node[_WRAPPERS[kind]], place)
        match kind:
            case "uuid" | "time" | "url" | "multi-host-url":
                return Column(pa.string(), change=text)
            case "datetime":
                return Column(pa.timestamp("us", None if node.get("tz_constraint") == "naive" else "UTC"))
            case "decimal":
                return _decimal(node, place)
            case "enum":
                return _choice(node["members"])
            case "literal":
                return _choice(node["expected"])
            case "nullable":
                return replace(self.column(node["schema"], place), nullable=True)
            case "default":
                column = self.column(node["schema"], place)
                return replace(column, nullable=column.nullable or node.get("default", ...) is None)
            case "chain":
                return self.column(node["steps"][-1], place)
            case "json" if "schema" in node:
                return self.column(node["schema"], place)
            case "definition-ref":
                return self._definition(node["schema_ref"], place)
        return self._container(node, place)

    def _container(self, node: Node, place: str) -> Column:
        match node["type"]:
            case "list":
                return _array(self._part(node, "items_schema", f"{place}[]"))
            case "set" | "frozenset":
                item = self._part(node, "items_schema", f"{place}[]")
                if pa.types.is_nested(item.type):
                    raise ConfigurationError(f"{place} is a set of {item.type}; use list[…]")
                return _array(item)
            case "tuple":
                items = _merged([self.column(item, f"{place}[]") for item in node["items_schema"]])
                return _JSON if items is None else _array(items)
            case "generator":
                raise ConfigurationError(f"{place} is an iterator; use list[…]")
            case "dict":
                return _map(self._part(node, "keys_schema", place), self._part(node, "values_schema", f"{place}[]"))
            case "union":
                return self._one_of([one[0] if isinstance(one, tuple) else one for one in node["choices"]], place)
            case "tagged-union":
                return self._one_of(list(node["choices"].values()), place)
            case "model" | "dataclass":
                return self.column(node["schema"], place)
            case "model-fields" | "typed-dict":
                return self._struct(node, node["fields"], place)
            case "dataclass-args":
                return self._struct(node, {part["name"]: part for part in node["fields"]}, place)
        return self._other(node)

    def _part(self, node: Node, key: str, place: str) -> Column:
        return self.column(node.get(key, any_schema()), place)

    def _definition(self, ref: str, place: str) -> Column:
        if ref in self._inside:
            return _JSON
        self._inside.append(ref)
        column = self.column(self._definitions[ref], place)
        self._inside.pop()
        return column

    def _one_of(self, choices: Sequence[Node], place: str) -> Column:
        columns = [self.column(one, place) for one in choices if one["type"] not in ("none", "missing-sentinel")]
        merged = _merged(columns)
        return _JSON if merged is None else replace(merged, nullable=merged.nullable or len(columns) < len(choices))

    def _struct(self, node: Node, fields: dict[str, Node], place: str) -> Column:
        columns = {}
        for name, field in fields.items():
            if not field.get("serialization_exclude") and not field.get("init_only"):
                column = self.column(field["schema"], f"{place}.{name}")
                absent = "serialization_exclude_if" in field or not field.get("required", node.get("total", True))
                columns[name] = replace(column, nullable=column.nullable or absent)
        for field in node.get("computed_fields", ()):
            name = field["property_name"]
            columns[name] = self.column(field["return_schema"], f"{place}.{name}")
        check_names(columns, place)
        return _struct(columns)

    def _written(self, node: Node, written: Node, place: str) -> Column:
        if returned := written.get("return_schema"):
            column = self.column(returned, place)
            return replace(column, nullable=column.nullable or written.get("when_used") == "unless-none")
        if str(getattr(written.get("function"), "__module__", "")).startswith("pydantic."):
            # Sequence and defaultdict: pydantic's own functions keep what they are.
            column = self.column({key: part for key, part in node.items() if key != "serialization"}, place)
            if pa.types.is_nested(column.type):
                return column
        return self._other(node)

    def _other(self, node: Node) -> Column:
        """Any other node is text: the string of its JSON if that is a string, else the JSON text."""
        schema = definitions_schema(node, list(self._definitions.values()))
        try:
            with warnings.catch_warnings(action="ignore"):
                form = GenerateJsonSchema().generate(schema, mode="serialization")
        except (PydanticInvalidForJsonSchema, PydanticOmit):
            return _JSON
        return Column(pa.string(), change=text) if form.get("type") == "string" else _JSON


def _usual(written: Node) -> str:
    return "always" if written["type"].startswith("function") else "json-unless-none"


def _decimal(node: Node, place: str) -> Column:
    digits, places = node.get("max_digits", MAX_DIGITS), node.get("decimal_places")
    if max(digits, places or 0) > MAX_DIGITS:
        raise ConfigurationError(f"{place} has more than {MAX_DIGITS} digits, which Spark cannot hold; allow fewer")
    if places is None:
        return Column(pa.decimal128(MAX_DIGITS, DEFAULT_PLACES))
    return Column(pa.decimal128(max(digits, places, 1), places))


def _choice(members: Sequence[Any]) -> Column:
    types = {type(enum_value(member)) for member in members}
    if len(types) != 1 or not types <= _CHOICES.keys():
        return _JSON
    change = enum_value if any(isinstance(member, Enum) for member in members) else None
    return Column(_CHOICES[types.pop()], change=change)


def _array(item: Column) -> Column:
    change = None if item.change is None else Items(item.change)
    return Column(pa.list_(pa.field("element", item.type, item.nullable)), change=change)


def _map(key: Column, value: Column) -> Column:
    if key.nullable or pa.types.is_nested(key.type):
        return _JSON
    change = None if key.change is None and value.change is None else Entries(key.change, value.change)
    item: Any = pa.field("value", value.type, value.nullable)
    return Column(pa.map_(cast("Any", key.type), item), change=change)


def _struct(columns: dict[str, Column]) -> Column:
    changes = tuple((name, column.change) for name, column in columns.items() if column.change is not None)
    type_ = pa.struct([pa.field(name, column.type, column.nullable) for name, column in columns.items()])
    return Column(type_, change=Fields(changes) if changes else None, fields=tuple(columns.items()))


def _merged(columns: Sequence[Column]) -> Column | None:
    first = columns[0] if columns else _JSON
    changes = {column.change for column in columns}
    if all(column.type == first.type for column in columns) and (
        len(changes) <= 1 or changes <= {None, text, enum_value}
    ):
        # `text` leaves text alone, and finds the value of an enum.
        change = text if text in changes else enum_value if enum_value in changes else first.change
        return replace(first, nullable=any(column.nullable for column in columns), change=change)
    by_name: dict[str, list[Column]] = {}
    for column in columns:
        for name, field in column.fields:
            by_name.setdefault(name, []).append(field)
    fields = {name: merged for name, found in by_name.items() if (merged := _merged(found)) is not None}
    if not all(column.fields for column in columns) or len({name.lower() for name in fields}) < len(by_name):
        return None
    lacking = {name for name, found in by_name.items() if len(found) < len(columns)}
    return _struct({name: replace(field, nullable=field.nullable or name in lacking) for name, field in fields.items()})
