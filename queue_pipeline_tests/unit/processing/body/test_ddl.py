"""Bodies declared with Spark's types: what they take, what they refuse, and how DDL is read."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType, VariantType

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.body.ddl import parse_ddl
from queue_pipeline.processing.body.parse import BodyParser
from queue_pipeline.processing.body.schema import check_body_schema
from queue_pipeline_tests.support.processing.bodies import payload, problem

DDL = (
    "OrderId string NOT NULL, Count int, Small smallint, Price decimal(10,2), At timestamp, Due date, "
    "Lines array<struct<Quantity: bigint NOT NULL, Tags: array<string>>>, Stock map<string,int>, "
    "Customer struct<`first name`: string NOT NULL>, Local timestamp_ntz, Data binary, Ratio float, Exact double, "
    "Paid boolean"
)
NOON = dt.datetime(2024, 5, 31, 12, tzinfo=dt.UTC)
WHEN = "At: Input should be a date and time such as 2024-05-31T12:00:00Z (given: '{}')"
LOCAL = "Local: Input should be a date and time without a time zone, such as 2024-05-31T12:00:00 (given: {})"


def order(fields: str = "") -> str:
    return '{"OrderId":"a"' + ("," + fields if fields else "") + "}"


PAYLOADS: dict[str, dict[str, Any]] = {
    order(): {"OrderId": "a", "Count": None, "Lines": None},
    order('"Count":null,"Lines":null'): {"Count": None, "Lines": None},
    "\ufeff" + order(): {"OrderId": "a"},
    " \n" + order() + "\r\n": {"OrderId": "a"},
    '{"OrderId":"a","OrderId":"b","Unknown":{"x":[1]}}': {"OrderId": "b"},
    order('"Count":"x","Count":1'): {"Count": 1},
    order('"Count":-5,"Price":1.20,"Due":"2024-05-31"'): {"Count": -5, "Price": Decimal("1.20"), "Due": NOON.date()},
    order('"Price":"1.5"'): {"Price": Decimal("1.50")},
    order('"Price":1.5000'): {"Price": Decimal("1.50")},
    order('"At":"2024-05-31T12:00:00.1234567Z"'): {"At": NOON.replace(microsecond=123456)},
    order('"At":"2024-05-31T14:00:00+02:00"'): {"At": NOON},
    order('"At":"2024-05-31 12:00:00"'): {"At": NOON},
    order('"At":"0001-01-01T00:00:00"'): {"At": dt.datetime(1, 1, 1, tzinfo=dt.UTC)},
    order('"At":1717156800'): {"At": NOON},
    order('"At":1717156800.5'): {"At": NOON.replace(microsecond=500000)},
    order('"Local":"2024-05-31T12:00:00.5"'): {"Local": NOON.replace(microsecond=500000, tzinfo=None)},
    order('"Lines":[{"Quantity":1,"Tags":["x",null]},null]'): {"Lines": [{"Quantity": 1, "Tags": ["x", None]}, None]},
    order('"Lines":[],"Stock":{}'): {"Lines": [], "Stock": {}},
    order('"Stock":{"a":1,"b":null}'): {"Stock": {"a": 1, "b": None}},
    order('"Customer":{"first name":"Åsa"}'): {"Customer": {"first name": "Åsa"}},
    order('"Data":"aGk=","Ratio":0.5,"Exact":1,"Paid":true'): {"Data": b"hi", "Ratio": 0.5, "Exact": 1.0, "Paid": True},
    order('"Small":-32768,"Count":2147483647'): {"Small": -32768, "Count": 2147483647},
}
PROBLEMS: dict[str, str] = {
    "{}": "OrderId: Field required",
    '{"orderid":"a"}': "OrderId: Field required",
    '{"OrderId":null}': "OrderId: Input should be a valid string (given: None)",
    '{"OrderId":12}': "OrderId: Input should be a valid string (given: 12)",
    '{"OrderId":{"a":1}}': "OrderId: Input should be a valid string (given: an object)",
    order('"Count":"12"'): "Count: Input should be a valid integer (given: '12')",
    order('"Count":1.0'): "Count: Input should be a valid integer (given: 1.0)",
    order('"Count":3000000000'): "Count: Input should be less than or equal to 2147483647 (given: 3000000000)",
    order('"Small":32768'): "Small: Input should be less than or equal to 32767 (given: 32768)",
    order('"Price":1.239'): "Price: Decimal input should have no more than 2 decimal places (given: 1.239)",
    order('"Price":123456789'): "Price: Decimal input should have no more than 8 digits before the decimal point "
    "(given: 123456789)",
    order('"At":"12:30"'): WHEN.format("12:30"),
    order('"At":"2024-05-31"'): WHEN.format("2024-05-31"),
    order('"At":"1717156800"'): WHEN.format("1717156800"),
    order('"At":true'): "At: Input should be a valid datetime (given: True)",
    order('"At":1700000000000'): "At: Input should be in the years 1 to 9999 (a number counts seconds since 1970) "
    "(given: 1700000000000)",
    order('"At":"0001-01-01T00:00:00+05:00"'): "At: Input should be in the years 1 to 9999 in UTC",
    order('"Due":"2024-02-30"'): "Due: Input should be a valid date or datetime, day value is outside expected "
    "range (given: '2024-02-30')",
    order('"Due":"2024-02-03T00:00"'): "Due: Input should be a date such as 2024-05-31 (given: '2024-02-03T00:00')",
    order('"Due":19000'): "Due: Input should be a date such as 2024-05-31 (given: 19000)",
    order('"Local":"2024-05-31T12:00:00Z"'): "Local: Input should not have timezone info "
    "(given: '2024-05-31T12:00:00Z')",
    order('"Local":1717156800'): LOCAL.format(1717156800),
    order('"Lines":{}'): "Lines: Input should be a valid array (given: an object)",
    order('"Lines":[{"Quantity":1},{}]'): "Lines.1.Quantity: Field required",
    order('"Lines":[{"Quantity":1},null,{"Quantity":"y"}]'): "Lines.2.Quantity: Input should be a valid integer "
    "(given: 'y')",
    order('"Stock":{"a":1,"b":true}'): "Stock.b: Input should be a valid integer (given: True)",
    order('"Customer":{}'): "Customer.first name: Field required",
    order('"Data":"%"'): "Data: Data should be valid base64: Invalid symbol 37, offset 0. (given: '%')",
    order('"Ratio":1e300'): "Ratio: Input should be in the range of a 32-bit floating point number (given: 1e+300)",
    order('"Exact":"1"'): "Exact: Input should be a valid number (given: '1')",
    order('"Paid":1'): "Paid: Input should be a valid boolean (given: 1)",
}


@pytest.mark.parametrize("body", PAYLOADS, ids=lambda body: body[:50])
def test_a_good_body_becomes_a_payload(body):
    found = payload(DDL, body)
    assert {name: found[name] for name in PAYLOADS[body]} == PAYLOADS[body]


@pytest.mark.parametrize("body", PROBLEMS, ids=lambda body: body[:50])
def test_a_bad_body_names_the_field_and_what_is_wrong(body):
    assert problem(DDL, body) == PROBLEMS[body]


def test_columns_have_the_declared_types():
    found = BodyParser("a smallint, b int NOT NULL, c float, d decimal(5,1), e timestamp_ntz, f map<string,int>")
    assert found.payload_type == pa.struct(
        [
            pa.field("a", pa.int16()),
            pa.field("b", pa.int32(), nullable=False),
            pa.field("c", pa.float32()),
            pa.field("d", pa.decimal128(5, 1)),
            pa.field("e", pa.timestamp("us")),
            pa.field("f", pa.map_(pa.string(), pa.int32())),
        ]
    )


def test_elements_that_may_not_be_null_are_found():
    schema = StructType([StructField("Tags", ArrayType(StringType(), containsNull=False))])
    assert problem(schema, '{"Tags":["a",null]}') == "Tags.1: Input should be a valid string (given: None)"
    assert payload(schema, '{"Tags":["a"]}') == {"Tags": ["a"]}
    assert payload(schema, "{}") == {"Tags": None}


def test_names_that_python_could_not_have_are_fields():
    schema = "`first name` string, _private int, model_config int, schema int, class int NOT NULL"
    body = '{"first name":"a","_private":1,"model_config":2,"schema":3,"class":4}'
    assert payload(schema, body) == json.loads(body)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("a void", "field a has type void"),
        ("a array<struct<b: interval>>", r"field a\[\].b has type interval"),
        ("a int, A string", "two fields named a"),
        ("x struct<a:int,A:int>", "x has two fields named a"),
        ("a map<int,int>", "field a has type map<int,int>.*use map<string"),
        ("a tinyint", "field a has type tinyint.*use smallint"),
        ("a int b", "unexpected 'b'"),
        ("a array<int", "expected '>' in a"),
        ("", "ends in the middle"),
        ("a decimal(39,2)", "at most 38 digits"),
        (StructType([]), "no fields"),
        (StructType([StructField("v", VariantType())]), "field v has type variant.*Any"),
        (LongType(), "is not usable"),
        (dict, "is not usable; give Spark DDL, a StructType or a pydantic model class"),
    ],
)
def test_a_schema_that_cannot_work_is_refused_when_it_is_declared(schema, words):
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
