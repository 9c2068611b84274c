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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, cast

import pyarrow as pa
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticOmit, core_schema, to_json, to_jsonable_python

from queue_pipeline.transport.errors import ConfigurationError

Node = dict[str, Any]
"""A core schema, or a part of one."""
Change = Callable[[Any], Any]

MAX_DIGITS, DEFAULT_PLACES = 38, 18
ARROW_TYPE = "arrow_type"
"""Key in the metadata of a node whose column has another type than its validator suggests."""

_SCALARS: dict[str, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "timedelta": pa.duration("us"),
}
_VALUES: dict[type, pa.DataType] = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_TEXTS = ("uuid", "time", "url", "multi-host-url")
# The schema inside, by its key.
_WRAPPERS = {
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "custom-error": "schema",
    "definitions": "schema",
    "lax-or-strict": "lax_schema",
    "json-or-python": "json_schema",
}
_NOTHING = ("none", "missing-sentinel")


@dataclass(frozen=True)
class Column:
    """A column of the payload; `change` turns a dumped value into one that Arrow takes, where it is needed."""

    type: pa.DataType
    nullable: bool = False
    change: Change | None = None
    fields: tuple[tuple[str, Column], ...] = ()


@dataclass(frozen=True)
class _Items:
    change: Change

    def __call__(self, values: Any) -> Any:
        return None if values is None else [self.change(value) for value in values]


@dataclass(frozen=True)
class _Entries:
    key: Change | None
    value: Change | None

    def __call__(self, entries: Any) -> Any:
        if entries is None:
            return None
        return {_changed(self.key, key): _changed(self.value, value) for key, value in entries.items()}


@dataclass(frozen=True)
class _Fields:
    changes: tuple[tuple[str, Change], ...]

    def __call__(self, row: Any) -> Any:
        if row is None:
            return None
        return {**row, **{name: change(row[name]) for name, change in self.changes if name in row}}


def _changed(change: Change | None, value: Any) -> Any:
    return value if change is None else change(value)


def _enum_value(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _text(value: Any) -> Any:
    """A value that JSON has as text."""
    if value is None or type(value) is str:
        return value
    form = to_jsonable_python(value, fallback=str)
    return form if isinstance(form, str) else _json_text(form)


def _json_text(value: Any) -> Any:
    return None if value is None else to_json(value, inf_nan_mode="null", fallback=str).decode()


_JSON = Column(pa.string(), nullable=True, change=_json_text)


def payload_column(core: Any, name: str) -> Column:
    """The payload of bodies that this core schema validates; `name` is what errors call it."""
    column = _Columns(core).column(core, name)
    if not column.fields:
        raise ConfigurationError(f"{name} has no fields that could become columns; declare a model with fields")
    return column


def definitions_of(core: Any) -> dict[str, Node]:
    """The shared parts of a core schema, by their references."""
    return {part["ref"]: part for part in core["definitions"]} if core["type"] == "definitions" else {}


def check_names(names: Iterable[str], place: str) -> None:
    """Refuse an empty struct, and names that Spark cannot tell apart."""
    counts = Counter(name.lower() for name in names)
    if not counts:
        raise ConfigurationError(f"{place} has no fields; declare at least one")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ConfigurationError(f"{place} has two fields named {twice[0]} (Spark ignores case); rename one")


class _Columns:
    """A walk through a core schema."""

    def __init__(self, core: Any) -> None:
        self._definitions = definitions_of(core)
        self._inside: list[str] = []

    def column(self, node: Node, place: str) -> Column:
        """The column of a part of the schema."""
        written = node.get("serialization", {})
        if written and not written.get("when_used", _usual(written)).startswith("json"):
            if returned := written.get("return_schema"):
                column = self.column(returned, place)
                return replace(column, nullable=column.nullable or written.get("when_used") == "unless-none")
            return self._of_pydantic(node, written, place) or self._other(node)
        kind: str = node["type"]
        if stated := node.get("metadata", {}).get(ARROW_TYPE):
            return Column(stated)
        if kind in _SCALARS:
            return Column(_SCALARS[kind])
        if kind in _TEXTS:
            return Column(pa.string(), change=_text)
        if kind in _WRAPPERS:
            return self.column(node[_WRAPPERS[kind]], place)
        method = getattr(self, "_of_" + kind.replace("-", "_"), None)
        return self._other(node) if method is None else cast("Column", method(node, place))

    def _of_pydantic(self, node: Node, written: Node, place: str) -> Column | None:
        """Sequence and defaultdict: pydantic's own functions write them, as what they are."""
        if not str(getattr(written.get("function"), "__module__", "")).startswith("pydantic."):
            return None
        column = self.column({key: part for key, part in node.items() if key != "serialization"}, place)
        return column if pa.types.is_nested(column.type) else None

    def _of_datetime(self, node: Node, place: str) -> Column:
        return Column(pa.timestamp("us", None if node.get("tz_constraint") == "naive" else "UTC"))

    def _of_definition_ref(self, node: Node, place: str) -> Column:
        ref = node["schema_ref"]
        if ref in self._inside:
            return _JSON
        self._inside.append(ref)
        column = self.column(self._definitions[ref], place)
        self._inside.pop()
        return column

    def _of_nullable(self, node: Node, place: str) -> Column:
        return replace(self.column(node["schema"], place), nullable=True)

    def _of_default(self, node: Node, place: str) -> Column:
        column = self.column(node["schema"], place)
        return replace(column, nullable=True) if node.get("default", ...) is None else column

    def _of_chain(self, node: Node, place: str) -> Column:
        return self.column(node["steps"][-1], place)

    def _of_json(self, node: Node, place: str) -> Column:
        return self.column(node["schema"], place) if "schema" in node else _JSON

    def _of_decimal(self, node: Node, place: str) -> Column:
        digits, places = node.get("max_digits"), node.get("decimal_places")
        if (digits or 0) > MAX_DIGITS or (places or 0) > MAX_DIGITS:
            raise ConfigurationError(f"{place} has more than {MAX_DIGITS} digits; Spark's decimals end there")
        if places is None:
            return Column(pa.decimal128(MAX_DIGITS, DEFAULT_PLACES))
        return Column(pa.decimal128(max(digits or MAX_DIGITS, places, 1), places))

    def _of_enum(self, node: Node, place: str) -> Column:
        return _choice([member.value for member in node["members"]], node["members"])

    def _of_literal(self, node: Node, place: str) -> Column:
        return _choice([_enum_value(value) for value in node["expected"]], node["expected"])

    def _of_list(self, node: Node, place: str) -> Column:
        return _array(self.column(node.get("items_schema", core_schema.any_schema()), f"{place}[]"))

    def _of_set(self, node: Node, place: str) -> Column:
        column = self._of_list(node, place)
        item: pa.DataType = cast("Any", column.type).value_type
        if pa.types.is_nested(item):
            raise ConfigurationError(f"{place} is a set of {item}; use list[…]")
        return column

    _of_frozenset = _of_set

    def _of_generator(self, node: Node, place: str) -> Column:
        raise ConfigurationError(f"{place} is an iterator; use list[…]")

    def _of_tuple(self, node: Node, place: str) -> Column:
        items = [self.column(item, f"{place}[]") for item in node["items_schema"]]
        merged = _merged(items)
        return _JSON if merged is None else _array(merged)

    def _of_dict(self, node: Node, place: str) -> Column:
        key = self.column(node.get("keys_schema", core_schema.any_schema()), f"{place}[key]")
        value = self.column(node.get("values_schema", core_schema.any_schema()), f"{place}[]")
        if key.nullable or pa.types.is_nested(key.type):
            return _JSON
        change = None if key.change is None and value.change is None else _Entries(key.change, value.change)
        item: Any = pa.field("value", value.type, value.nullable)
        return Column(pa.map_(cast("Any", key.type), item), change=change)

    def _of_union(self, node: Node, place: str) -> Column:
        return self._one_of([part[0] if isinstance(part, tuple) else part for part in node["choices"]], place)

    def _of_tagged_union(self, node: Node, place: str) -> Column:
        return self._one_of(list(node["choices"].values()), place)

    def _one_of(self, choices: Sequence[Node], place: str) -> Column:
        columns = [self.column(choice, place) for choice in choices if choice["type"] not in _NOTHING]
        merged = _merged(columns)
        nullable = len(columns) < len(choices) or any(column.nullable for column in columns)
        return _JSON if merged is None else replace(merged, nullable=nullable)

    def _of_model(self, node: Node, place: str) -> Column:
        inner = node["schema"]
        while inner["type"] in _WRAPPERS and not node.get("root_model"):
            inner = inner[_WRAPPERS[inner["type"]]]
        return self.column(inner, place)

    _of_dataclass = _of_model

    def _of_model_fields(self, node: Node, place: str) -> Column:
        return self._struct(node, node["fields"], place)

    _of_typed_dict = _of_model_fields

    def _of_dataclass_args(self, node: Node, place: str) -> Column:
        fields = {field["name"]: field for field in node["fields"] if not field.get("init_only")}
        return self._struct(node, fields, place)

    def _struct(self, node: Node, fields: dict[str, Node], place: str) -> Column:
        columns = {}
        for name, field in fields.items():
            if not field.get("serialization_exclude"):
                column = self.column(field["schema"], f"{place}.{name}")
                absent = "serialization_exclude_if" in field or not field.get("required", node.get("total", True))
                columns[name] = replace(column, nullable=True) if absent else column
        for field in node.get("computed_fields", ()):
            name = field["property_name"]
            columns[name] = self.column(field["return_schema"], f"{place}.{name}")
        check_names(columns, place)
        return _struct(columns)

    def _other(self, node: Node) -> Column:
        """What has no type of its own: text where its JSON is text, else the JSON text."""
        schema = core_schema.definitions_schema(cast("Any", node), cast("Any", list(self._definitions.values())))
        try:
            with warnings.catch_warnings(action="ignore"):
                form = GenerateJsonSchema().generate(schema, mode="serialization")
        except (PydanticInvalidForJsonSchema, PydanticOmit):
            return _JSON
        return Column(pa.string(), change=_text) if form.get("type") == "string" else _JSON


def _usual(written: Node) -> str:
    return "always" if written["type"].startswith("function") else "json-unless-none"


def _choice(values: Sequence[Any], members: Sequence[Any]) -> Column:
    types = {type(value) for value in values}
    if len(types) != 1 or not types <= _VALUES.keys():
        return _JSON
    change = _enum_value if any(isinstance(member, Enum) for member in members) else None
    return Column(_VALUES[types.pop()], change=change)


def _array(item: Column) -> Column:
    change = None if item.change is None else _Items(item.change)
    return Column(pa.list_(pa.field("element", item.type, item.nullable)), change=change)


def _struct(columns: dict[str, Column]) -> Column:
    changes = tuple((name, column.change) for name, column in columns.items() if column.change is not None)
    return Column(
        pa.struct([pa.field(name, column.type, column.nullable) for name, column in columns.items()]),
        change=_Fields(changes) if changes else None,
        fields=tuple(columns.items()),
    )


def _merged(columns: Sequence[Column]) -> Column | None:
    """One column for values of any of these, if there is one."""
    first, *others = columns or [_JSON]
    if all(_alike(first, other) for other in others):
        changes = [column.change for column in columns if column.change is not None]
        # Text is text already, and an enum's value is found by both.
        change = _text if _text in changes else changes[0] if changes else None
        return replace(first, nullable=any(column.nullable for column in columns), change=change)
    if not all(column.fields for column in columns):
        return None
    by_name: dict[str, list[Column]] = {}
    for column in columns:
        for name, field in column.fields:
            by_name.setdefault(name, []).append(field)
    fields = {name: _merged(found) for name, found in by_name.items()}
    if None in fields.values() or len({name.lower() for name in fields}) < len(fields):
        return None
    return _struct(
        {
            name: replace(field, nullable=field.nullable or len(by_name[name]) < len(columns))
            for name, field in fields.items()
            if field is not None
        }
    )


def _alike(one: Column, other: Column) -> bool:
    simple = {None, _text, _enum_value}
    return one.type == other.type and (one.change == other.change or {one.change, other.change} <= simple)
