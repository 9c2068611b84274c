"""Parsing the bodies of a batch: UTF-8 JSON in, a typed payload or a sentence about what is wrong out.

A pipeline declares the bodies with Spark DDL, a `StructType` or a pydantic model. Spark does all of the work, in column
expressions that are the same for classic Spark and Spark Connect.

- A field that is NOT NULL, or in a model not optional, must be there and not null. Names are compared exactly.
- A value that is there must fit its type, also where the field is optional: numbers in quotes are not numbers,
  decimals are not rounded. Only text takes any JSON value, as its JSON text.
- A default stands for an absent field and for null: Spark does not tell them apart.
- Fields that are not declared are ignored; of a field that is there twice every value must fit, and the last counts.
- A byte order mark is skipped. A time without a zone is one of the session's time zone.

Where this differs from pydantic: it takes numbers, booleans and dates in more notations ("12", 1.0, "yes", epoch
milliseconds), refuses numbers for text and null where there is a default, and has integers of any size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyspark.sql.functions as F
from pydantic import BaseModel
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.body.ddl import parse_ddl
from queue_pipeline.processing.body.envelope import enveloped, is_one_value
from queue_pipeline.processing.body.fits import value_fits
from queue_pipeline.processing.body.misfit import misfit
from queue_pipeline.processing.body.model import model_shape
from queue_pipeline.processing.body.payload import payload
from queue_pipeline.processing.body.problem import value_problem
from queue_pipeline.processing.body.quick import all_fit, read_quickly
from queue_pipeline.processing.body.shape import Record, wire_type
from queue_pipeline.processing.body.sql import bind, when
from queue_pipeline.processing.body.struct import struct_shape
from queue_pipeline.transport.errors import ConfigurationError

BodySchema = str | StructType | type[BaseModel]

RECORD = "__record"
"""A column of bodies that were read before, and are to be checked."""
CHECKED = "__checked"
"""The same of bodies that all fit."""

# .NET writers may begin with a byte order mark.
_TEXT = "CAST(if(startswith(body, X'EFBBBF'), substring(body, 4), body) AS STRING)"


@dataclass(frozen=True)
class ParsedBody:
    """Two columns: exactly one of them is null."""

    payload: Column
    problem: Column


def check_body_schema(schema: object) -> None:
    """Refuse a schema that cannot be parsed with; no Spark session is needed or started."""
    _shape(schema)


def with_record(messages: Table, schema: BodySchema) -> Table:
    """The messages with their bodies read by Arrow as a further column, for `with_payload`; as they are if Spark has to
    read them.
    """
    shape = _shape(schema)
    record = read_quickly(shape, messages["body"])
    if record is None:
        return messages
    return messages.append_column(CHECKED if all_fit(shape, record) else RECORD, record)


def with_payload(frame: DataFrame, schema: BodySchema, columns: Sequence[str], read: str | None = None) -> DataFrame:
    """These columns of the frame, and `payload`, parsed from its column `body`, and `fits`: whether it may be used.

    `read` is the column that `with_record` has added, if it has; what is checked is not asked again whether it `fits`.

    This is what every message pays for, so it says no more than yes or no; `parse_body` tells what is wrong with the
    few that do not fit, and costs more.
    """
    shape = _shape(schema)
    if read == CHECKED:
        return frame.select(*columns, F.expr(payload(shape, CHECKED)).alias("payload"))
    envelope, value = "__envelope", "get(__envelope.v, 0)"
    fits = value_fits(shape, True, RECORD)
    # Step by step: what one step makes is computed once, however often the next one uses it. By select: a Connect
    # server analyses all that is below a withColumn or a drop once more for each.
    if read is None:
        fits = f"is_valid_utf8({_TEXT}) AND {is_one_value(envelope)} AND {fits}"
        parsed = frame.select("*", F.expr(enveloped(_TEXT, wire_type(shape))).alias(envelope))
        frame = parsed.select("*", F.expr(value).alias(RECORD))
    return frame.select("*", F.expr(f"coalesce({fits}, false)").alias("fits")).select(
        *columns, "fits", F.expr(when("fits", payload(shape, RECORD))).alias("payload")
    )


def parse_body(schema: BodySchema, body: Column) -> ParsedBody:
    """Parse a binary column of JSON; a row that cannot be used has a problem and no payload."""
    # Spark interprets `zip_with` and all inside it. It would generate code for `transform`: hundreds of methods for
    # checks that need a microsecond.
    parse = F.expr(f"(body, nothing) -> {_parse(_shape(schema))}")
    parsed = F.get(F.call_function("zip_with", F.array(body), F.array(F.lit(0)), parse), F.lit(0))
    return ParsedBody(parsed["payload"], parsed["problem"])


def _shape(schema: object) -> Record:
    if isinstance(schema, str):
        return struct_shape(parse_ddl(schema))
    if isinstance(schema, StructType):
        return struct_shape(schema)
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return model_shape(schema)
    raise ConfigurationError(
        f"body schema {schema!r} is not usable; give Spark DDL, a StructType or a pydantic model class"
    )


def _parse(shape: Record) -> str:
    value = "get(envelope.v, 0)"
    made = bind(value, "record", payload(shape, "record"))
    outcome = f"named_struct('payload', {when('problem IS NULL', made)}, 'problem', problem)"
    problem = (
        f"CASE WHEN NOT is_valid_utf8(text) THEN 'the body is not UTF-8 text'"
        f" WHEN {is_one_value('envelope')} AND {value} IS NOT NULL"
        f" THEN {bind(value, 'record', value_problem(shape, False, 'record'))}"
        f" ELSE {misfit(shape, 'text')} END"
    )
    return bind(_TEXT, "text", bind(enveloped("text", wire_type(shape)), "envelope", bind(problem, "problem", outcome)))
