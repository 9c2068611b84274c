"""Bodies that Arrow reads in Spark's place: only those of which both make the same."""

import json
from typing import Annotated

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from queue_pipeline.processing.body.ddl import parse_ddl
from queue_pipeline.processing.body.model import model_shape
from queue_pipeline.processing.body.quick import LONGEST, all_fit, read_quickly
from queue_pipeline.processing.body.struct import struct_shape
from queue_pipeline_tests.support.bodies import outcomes

DDL = (
    "n int, big bigint NOT NULL, x double, yes boolean, text string, "
    "list array<string>, lines array<struct<sku: string, price: double>>, inside struct<a: int, b: struct<c: string>>"
)
SHAPE = struct_shape(parse_ddl(DDL))


def read(*bodies, shape=SHAPE):
    found = read_quickly(shape, pa.array(bodies, pa.binary()))
    return None if found is None else found.to_pylist()


def test_what_is_plain_is_read():
    body = {
        "n": 1,
        "big": 2**62,
        "x": 1.5,
        "yes": True,
        "text": 'a "b" \\ é 😀 \u0000',
        "list": ["a", None, ""],
        "lines": [{"sku": "s", "price": 2}, {}],
        "inside": {"a": -1, "b": {"c": "d"}},
    }
    lines = [{"sku": "s", "price": 2.0}, {"sku": None, "price": None}]
    assert read(json.dumps(body).encode(), b"{}", b'{"more": [1, {"n": "x"}], "text": null}') == [
        {**body, "lines": lines},
        dict.fromkeys(body),
        dict.fromkeys(body),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'[{"n": 1}]',
        b' {"n": 1}',
        b'{"n": 1} ',
        b'\xef\xbb\xbf{"n": 1}',
        b'{"n": 1}{"n": 2}',
        b'{"n": 1}\n{"n": 2}',
        b'{"n": 1}}',
        b'{"n": "1"}',
        b'{"n": 1.0}',
        b'{"n": 1e2}',
        b'{"n": 3000000000}',
        b'{"big": 9223372036854775808}',
        b'{"n": 1, "n": 2}',
        b'{"inside": {"a": 1, "a": 1}}',
        b'{"x": NaN}',
        b'{"x": 1e999}',
        b'{"x": 01}',
        b'{"x": .5}',
        b'{"yes": "true"}',
        b'{"yes": 1}',
        b'{"text": 1}',
        b'{"text": {"a": 1}}',
        b'{"text": "\\ud800"}',
        b'{"text": "\\udc00"}',
        b'{"text": "\xff"}',
        b'{"text": "a\nb"}',
        b'{"list": [1]}',
        b'{"list": "a"}',
        b'{"lines": [1]}',
        b'{"inside": []}',
        b"{'n': 1}",
        b"{n: 1}",
        b'{"n": 1,}',
        b'{"n": 1 /* one */}',
        b'{"more": tru}',
        b'{"more": "' + b"x" * LONGEST + b'"}',
    ],
)
def test_anything_else_is_left_to_spark_with_the_whole_batch(body):
    good = b'{"n": 1}'
    assert read(body) is None
    assert read(good, body) is None
    assert read(body, good) is None


def test_bodies_that_only_together_are_json_are_left_to_spark():
    for bodies in (
        (b'{"list": ["a"', b'"b"]}'),
        (b'{"inside": {"a": 1}', b'{"a": 1}}'),
        (b'{"inside": {"a": 1}', b'{}{}{"n": 1}'),
        (b'{"text": "}', b'{"}'),
        (b'{"lines": [{}', b"{}, {}]}", b"{}{}"),
    ):
        assert read(*bodies) is None


def test_nothing_and_nulls_are_left_to_spark():
    assert read() is None
    assert read(None, b"{}") is None


@pytest.mark.parametrize(
    "ddl",
    [
        "x float",
        "x decimal(10, 2)",
        "x date",
        "x timestamp",
        "x binary",
        "x smallint",
        "x map<string, int>",
        "x array<date>",
        "x struct<y: decimal(5, 1)>",
    ],
)
def test_types_that_the_parsers_read_differently_are_left_to_spark(ddl):
    assert read(b"{}", shape=struct_shape(parse_ddl(ddl))) is None


def test_arrays_in_chunks_are_read_as_one():
    chunks = pa.chunked_array([pa.array([b'{"n": 1}']), pa.array([b'{"n": 2}', b"{}"])])
    assert [row["n"] for row in read_quickly(SHAPE, chunks).to_pylist()] == [1, 2, None]


@pytest.mark.parametrize(
    ("ddl", "bodies", "expected"),
    [
        ("n int", [{}, {"n": None}], True),
        ("n int NOT NULL", [{"n": 1}, {"n": 2}], True),
        ("n int NOT NULL", [{"n": 1}, {}], False),
        ("lines array<struct<n: int>>", [{}, {"lines": None}, {"lines": [None, {}]}], True),
        ("lines array<struct<n: int NOT NULL>>", [{"lines": []}, {"lines": [{"n": 1}]}], True),
        ("lines array<struct<n: int NOT NULL>>", [{"lines": [{"n": 1}, {}]}], False),
        ("inside struct<n: int NOT NULL>", [{"inside": {"n": 1}}], True),
        ("inside struct<n: int NOT NULL>", [{"inside": {}}], False),
        # It does fit; that the struct is what is null, only Spark tells.
        ("inside struct<n: int NOT NULL>", [{"inside": None}], False),
    ],
)
def test_all_fit_only_if_each_has_what_it_must_have(ddl, bodies, expected):
    shape = struct_shape(parse_ddl(ddl))
    records = read_quickly(shape, pa.array([json.dumps(body).encode() for body in bodies]))
    assert all_fit(shape, records) is expected


def test_what_is_checked_beyond_its_type_is_left_to_spark():
    class Order(BaseModel):
        n: Annotated[int, Field(ge=1)] = 1

    shape = model_shape(Order)
    assert not all_fit(shape, read_quickly(shape, pa.array([b'{"n": 1}'])))


keys = st.sampled_from(
    ["n", "big", "x", "yes", "text", "list", "lines", "inside", "more", "a", "b", "c", "sku", "price"]
)
numbers = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([0, -0.0, 1e-320, 1e308, 2**31 - 1, 2**63 - 1])
leaves = st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8"), max_size=5)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


@settings(deadline=None, max_examples=12)
@given(st.lists(st.dictionaries(keys, values, max_size=5), min_size=30, max_size=60))
def test_whatever_is_read_is_what_spark_reads(spark, bodies):
    """The comparison is made by the support for these tests."""
    outcomes(spark, DDL, [json.dumps(body) for body in bodies])
