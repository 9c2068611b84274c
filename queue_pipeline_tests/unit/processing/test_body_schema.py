"""Bodies are parsed by a real Spark; all bodies of a schema go through it in one action."""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, VariantType

from queue_pipeline.processing.body.checks import java_pattern
from queue_pipeline.processing.body.ddl import parse_ddl
from queue_pipeline.processing.body.schema import BodySchema, check_body_schema, parse_body, spark_type, with_payload
from queue_pipeline.transport.errors import ConfigurationError


def outcomes(spark: SparkSession, schema: BodySchema, bodies: Sequence[bytes | str | None]) -> list[Any]:
    """For each body its problem, or its payload when it has none."""
    rows = [(i, b.encode() if isinstance(b, str) else b) for i, b in enumerate(bodies)]
    frame = spark.createDataFrame(rows, "id long, body binary")
    parsed = parse_body(schema, F.col("body"))
    told = with_payload(frame, schema).withColumnRenamed("payload", "quick")
    found = told.select(
        "id", "quick", "fits", parsed.payload.alias("payload"), parsed.problem.alias("problem")
    ).collect()
    assert all((row.payload is None) != (row.problem is None) for row in found)
    # What every message pays for agrees with the careful reading.
    assert [row.problem for row in found if row.fits is not (row.problem is None)] == []
    assert all(row.quick == row.payload for row in found if row.fits)
    by_id = {row.id: row.problem if row.payload is None else row.payload for row in found}
    return [by_id[i] for i in range(len(bodies))]


# --- DDL -----------------------------------------------------------------------------------------------------------

DDL = (
    "OrderId string NOT NULL, Count int, Price decimal(10,2), At timestamp, Due date, "
    "Lines array<struct<Quantity: bigint NOT NULL, Tags: array<string>>>, Stock map<string,int>, "
    "Customer struct<`first name`: string NOT NULL>, Local timestamp_ntz"
)


def order(fields: str = "") -> str:
    return '{"OrderId":"a"' + ("," + fields if fields else "") + "}"


STARTS = "the body is not one JSON value; it starts with: "
WHEN = "not a date and time such as 2024-05-31T12:00:00Z"
DDL_PROBLEMS: dict[bytes | str | None, str] = {
    None: "the body is empty",
    "": "the body is empty",
    " \r\n\t": "the body is empty",
    "null": "the body is null, not an object",
    "[]": "the body is [], not an object",
    '[{"OrderId":"a"}]': 'the body is [{"OrderId":"a"}], not an object',
    '"text"': 'the body is "text", not an object',
    "12": "the body is 12, not an object",
    "<Order/>": STARTS + "<Order/>",
    "{'OrderId':'a'}": STARTS + "{'OrderId':'a'}",
    '{"OrderId":"a"': STARTS + '{"OrderId":"a"',
    order() + order(): STARTS + order() + order(),
    order() + " junk": STARTS + order() + " junk",
    order() + "]} junk": STARTS + order() + "]} junk",
    order() + "," + order(): STARTS + order() + "," + order(),
    b'{"OrderId":"\xff"}': "the body is not UTF-8 text",
    order('"x":' + "[" * 2000 + "]" * 2000): STARTS + order('"x":' + "[" * 100)[:60] + "…",
    "{}": "OrderId is missing or null",
    '{"OrderId":null}': "OrderId is missing or null",
    '{"orderid":"a"}': "OrderId is missing or null",
    order('"Count":"12"'): 'Count is "12", not a whole number of 32 bits in plain digits',
    order('"Count":3000000000'): "Count is 3000000000, not a whole number of 32 bits in plain digits",
    order('"Count":1.0'): "Count is 1, not a whole number of 32 bits in plain digits",
    order('"Count":""'): 'Count is "", not a whole number of 32 bits in plain digits',
    order('"Count":"x","Count":1'): "a value of the body does not fit the type of its field",
    order('"Price":1.239'): "Price is 1.239, must be a number of at most 2 decimal places",
    order('"Price":99999999.999'): "Price is 99999999.999, must be a number of at most 2 decimal places",
    order('"Price":123456789'): "Price is 123456789, not a decimal number of at most 8 digits before the point",
    order('"At":"12:30"'): f'At is "12:30", {WHEN}',
    order('"At":"2024-05-31"'): f'At is "2024-05-31", {WHEN}',
    order('"At":1700000000000'): "At is +55840-11-08 22:13:20, must be in the years 1 to 9999 "
    "(a number counts seconds since 1970)",
    order('"Due":"2024-02-30"'): 'Due is "2024-02-30", not a date such as 2024-05-31',
    order('"Due":"2024-02-03Tjunk"'): 'Due is "2024-02-03Tjunk", not a date such as 2024-05-31',
    order('"Lines":{}'): "Lines is {}, not an array",
    order('"Lines":[{"Quantity":1},{}]'): "Lines[1].Quantity is missing or null",
    order('"Lines":[{"Quantity":1},null,{"Quantity":"y"}]'): 'Lines[2].Quantity is "y", not a whole number of 64 bits '
    "in plain digits",
    order('"Lines":[{"Quantity":1,"Tags":"x"}]'): 'Lines[0].Tags is "x", not an array',
    order('"Stock":{"a":1,"b":true}'): 'Stock["b"] is true, not a whole number of 32 bits in plain digits',
    order('"Stock":{"a":1,"a":2}'): "Stock is an object that names a key twice, must be one whose keys are distinct",
    order('"Customer":{}'): "Customer.first name is missing or null",
    order(
        '"Local":"2024-05-31T12:00:00Z"'
    ): 'Local is "2024-05-31T12:00:00Z", not a date and time without a time zone, such as 2024-05-31T12:00:00',
}
NOON = dt.datetime(2024, 5, 31, 12)
DDL_PAYLOADS: dict[str, dict[str, Any]] = {
    order(): {"OrderId": "a", "Count": None, "Lines": None},
    "\ufeff" + order(): {"OrderId": "a"},
    " \n" + order() + "\r\n": {"OrderId": "a"},
    '{"OrderId":"a","OrderId":"b","Unknown":{"x":[1]}}': {"OrderId": "b"},
    '{"OrderId":12}': {"OrderId": "12"},
    '{"OrderId":{"a": 1}}': {"OrderId": '{"a":1}'},
    order('"Count":-5,"Price":1.20,"Due":"2024-05-31"'): {"Count": -5, "Price": Decimal("1.20"), "Due": NOON.date()},
    order('"Price":"1.5"'): {"Price": Decimal("1.50")},
    order('"At":"2024-05-31T12:00:00.1234567Z"'): {"At": NOON.replace(microsecond=123456)},
    order('"At":"2024-05-31T14:00:00+02:00"'): {"At": NOON},
    order('"At":"2024-05-31T12:00:00"'): {"At": NOON},
    order('"At":"0001-01-01T00:00:00"'): {"At": dt.datetime(1, 1, 1)},
    order('"At":1717156800'): {"At": NOON},
    order('"Local":"2024-05-31T12:00:00.5"'): {"Local": NOON.replace(microsecond=500000)},
    order('"Lines":[{"Quantity":1,"Tags":["x",null]},null]'): {"Lines": [Row(Quantity=1, Tags=["x", None]), None]},
    order('"Lines":[],"Stock":{}'): {"Lines": [], "Stock": {}},
    order('"Customer":{"first name":"Åsa"}'): {"Customer": Row(**{"first name": "Åsa"})},
}


@pytest.fixture(scope="module")
def ddl_outcomes(spark: SparkSession) -> dict[Any, Any]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    bodies = [*DDL_PROBLEMS, *DDL_PAYLOADS]
    return dict(zip(bodies, outcomes(spark, DDL, bodies), strict=True))


@pytest.mark.parametrize("body", DDL_PROBLEMS, ids=lambda body: repr(body)[:50])
def test_a_bad_body_says_what_is_wrong(body, ddl_outcomes):
    assert ddl_outcomes[body] == DDL_PROBLEMS[body]


@pytest.mark.parametrize("body", DDL_PAYLOADS, ids=lambda body: repr(body)[:50])
def test_a_good_body_becomes_a_payload(body, ddl_outcomes):
    payload = ddl_outcomes[body]
    assert isinstance(payload, Row), payload
    assert {name: payload[name] for name in DDL_PAYLOADS[body]} == DDL_PAYLOADS[body]


def test_elements_that_may_not_be_null_are_found(spark):
    schema = StructType([StructField("Tags", ArrayType(StringType(), containsNull=False))])
    found = outcomes(spark, schema, ['{"Tags":["a",null]}', '{"Tags":["a"]}', "{}"])
    assert found == ["Tags[1] is missing or null", Row(Tags=["a"]), Row(Tags=None)]


DDL_TEXTS = [
    DDL,
    "a int",
    "a: INT, b STRING COMMENT 'it''s'",
    "struct<a:int,b:array<map<string,struct<c:decimal(5)>>>>",
    "a decimal, b numeric(3,1) not null, c dec(4 , 2)",
    "a array< array<int>>, `b``c` real, d smallint, e boolean, f binary, g timestamp_ltz, h float",
]


def test_ddl_is_read_as_spark_reads_it(spark):
    def bare(type_: Any) -> Any:
        return json.loads(re.sub(r'\{"comment":[^}]*\}', "{}", type_.json()))

    assert [bare(parse_ddl(text)) for text in DDL_TEXTS] == [bare(StructType.fromDDL(text)) for text in DDL_TEXTS]


# --- pydantic ------------------------------------------------------------------------------------------------------


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
    assert payload.simpleString() == spark_type(Order).simpleString()
    assert not spark_type(Order)["id"].nullable and spark_type(Order)["at"].nullable


# --- definitions, without Spark --------------------------------------------------------------------------------------


def one_field(annotation: Any, default: Any = ...) -> type[BaseModel]:
    return type("M", (BaseModel,), {"__annotations__": {"f": annotation}, "f": default})


class Validated(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def check_a(cls, value: int) -> int:
        return value


class ModelValidated(BaseModel):
    a: int

    @model_validator(mode="after")
    def check_all(self) -> ModelValidated:
        return self


class Node(BaseModel):
    inner: Node | None = None


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    a: int


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (one_field(Any), "M.f has type .*Any.*use str"),
        (one_field(bytes), "M.f has type bytes.*use str"),
        (one_field(dt.time), "M.f has type time.*use str with a pattern"),
        (one_field(dt.timedelta), "M.f has type timedelta.*use float"),
        (one_field(tuple[int, int]), r"M.f has type tuple.*use list"),
        (one_field(set[int]), r"M.f has type set.*use list"),
        (one_field(list), "M.f has type list.*use list"),
        (one_field(int | str), "M.f is a union of int, str"),
        (one_field(dict[int, str]), "M.f has keys of type int"),
        (one_field(list[dict[str, bytes]]), r"M.f\[\]\[\] has type bytes"),
        (one_field(Literal[1, 2]), "M.f allows values that are not text"),
        (one_field(Annotated[int, AfterValidator(abs)]), "M.f has func, which Spark cannot apply"),
        (one_field(int, Field(strict=True)), "M.f has strict"),
        (one_field(float, Field(multiple_of=0.1)), "M.f has multiple_of, which Spark cannot apply to float"),
        (one_field(Decimal, Field(max_digits=5)), "give decimal_places too"),
        (one_field(list[int], Field(default_factory=lambda: [1])), "M.f has a default_factory"),
        (one_field(list[int], [1]), r"M.f has the default \[1\]"),
        (one_field(int | None, 5), "M.f allows None and has the default 5"),
        (one_field(int, None), "M.f has the default None"),
        (one_field(int, "x"), "M.f has the default 'x'"),
        (one_field(int, Field(validation_alias=AliasChoices("a", "b"))), "M.f has the alias"),
        (Validated, "Validated has the validator check_a"),
        (ModelValidated, "ModelValidated has the validator check_all"),
        (Node, "Node contains itself"),
        (Closed, "Closed sets extra='forbid'"),
        ("a void", "field a has type void"),
        ("a array<struct<b: interval>>", r"field a\[\].b has type interval"),
        ("a int, A string", "two fields named a"),
        ("a map<int,int>", "field a has type map<int,int>"),
        ("a tinyint", "field a has type tinyint.*use smallint"),
        ("a int b", "unexpected 'b'"),
        ("a array<int", "expected '>' in a"),
        ("", "ends in the middle"),
        (StructType([]), "no fields"),
        (StructType([StructField("v", VariantType())]), "field v has type variant.*use string"),
        (LongType(), "is not usable"),
        (dict, "is not usable"),
    ],
)
def test_what_cannot_be_checked_is_refused_when_it_is_declared(schema, words):
    with pytest.raises(ConfigurationError, match=words):
        check_body_schema(schema)


def test_checking_a_schema_starts_no_spark():
    code = (
        "import sys, pydantic\n"
        "from queue_pipeline.processing.body.schema import check_body_schema\n"
        "check_body_schema('a int NOT NULL, b array<string>')\n"
        "check_body_schema(pydantic.create_model('M', a=(int, 5)))\n"
        "from pyspark import SparkContext\n"
        "assert SparkContext._gateway is None and SparkContext._active_spark_context is None\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize(
    ("pattern", "java"),
    [("^a$", r"(?Ud)^a\z"), (r"^[$]\$$", r"(?Ud)^[$]\$\z"), ("(?P<x>a)", "(?Ud)(?<x>a)")],
)
def test_a_pattern_means_the_same_in_java(pattern, java):
    assert java_pattern(pattern) == java
