"""Models in all their forms: long numbers, rules and code of their own, and parsers that are pickled."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    create_model,
    field_validator,
    model_validator,
)
from pyspark import cloudpickle
from pyspark.sql.types import LongType, StructField, StructType

from queue_pipeline.defs.orders import OrderPlaced
from queue_pipeline.processing.body.parse import CHUNK_MESSAGES, BodyParser, body_parser
from queue_pipeline.processing.body.plain_models import plain_validator
from queue_pipeline_tests.support.processing.bodies import payload, problem
from queue_pipeline_tests.support.processing.body_models import Line, one_field
from tools.example.samples import samples


class Pay(BaseModel):
    kind: Literal["pay"]
    amount: Decimal


class Tell(BaseModel):
    kind: Literal["tell"]
    amount: str


class Tree(BaseModel):
    amount: Decimal
    parts: dict[str, Tree] = {}


LONG = "12345678901234567.89"


EXACT: list[tuple[Any, str, Any]] = [
    (Decimal, LONG, Decimal(LONG)),
    (Decimal | None, LONG, Decimal(LONG)),
    (Decimal, "0.300000000000000001", Decimal("0.300000000000000001")),
    (Annotated[Decimal, Field(gt=0, max_digits=19, decimal_places=2)], LONG, Decimal(LONG)),
    (Annotated[Decimal, Field(strict=True)], LONG, Decimal(LONG)),
    (Annotated[Decimal, AfterValidator(lambda value: -value)], LONG, -Decimal(LONG)),
    (list[Decimal], f"[1, {LONG} ]", [1, Decimal(LONG)]),
    (dict[str, list[Decimal]], f'{{"a":[{LONG}]}}', {"a": [Decimal(LONG)]}),
    (tuple[Decimal, ...], f"[{LONG}]", [Decimal(LONG)]),
    (tuple[Decimal, Decimal], f"[1,{LONG}]", [1, Decimal(LONG)]),
    (Pay | None, f'{{"kind":"pay","amount":{LONG}}}', {"kind": "pay", "amount": Decimal(LONG)}),
    (Pay | list[int], f'{{"kind":"pay","amount":{LONG}}}', f'{{"kind":"pay","amount":"{LONG}"}}'),
    (Annotated[Pay | Tell, Field(discriminator="kind")], f'{{"kind":"pay","amount":{LONG}}}', None),
    (Tree, f'{{"amount":1,"parts":{{"x":{{"amount":{LONG}}}}}}}', None),
    (float, LONG, float(LONG)),
    (Any, LONG, "1.2345678901234568e+16"),
    (Decimal | str, LONG, '"12345678901234568"'),
    (Annotated[Decimal, BeforeValidator(lambda value: value + 1.0)], LONG, Decimal(str(float(LONG) + 1.0))),
]


@pytest.mark.parametrize(("annotation", "text", "value"), EXACT, ids=lambda part: str(part)[:50])
def test_a_long_number_reaches_a_decimal_exactly(annotation, text, value):
    schema = create_model("M", f=annotation, d=(Decimal, Decimal(0)), n=(Any, None))
    body = f'{{"n":[1.5,"\\ud83d\\ude00",{LONG}],"f":{text}}}'
    found = payload(schema, body)
    assert found["n"] == '[1.5,"😀",1.2345678901234568e+16]'
    if value is None:
        assert f'"amount":"{LONG}"' in str(found["f"])
    else:
        assert found["f"] == value


def test_a_long_number_reaches_a_decimal_by_any_of_its_names():
    class M(BaseModel):
        model_config = ConfigDict(validate_by_name=True, strict=True, extra="forbid")
        price: Decimal = Field(validation_alias=AliasChoices("Price", AliasPath("Amounts", 1)))
        name: str = "x"

    assert payload(M, f'{{"Price":{LONG}}}')["price"] == Decimal(LONG)
    assert payload(M, f'{{"price":{LONG}}}')["price"] == Decimal(LONG)

    class N(M):
        model_config = ConfigDict(extra="ignore")

    assert payload(N, f'{{"Amounts":[0,{LONG}]}}')["price"] == Decimal(LONG)


def test_a_number_too_small_for_a_double_is_not_taken_for_zero():
    assert problem(one_field(Decimal), '{"f":1e-400}') == "f: Rescaling Decimal value would cause data loss"


def test_a_long_number_is_exact_in_ddl_too():
    assert payload("f decimal(19,2)", f'{{"f":{LONG}}}') == {"f": Decimal(LONG)}
    assert "no more than 1 decimal place" in problem("f decimal(19,1)", f'{{"f":{LONG}}}')


def test_a_body_with_a_long_number_and_another_fault_says_so():
    schema = create_model("M", d=Decimal, i=int)
    assert problem(schema, f'{{"d":{LONG},"i":"x"}}').startswith("i: Input should be a valid integer")
    assert problem(schema, f'{{"d":{LONG},"i":1').startswith("Invalid JSON")
    assert payload(schema, f'{{"d":1,"d":{LONG},"i":1}}')["i"] == 1


class Checked(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    first: int = Field(alias="First")
    last: int = Field(validation_alias="Last")

    @field_validator("first")
    @classmethod
    def positive(cls, value: int) -> int:
        if value < 0:
            raise ValueError("must not be negative")
        return value

    @model_validator(mode="after")
    def ordered(self) -> Self:
        if self.last < self.first:
            raise ValueError("last lies before first")
        return self

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, data: Any) -> Any:
        return {("First" if key == "From" else key): value for key, value in data.items()}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"First":-1,"Last":2}', "First: Value error, must not be negative (given: -1)"),
        ('{"First":3,"Last":2}', "Value error, last lies before first (given: an object)"),
        ('{"First":"1","Last":2}', "First: Input should be a valid integer (given: '1')"),
        ('{"First":1,"Last":2,"More":3}', "More: Extra inputs are not permitted (given: 3)"),
    ],
)
def test_a_model_is_used_with_all_its_rules(body, words):
    assert payload(Checked, '{"From":1,"Last":2}') == {"first": 1, "last": 2}
    assert problem(Checked, body) == words


class Private(BaseModel):
    a: int
    _seen: int = PrivateAttr(0)


class Initialised(BaseModel):
    a: int

    def model_post_init(self, context: Any) -> None:
        self.a += 1


class Made(BaseModel):
    a: int

    def __init__(self, **values: Any) -> None:
        super().__init__(a=values["a"] * 2)


class WithDefault(BaseModel):
    line: Line = Line(Sku="x", Quantity=1)


@pytest.mark.parametrize(
    ("schema", "body", "row"),
    [
        (Private, '{"a":1}', {"a": 1}),
        (Initialised, '{"a":1}', {"a": 2}),
        (Made, '{"a":1}', {"a": 2}),
        (WithDefault, "{}", {"line": {"Sku": "x", "Quantity": 1, "Price": Decimal("1.5")}}),
        (one_field(Annotated[int, AfterValidator(abs)]), '{"f":-1}', {"f": 1}),
    ],
)
def test_a_model_with_code_of_its_own_is_validated_as_an_object(schema, body, row):
    assert plain_validator(schema.__pydantic_core_schema__) is None
    assert payload(schema, body) == row


def test_a_model_without_code_of_its_own_is_validated_without_objects():
    for model in (OrderPlaced, Line, create_model("M", f=(dict[str, list[Decimal | None]], {}))):
        assert plain_validator(model.__pydantic_core_schema__) is not None


def test_bodies_keep_their_places_over_chunks():
    bodies = [sample.message.body for sample in samples(3 * CHUNK_MESSAGES + 7, bad=0.1, seed=1)]
    column = pa.chunked_array([pa.array(bodies[:301]), pa.array([], pa.binary()), pa.array(bodies[301:])])
    found = BodyParser(OrderPlaced).parse(column.slice(3))
    alone = [BodyParser(OrderPlaced).parse(pa.array([body])) for body in bodies[3:]]
    assert [row.as_py() for row in found.payload] == [one.payload[0].as_py() for one in alone]
    assert found.problems == {at: one.problems[0] for at, one in enumerate(alone) if one.problems}
    assert len(found.problems) > 20


def test_no_bodies_have_no_payloads():
    found = BodyParser("a int").parse(pa.array([], pa.binary()))
    assert (len(found.payload), found.problems) == (0, {})
    assert found.payload.type == BodyParser("a int").payload_type


def test_a_parser_travels_as_its_schema():
    struct = StructType([StructField("a", LongType(), nullable=False)])
    for schema in ("a bigint NOT NULL", struct, OrderPlaced):
        copy = pickle.loads(pickle.dumps(body_parser(schema)))
        assert copy is body_parser(schema)


def test_a_model_of_a_function_travels_by_value():
    class Inner(BaseModel):
        b: int

    class M(BaseModel):
        a: Inner

        @field_validator("a")
        @classmethod
        def check(cls, value: Inner) -> Inner:
            if value.b == 2:
                raise ValueError("two is refused")
            return value

    sent = cloudpickle.dumps(BodyParser(M))
    found = cloudpickle.loads(sent).parse(pa.array([b'{"a":{"b":1}}', b'{"a":{"b":2}}']))
    assert found.payload[0].as_py() == {"a": {"b": 1}}
    assert found.problems[1].message == "a: Value error, two is refused (given: an object)"
