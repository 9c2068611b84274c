"""Which columns the fields of a pydantic model become."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import ipaddress
import pathlib
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pyarrow as pa
import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    HttpUrl,
    Json,
    NaiveDatetime,
    PlainSerializer,
    RootModel,
    SecretStr,
    computed_field,
    create_model,
    field_serializer,
    model_serializer,
)
from pyspark.sql.pandas.types import from_arrow_type
from typing_extensions import TypedDict

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.body.parse import BodyParser
from queue_pipeline.processing.body.schema import check_body_schema
from queue_pipeline_tests.support.processing.bodies import payload, problem

ID = "0c0a9d0a-8d5c-4c5a-9a57-3f2d6a4c1e11"
UTC = dt.UTC


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Node(BaseModel):
    value: int
    next: Node | None = None
    others: list[Node] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Size(TypedDict, total=False):
    width: int


class Pair(NamedTuple):
    a: int
    b: str


class Card(BaseModel):
    kind: Literal["card"]
    number: str
    limit: int


class Cash(BaseModel):
    kind: Literal["cash"]
    number: UUID | None = None
    coins: list[int]


class Voucher(BaseModel):
    kind: Literal["voucher"]
    limit: str


class Numbers(RootModel[list[int]]):
    pass


def one_field(annotation: Any, default: Any = ...) -> type[BaseModel]:
    return create_model("M", f=(annotation, default))


def column(annotation: Any, default: Any = ...) -> pa.Field:
    return BodyParser(one_field(annotation, default)).payload_type.field(0)


def listed(type_: pa.DataType, nullable: bool = False) -> pa.DataType:
    return pa.list_(pa.field("element", type_, nullable))


def mapped(key: Any, value: pa.DataType) -> pa.DataType:
    item: Any = pa.field("value", value, nullable=False)
    return pa.map_(key, item)


S, L = pa.string(), pa.int64()
COLUMNS: list[tuple[Any, pa.DataType, str, Any]] = [
    (str, S, '"ä"', "ä"),
    (int, L, "5", 5),
    (float, pa.float64(), "5", 5.0),
    (bool, pa.bool_(), "true", True),
    (bytes, pa.binary(), '"hi"', b"hi"),
    (Decimal, pa.decimal128(38, 18), "1.5", Decimal("1.5")),
    (Annotated[Decimal, Field(max_digits=5, decimal_places=2)], pa.decimal128(5, 2), "1.5", Decimal("1.50")),
    (Annotated[Decimal, Field(decimal_places=2)], pa.decimal128(38, 2), "1.5", Decimal("1.50")),
    (Annotated[Decimal, Field(max_digits=5)], pa.decimal128(38, 18), "0.00001", Decimal("0.00001")),
    (dt.datetime, pa.timestamp("us", "UTC"), '"2024-01-01T02:00:00+02:00"', dt.datetime(2024, 1, 1, tzinfo=UTC)),
    (dt.datetime, pa.timestamp("us", "UTC"), '"2024-01-01T00:00:00"', dt.datetime(2024, 1, 1, tzinfo=UTC)),
    (NaiveDatetime, pa.timestamp("us"), '"2024-01-01T00:00:00"', dt.datetime(2024, 1, 1)),
    (dt.date, pa.date32(), '"2024-01-01"', dt.date(2024, 1, 1)),
    (dt.timedelta, pa.duration("us"), '"PT1H"', dt.timedelta(hours=1)),
    (dt.time, S, '"12:30"', "12:30:00"),
    (UUID, S, f'"{ID.upper()}"', ID),
    (HttpUrl, S, '"http://example.com"', "http://example.com/"),
    (pathlib.Path, S, '"/a/b"', "/a/b"),
    (ipaddress.IPv4Address, S, '"1.2.3.4"', "1.2.3.4"),
    (SecretStr, S, '"hidden"', "**********"),
    (ByteSize, L, '"1kB"', 1000),
    (Json[list[int]], listed(L), '"[1]"', [1]),
    (Colour, S, '"red"', "red"),
    (Level, L, "1", 1),
    (Literal["a", "b"], S, '"a"', "a"),
    (Literal[1, 2], L, "2", 2),
    (list[int], listed(L), "[1,2]", [1, 2]),
    (list[int | None], listed(L, nullable=True), "[1,null]", [1, None]),
    (Sequence[int], listed(L), "[1,2]", [1, 2]),
    (set[int], listed(L), "[1,1]", [1]),
    (frozenset[Colour], listed(S), '["red"]', ["red"]),
    (tuple[int, ...], listed(L), "[1,2]", [1, 2]),
    (tuple[UUID, UUID], listed(S), f'["{ID}","{ID}"]', [ID, ID]),
    (dict[str, int], mapped(S, L), '{"a":1}', {"a": 1}),
    (dict[int, Colour], mapped(L, S), '{"1":"red"}', {1: "red"}),
    (dict[UUID, int | None], pa.map_(S, L), f'{{"{ID}":null}}', {ID: None}),
    (Point, pa.struct([pa.field("x", L, False), pa.field("y", L, False)]), '{"x":1}', {"x": 1, "y": 0}),
    (Size, pa.struct([pa.field("width", L)]), "{}", {"width": None}),
    (Numbers, listed(L), "[1]", [1]),
    (str | UUID, S, f'"{ID}"', ID),
    (Annotated[int, AfterValidator(abs)], L, "-3", 3),
    (Annotated[int, PlainSerializer(str, return_type=str)], S, "3", "3"),
    (Annotated[int, PlainSerializer(str, when_used="json")], L, "3", 3),
]
JSON_TEXTS: list[tuple[Any, str, Any]] = [
    (Any, '{"a": [1, null, 1.50]}', '{"a":[1,null,1.5]}'),
    (Any, '"text"', '"text"'),
    (Any, "null", None),
    (object, "[]", "[]"),
    (int | str, '"5"', '"5"'),
    (int | str | None, "5", "5"),
    (int | str | None, "null", None),
    (list[int] | int, "[1]", "[1]"),
    (Mixed, '"two"', '"two"'),
    (Literal["a", 1], "1", "1"),
    (tuple[int, str], '[1,"a"]', '[1,"a"]'),
    (Pair, '[1,"a"]', '[1,"a"]'),
    (dict[str, Any] | list[Any], "{}", "{}"),
    (dict, '{"a":1}', '{"a":1}'),
    (UUID | int, f'"{ID}"', f'"{ID}"'),
    (Annotated[int, PlainSerializer(lambda value: [value])], "3", "[3]"),
]


@pytest.mark.parametrize(("annotation", "type_", "text", "value"), COLUMNS, ids=lambda part: str(part)[:40])
def test_a_field_becomes_a_column_of_its_type(annotation, type_, text, value):
    assert column(annotation) == pa.field("f", type_, nullable=False)
    assert column(annotation | None if isinstance(annotation, type) else annotation, None).nullable
    assert payload(one_field(annotation), f'{{"f":{text}}}') == {"f": value}
    from_arrow_type(type_, prefer_timestamp_ntz=True)


@pytest.mark.parametrize(("annotation", "text", "value"), JSON_TEXTS, ids=lambda part: str(part)[:40])
def test_a_field_without_a_type_in_spark_arrives_as_json_text(annotation, text, value):
    assert column(annotation) == pa.field("f", pa.string())
    assert payload(one_field(annotation), f'{{"f":{text}}}') == {"f": value}


def test_a_list_of_anything_has_json_texts():
    assert payload(one_field(list[Any]), '{"f":[1,"a",null]}') == {"f": ["1", '"a"', None]}


def test_a_model_inside_itself_is_json_text():
    body = '{"value":1,"next":{"value":2},"others":[{"value":3}]}'
    inner = '{"value":%d,"next":null,"others":[]}'
    assert payload(Node, body) == {"value": 1, "next": inner % 2, "others": [inner % 3]}


def test_the_models_of_a_union_share_a_struct():
    schema = one_field(Annotated[Card | Cash, Field(discriminator="kind")])
    assert payload(schema, '{"f":{"kind":"card","number":"12","limit":5}}') == {
        "f": {"kind": "card", "number": "12", "limit": 5, "coins": None}
    }
    assert payload(schema, f'{{"f":{{"kind":"cash","number":"{ID}","coins":[1]}}}}') == {
        "f": {"kind": "cash", "number": ID, "limit": None, "coins": [1]}
    }
    assert "'card', 'cash'" in problem(schema, '{"f":{"kind":"gold"}}')


def test_models_of_a_union_that_disagree_about_a_field_are_json_text():
    schema = one_field(Annotated[Card | Voucher, Field(discriminator="kind")])
    assert payload(schema, '{"f":{"kind":"voucher","limit":"x"}}') == {"f": '{"kind":"voucher","limit":"x"}'}


def test_the_whole_body_can_be_a_union_of_models():
    schema = RootModel[Annotated[Card | Cash, Field(discriminator="kind")]]
    assert payload(schema, '{"kind":"cash","coins":[]}') == {"kind": "cash", "number": None, "limit": None, "coins": []}


def test_columns_have_python_names_and_are_read_from_aliases():
    class M(BaseModel):
        model_config = ConfigDict(serialize_by_alias=True)
        order_id: str = Field(alias="OrderId")
        hidden: str = Field("x", exclude=True)

    assert payload(M, '{"OrderId":"a"}') == {"order_id": "a"}


def test_computed_fields_are_columns():
    class M(BaseModel):
        price: int
        owner: UUID

        @computed_field
        def double(self) -> int:
            return 2 * self.price

        @computed_field
        def who(self) -> UUID:
            return self.owner

    assert payload(M, f'{{"price":2,"owner":"{ID}"}}') == {"price": 2, "owner": ID, "double": 4, "who": ID}


def test_serializers_decide_what_a_column_holds():
    class Inner(BaseModel):
        a: int

        @model_serializer
        def write(self) -> dict[str, int]:
            return {"twice": 2 * self.a}

    class M(BaseModel):
        at: dt.datetime
        inner: Inner

        @field_serializer("at")
        def year(self, at: dt.datetime) -> int:
            return at.year

    assert payload(M, '{"at":"2024-01-01T00:00:00Z","inner":{"a":2}}') == {"at": 2024, "inner": {"twice": 4}}


class Nothing(BaseModel):
    pass


class Undefined(BaseModel):
    f: Missing  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (Nothing, "Nothing has no fields; declare at least one"),
        (one_field(list[Nothing]), r"M.f\[\] has no fields"),
        (Numbers, "Numbers has no fields that could become columns"),
        (RootModel[int], "has no fields that could become columns"),
        (create_model("M", a=(int, 1), A=(int, 2)), "M has two fields named a"),
        (one_field(Annotated[Decimal, Field(max_digits=40)]), "M.f has more than 38 digits"),
        (one_field(Iterable[int]), r"M.f is an iterator; use list"),
        (one_field(set[Point]), r"M.f is a set of struct.*; use list"),
        (Undefined, "model Undefined is not complete.*define the types"),
        (Nothing(), "is not usable"),
    ],
)
def test_a_model_that_cannot_work_is_refused_when_it_is_declared(schema, words):
    with pytest.raises(ConfigurationError, match=words):
        check_body_schema(schema)
