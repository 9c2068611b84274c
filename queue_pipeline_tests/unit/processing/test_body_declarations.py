"""What a body may be declared with: checked when the definitions load, without Spark."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from pyspark.sql.types import LongType, StructField, StructType, VariantType

from queue_pipeline.processing.body.checks import java_pattern
from queue_pipeline.processing.body.schema import check_body_schema
from queue_pipeline.transport.errors import ConfigurationError


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
