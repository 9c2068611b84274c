"""Bodies declared with a pydantic model: Spark's verdict beside pydantic's own."""

from __future__ import annotations

import datetime as dt
import enum
import json
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import (
    BaseModel,
    Field,
    PositiveInt,
    ValidationError,
)
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body.model import model_shape
from queue_pipeline.processing.body.schema import parse_body
from queue_pipeline.processing.body.shape import record_type
from queue_pipeline_tests.support.bodies import outcomes


class Status(enum.StrEnum):
    OPEN = "open"
    CLOSED = "it's closed"


class Line(BaseModel):
    sku: str = Field(alias="Sku", min_length=2, max_length=5, pattern=r"^[A-Z]\w+$")
    quantity: int = Field(alias="Quantity", gt=0, multiple_of=2)
    price: Decimal | None = Field(None, max_digits=6, decimal_places=2, ge=0)
    note: str = "none's"


class Order(BaseModel):
    id: UUID = Field(alias="OrderId")
    status: Status = Status.OPEN
    kind: Literal["a", "b"] | None = None
    total: float = Field(0.5, lt=100, allow_inf_nan=False)
    amount: Decimal = Decimal("1.5")
    paid: bool = False
    at: dt.datetime | None = None
    due: dt.date = Field(dt.date(2024, 1, 1), ge=dt.date(2020, 1, 1))
    lines: list[Line] = Field(default_factory=list, max_length=2)
    codes: Optional[list[Annotated[PositiveInt, Field(le=9)]]] = None  # noqa: UP045
    stock: dict[str, int | None] = {}
    first: Line | None = None


ID = "0c0a9d0a-8d5c-4c5a-9a57-3f2d6a4c1e11"
LINE = '{"Sku":"Ab","Quantity":2}'


def model(fields: str = "") -> str:
    return f'{{"OrderId":"{ID}"' + ("," + fields if fields else "") + "}"


# Spark's verdict and pydantic's are the same on these.
SAME: list[str] = [
    model(),
    "{}",
    "[]",
    "null",
    "",
    "nonsense",
    model() + "x",
    '{"OrderId":null}',
    '{"OrderId":"abc"}',
    f'{{"id":"{ID}"}}',
    f'{{"OrderId":"{ID.replace("-", "")}"}}',
    f'{{"OrderId":"{{{ID}}}"}}',
    f'{{"OrderId":"urn:uuid:{ID.upper()}"}}',
    f'{{"OrderId":"{ID}\\n"}}',
    model('"status":"open"'),
    model('"status":"it\'s closed"'),
    model('"status":"Open"'),
    model('"kind":"a"'),
    model('"kind":"c"'),
    model('"kind":null'),
    model('"total":99.9'),
    model('"total":100'),
    model('"total":NaN'),
    model('"total":-1e400'),
    model('"total":"x"'),
    model('"amount":12.345678901234567890'[:26]),
    model('"amount":"12.5"'),
    model('"amount":"twelve"'),
    model('"amount":true'),
    model('"paid":true'),
    model('"paid":"maybe"'),
    model('"paid":[]'),
    model('"at":"2024-05-31T12:00:00.1234567Z"'),
    model('"at":"2024-05-31T12:00:00+02:00"'),
    model('"at":"2024-05-31 12:00"'),
    model('"at":"2024-13-31T12:00:00Z"'),
    model('"at":"soon"'),
    model('"at":"12:30"'),
    model('"at":1717156800'),
    model('"due":"2024-05-31"'),
    model('"due":"2019-12-31"'),
    model('"due":"31.5.2024"'),
    model('"lines":[]'),
    model(f'"lines":[{LINE}]'),
    model(f'"lines":[{LINE},{LINE},{LINE}]'),
    model('"lines":[null]'),
    model('"lines":[{}]'),
    model('"lines":{}'),
    model('"lines":[{"Sku":"A","Quantity":2}]'),
    model('"lines":[{"Sku":"Abcdef","Quantity":2}]'),
    model('"lines":[{"Sku":"abc","Quantity":2}]'),
    model('"lines":[{"Sku":"Aé","Quantity":2}]'),
    model('"lines":[{"Sku":"Ab\\n","Quantity":2}]'),
    model('"lines":[{"Sku":"Ab","Quantity":0}]'),
    model('"lines":[{"Sku":"Ab","Quantity":3}]'),
    model('"lines":[{"Sku":"Ab","Quantity":2,"price":1.25}]'),
    model('"lines":[{"Sku":"Ab","Quantity":2,"price":1.255}]'),
    model('"lines":[{"Sku":"Ab","Quantity":2,"price":12345.5}]'),
    model('"lines":[{"Sku":"Ab","Quantity":2,"price":-0.01}]'),
    model('"codes":[1,9]'),
    model('"codes":[1,10]'),
    model('"codes":[0]'),
    model('"codes":[1,null]'),
    model('"codes":null'),
    model('"stock":{"a":1,"b":null}'),
    model('"stock":{"a":"x"}'),
    model('"stock":[]'),
    model(f'"first":{LINE}'),
    model('"first":{"Sku":"Ab"}'),
    model('"first":[]'),
    model('"unknown":{"x":1}'),
]

# Where they differ on purpose: body, and whether Spark takes it (pydantic does the opposite).
DIFFERENT: dict[str, bool] = {
    # Other notations of a value are refused.
    model('"codes":["1"]'): False,
    model('"codes":[1.0]'): False,
    model('"total":"1.5"'): False,
    model('"paid":"yes"'): False,
    model('"paid":1'): False,
    model('"at":"2024-05-31"'): False,
    model('"at":1717156800000'): False,
    model('"at":1717156800.5'): False,
    model('"due":"2024-05-31T00:00:00"'): False,
    model('"due":1717113600'): False,
    # Spark's integers have 64 bits, its decimals 38 digits.
    model('"stock":{"a":99999999999999999999}'): False,
    model('"amount":123456789012345678901234'): False,
    # A key that is there twice.
    model('"stock":{"a":1,"a":2}'): False,
    model('"total":"x","total":1'): False,
    # Text takes any JSON value, as its JSON text.
    model('"lines":[{"Sku":"Ab","Quantity":2,"note":12}]'): True,
    # Spark does not tell null from absent, so a default stands for both.
    model('"paid":null'): True,
    model('"lines":null'): True,
    # Half a surrogate pair becomes a question mark.
    model('"lines":[{"Sku":"Ab","Quantity":2,"note":"\\ud800"}]'): True,
    "\ufeff" + model(): True,
}

TOKENS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.sampled_from(["", "a", "Abc", "open", ID, "2024-05-31T12:00:00Z", "x y"]),
)
JSON = st.recursive(
    TOKENS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["Sku", "Quantity", "k"]), inner),
)
GENERATED = st.fixed_dictionaries(
    {"OrderId": st.one_of(st.just(ID), st.just(ID), st.just(ID), TOKENS)},
    optional={
        "status": st.sampled_from(["open", "open", "it's closed", "shut"]),
        "kind": st.one_of(st.sampled_from(["a", "b", None]), JSON),
        "codes": st.one_of(st.lists(st.integers(1, 9), max_size=3), st.lists(st.integers(-2, 12), max_size=3), JSON),
        "first": st.fixed_dictionaries(
            {"Quantity": st.integers(-1, 4)}, optional={"Sku": st.from_regex(r"\A[A-B]\w{0,5}\Z")}
        ),
        "stock": st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.integers(-5, 5)), max_size=3),
    },
)


def generated() -> list[str]:
    """Bodies for one action; those that pydantic reads by a notation which Spark refuses are left out."""
    bodies: list[str] = []

    @settings(max_examples=150, deadline=None, derandomize=True, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(GENERATED)
    def collect(body: dict[str, Any]) -> None:
        loose = [body.get("codes"), body.get("status", "")]
        if not any(isinstance(x, bool | str) for x in loose[0] or [] if isinstance(loose[0], list)):
            bodies.append(json.dumps(body))

    collect()
    return bodies


def pydantic_takes(body: str) -> bool:
    try:
        Order.model_validate_json(body)
    except ValidationError:
        return False
    return True


@pytest.fixture(scope="module")
def model_outcomes(spark: SparkSession) -> dict[str, Any]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    bodies = [*SAME, *DIFFERENT, *generated()]
    return dict(zip(bodies, outcomes(spark, Order, bodies), strict=True))


@pytest.mark.parametrize("body", SAME)
def test_spark_and_pydantic_agree(body, model_outcomes):
    assert isinstance(model_outcomes[body], Row) == pydantic_takes(body), model_outcomes[body]


@pytest.mark.parametrize("body", DIFFERENT)
def test_spark_and_pydantic_differ_where_documented(body, model_outcomes):
    assert (isinstance(model_outcomes[body], Row), pydantic_takes(body)) == (DIFFERENT[body], not DIFFERENT[body])


def test_spark_and_pydantic_agree_on_generated_bodies(model_outcomes):
    bodies = [body for body in model_outcomes if body not in SAME and body not in DIFFERENT]
    wrong = [(b, model_outcomes[b]) for b in bodies if isinstance(model_outcomes[b], Row) != pydantic_takes(b)]
    assert wrong == []
    verdicts = [isinstance(model_outcomes[body], Row) for body in bodies]
    assert len(bodies) > 50 and 5 < sum(verdicts) < len(bodies) - 5


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ('"total":100', "total is 100, must be less than 100"),
        ('"total":NaN', "total is NaN, must be less than 100"),
        ('"kind":"c"', 'kind is "c", must be one of a, b'),
        ('"lines":[{"Sku":"Ab","Quantity":0}]', "lines[0].Quantity is 0, must be greater than 0"),
        ('"lines":[{"Sku":"A","Quantity":2}]', 'lines[0].Sku is "A", must be at least 2 characters long'),
        (f'"lines":[{LINE},{LINE},{LINE}]', "lines is 3 items long, must be at most 2 items long"),
        ('"due":"2019-12-31"', "due is 2019-12-31, must be greater than or equal to 2020-01-01"),
        ('"codes":[1,10]', "codes[1] is 10, must be less than or equal to 9"),
        ('"stock":{"a":"x"}', 'stock["a"] is "x", not a whole number of 64 bits in plain digits'),
        ('"first":{"Sku":"Ab"}', "first.Quantity is missing or null"),
    ],
)
def test_a_constraint_is_named_with_the_value_that_violates_it(fields, problem, model_outcomes):
    assert model_outcomes[model(fields)] == problem


def test_defaults_and_python_names_are_in_the_payload(model_outcomes):
    expected = Order.model_validate_json(model()).model_dump() | {"id": ID, "status": "open"}
    assert model_outcomes[model()].asDict(recursive=True) == expected
    line = model_outcomes[model(f'"lines":[{LINE}]')].lines[0]
    assert line.asDict() == {"sku": "Ab", "quantity": 2, "price": None, "note": "none's"}


def test_the_payload_has_the_type_that_the_model_has(spark):
    frame = spark.createDataFrame([(model().encode(),)], "body binary")
    payload = frame.select(parse_body(Order, F.col("body")).payload.alias("p")).schema["p"].dataType
    declared = record_type(model_shape(Order))
    assert payload.simpleString() == declared.simpleString()
    assert not declared["id"].nullable and declared["at"].nullable
