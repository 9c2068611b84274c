"""Bodies declared with DDL are parsed by a real Spark."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from queue_pipeline.processing.body.ddl import parse_ddl
from queue_pipeline_tests.support.bodies import outcomes

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
