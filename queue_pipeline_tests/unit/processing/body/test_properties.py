"""Random models and random bodies: what arrives equals what the model itself validates and dumps."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal
from uuid import UUID

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from pydantic_core import to_json

from queue_pipeline.processing.body.parse import UNREADABLE_BODY, BodyParser
from queue_pipeline.processing.body.plain_models import plain_validator
from queue_pipeline_tests.support.processing.bodies import plain


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Unheld(Exception):
    """Arrow has no room for the value."""


@dataclass(frozen=True)
class Kind:
    """A type, the JSON of its values, and a dumped value as it should arrive."""

    annotation: Any
    texts: st.SearchStrategy[str]
    arrives: Callable[[Any], Any]


def or_null(arrives: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else arrives(value)


def whole(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Unheld
    return value


def exact(digits: int, places: int) -> Callable[[Decimal], Decimal]:
    def arrives(value: Decimal) -> Decimal:
        if value and (
            value.copy_abs() >= Decimal(10) ** (digits - places) or int(value.normalize().as_tuple()[2]) < -places
        ):
            raise Unheld
        return value

    return arrives


def moment(value: dt.datetime) -> dt.datetime:
    try:
        return value.replace(tzinfo=value.tzinfo or dt.UTC).astimezone(dt.UTC)
    except OverflowError:
        raise Unheld from None


def json_text(value: Any) -> str:
    return to_json(value, inf_nan_mode="null").decode()


def same(value: Any) -> Any:
    return value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "2024-01-01", "red", "12"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
).map(json.dumps)
HOSTILE = [
    "NaN",
    "-Infinity",
    "1e400",
    "-0.0",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1" * 39,
    "1e-19",
    '"1e30"',
    '"\\ud800"',
    '"\\u0000"',
    '"\\ud83d\\ude00"',
    '"0001-01-01T00:00:00+10:00"',
    '"9999-12-31T23:59:59-10:00"',
    "1700000000000",
    "truth",
    "",
    "[" * 300,
    '{"a":1,"a":"x"}',
    '{"kind":"a"}',
]
hostile = st.sampled_from(HOSTILE) | json_values
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5).map(json.dumps)
instants = st.datetimes(timezones=st.sampled_from([None, dt.UTC, dt.timezone(dt.timedelta(hours=-9))]))
decimals = st.decimals(-1000, 1000, places=3).map(str)

LEAVES = [
    Kind(str, texts, same),
    Kind(Annotated[str, Field(max_length=3, pattern="^[a-z]*$")], st.sampled_from(['"abc"', '"a"', '"ABC"']), same),
    Kind(int, st.integers(-10, 10).map(str), whole),
    Kind(Annotated[int, Field(ge=0)], st.integers(-1, 10).map(str), whole),
    Kind(Annotated[int, AfterValidator(abs)], st.integers(-10, 10).map(str), whole),
    Kind(float, st.floats(allow_nan=False, allow_infinity=False).map(repr), same),
    Kind(bool, st.sampled_from(["true", "false", "1"]), same),
    Kind(Decimal, decimals, exact(38, 18)),
    Kind(Annotated[Decimal, Field(max_digits=7, decimal_places=3)], decimals, exact(7, 3)),
    Kind(dt.datetime, instants.map(lambda at: f'"{at.isoformat()}"'), moment),
    Kind(dt.date, st.dates().map(lambda at: f'"{at}"'), same),
    Kind(UUID, st.uuids().map(lambda id_: f'"{id_}"'), str),
    Kind(Colour, st.sampled_from(['"red"', '"blue"']), lambda value: value.value),
    Kind(Literal["x", "y"], st.sampled_from(['"x"', '"y"']), same),
    Kind(Any, json_values, json_text),
    Kind(int | str, st.sampled_from(["1", '"1"']), json_text),
]

PLAIN = [kind for kind in LEAVES if kind.arrives is not json_text and "AfterValidator" not in str(kind.annotation)]


def optional(kind: Kind) -> Kind:
    return Kind(kind.annotation | None, st.just("null") | kind.texts, or_null(kind.arrives))


def array(kind: Kind) -> Kind:
    return Kind(
        list.__class_getitem__(kind.annotation),
        st.lists(kind.texts, max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        lambda values: [or_null(kind.arrives)(value) for value in values],
    )


def mapping(kind: Kind) -> Kind:
    return Kind(
        dict.__class_getitem__((str, kind.annotation)),
        st.lists(kind.texts, max_size=3).map(
            lambda parts: "{" + ",".join(f'"{at % 2}":{part}' for at, part in enumerate(parts)) + "}"
        ),
        lambda values: {key: or_null(kind.arrives)(value) for key, value in values.items()},
    )


class Whole(BaseModel):
    kind: Literal["a"] = "a"
    size: int = 0


class Named(BaseModel):
    kind: Literal["b"]
    name: UUID | None = None


VARIANTS = Kind(
    Annotated[Whole | Named, Field(discriminator="kind")],
    st.sampled_from(['{"kind":"a","size":5}', '{"kind":"a"}', '{"kind":"b"}', '{"kind":"c"}', '{"size":5}'])
    | st.uuids().map(lambda id_: f'{{"kind":"b","name":"{id_}"}}'),
    lambda value: {
        "kind": value["kind"],
        "size": whole(value["size"]) if "size" in value else None,
        "name": str(value["name"]) if value.get("name") else None,
    },
)


def refuse_equal_neighbours(self: Any) -> Any:
    values = [str(value) for value in self.__dict__.values()]
    if any(one == other != "None" for one, other in pairwise(values)):
        raise ValueError("two neighbours are equal")
    return self


@st.composite
def models(draw: st.DrawFn, plain_only: bool, depth: int = 2) -> Kind:
    """A model with fields of any kind, or those that need no objects; a body may lack some or have them twice."""
    config = ConfigDict(
        extra=draw(st.sampled_from(["ignore", "forbid", "allow"])),
        strict=draw(st.integers(0, 3)) == 0,
        str_strip_whitespace=draw(st.booleans()),
        validate_by_name=draw(st.booleans()),
    )
    fields: dict[str, Any] = {}
    parts: list[tuple[str, st.SearchStrategy[str]]] = []
    arrive: dict[str, Callable[[Any], Any]] = {}
    for at in range(draw(st.integers(1, 4))):
        kind = draw(kinds(plain_only, depth))
        name, alias = f"f{at}", draw(st.sampled_from([None, f"Key{at}"]))
        default = draw(st.booleans())
        annotation = (kind.annotation | None) if default else kind.annotation
        fields[name] = (annotation, Field(None if default else ..., alias=alias))
        parts.append((alias or name, kind.texts))
        arrive[name] = or_null(kind.arrives)
    checks: dict[str, Any] = {}
    if not plain_only and draw(st.integers(0, 4)) == 0:
        checks["equal"] = model_validator(mode="after")(refuse_equal_neighbours)
    model = create_model(f"M{depth}", __config__=config, __validators__=checks, **fields)
    return Kind(model, _bodies(parts), lambda dumped: {name: arrive[name](dumped[name]) for name in arrive})


def kinds(plain_only: bool, depth: int) -> st.SearchStrategy[Kind]:
    leaves = st.sampled_from(PLAIN if plain_only else LEAVES)
    if depth == 0:
        return leaves
    inner = st.deferred(lambda: kinds(plain_only, depth - 1))
    found = [leaves, leaves.map(optional), inner.map(array), inner.map(mapping), models(plain_only, depth - 1)]
    return st.one_of(*found) if plain_only else st.one_of(*found, st.just(VARIANTS), st.just(array(VARIANTS)))


@st.composite
def _bodies(draw: st.DrawFn, parts: list[tuple[str, st.SearchStrategy[str]]]) -> str:
    fields = [(key, draw(value)) for key, value in parts]
    change = draw(st.integers(0, 20))
    if change < 3:
        fields[change % len(fields)] = (fields[change % len(fields)][0], draw(hostile))
    elif change == 3:
        fields.pop()
    elif change == 4:
        fields.append((fields[0][0], draw(hostile)))
    elif change == 5:
        fields.append(("unknown", draw(hostile)))
    return "{" + ",".join(f'"{key}":{value}' for key, value in fields) + "}"


def expected(kind: Kind, body: str) -> Any:
    """The payload, or None where the message has to fail."""
    try:
        return kind.arrives(kind.annotation.model_validate_json(body).model_dump())
    except (ValidationError, Unheld):
        return None


def normal(value: Any) -> Any:
    """The same for equal values: NaN equals itself, 1.5 is 1.50."""
    if isinstance(value, dict):
        return {key: normal(part) for key, part in value.items()}
    if isinstance(value, list):
        return [normal(part) for part in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else repr(value)
    return value.normalize() if isinstance(value, Decimal) else value


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_parsed_body_equals_the_dumped_model_alone_and_in_a_batch(data):
    plain_only = data.draw(st.booleans())
    kind = data.draw(models(plain_only))
    bodies = data.draw(st.lists(kind.texts, min_size=1, max_size=6))
    parser = BodyParser(kind.annotation)
    assert (plain_validator(kind.annotation.__pydantic_core_schema__) is not None) >= plain_only
    together = parser.parse(pa.array([body.encode() for body in bodies], pa.binary()))
    together.payload.validate(full=True)
    for at, body in enumerate(bodies):
        row = plain(together.payload[at])
        assert normal(row) == normal(expected(kind, body)), body
        assert (row is None) == (at in together.problems)
        alone = parser.parse(pa.array([body.encode()], pa.binary()))
        assert normal(plain(alone.payload[0])) == normal(row)
        assert alone.problems.get(0) == together.problems.get(at)
    assert {problem.error_type for problem in together.problems.values()} <= {UNREADABLE_BODY}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60) | hostile.map(str.encode) | st.text(max_size=30).map(str.encode), max_size=5))
def test_no_body_raises_an_error(bodies):
    found = BodyParser("a decimal(5,2), b array<timestamp>, c map<string,binary>").parse(pa.array(bodies, pa.binary()))
    assert [at for at, row in enumerate(found.payload) if not row.is_valid] == sorted(found.problems)


@settings(max_examples=200, deadline=None)
@given(
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**15), max_value=10**15),
    st.sampled_from(["{}", "{}00", "[{}]", '{{"a":{}}}', '{{"a":[{}, 1.5]}}']),
)
def test_every_digit_of_a_number_reaches_a_decimal(number, shape):
    model = create_model("M", f=Decimal | list[Decimal] | dict[str, Decimal | list[Decimal]])
    column = BodyParser(create_model("N", f=(Decimal, 0), g=list[model], h=float))
    text = shape.format(number)
    found = column.parse(pa.array([f'{{"f":{number},"g":[{{"f":{text}}}],"h":{number}}}'.encode()]))
    row = plain(found.payload[0])
    assert row["f"] == number
    assert row["h"] == float(number)
    inner = json.loads(row["g"][0]["f"])
    while isinstance(inner, dict | list):
        inner = inner["a"] if isinstance(inner, dict) else inner[0]
    assert Decimal(inner) == number
