"""The DataFrame that a transform sees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body.schema import with_payload
from queue_pipeline.processing.handover import handed_over

ORIGIN = "origin"
ORIGIN_FIELDS = (
    "row_version",
    "id",
    "message_id",
    "correlation_id",
    "conversation_id",
    "reply_to",
    "saga_id",
    "saga_type",
)
FITS = "fits"


def described(frame: DataFrame, attempt: int, body_schema: Any = None, *further: str) -> DataFrame:
    """The columns of messages as a transform sees them, and further ones as they are."""
    origin = F.struct(*ORIGIN_FIELDS)
    columns = [
        origin.alias(ORIGIN),
        F.col("id"),
        F.col("row_version"),
        F.col("message_type"),
        F.from_json("headers", "map<string,string>").alias("headers"),
        F.col("body"),
        F.col("enqueued"),
        F.lit(attempt).alias("attempt"),
        *(F.col(name) for name in further),
    ]
    selected = frame.select(*columns)
    return selected if body_schema is None else with_payload(selected, body_schema)


@contextlib.contextmanager
def messages_frame(
    spark: SparkSession, messages: pa.Table, attempt: int, body_schema: Any = None
) -> Iterator[DataFrame]:
    """A batch as a frame, for as long as the block lasts.

    The parsed body is `payload`, and `fits` says whether it may be used.

    `origin` is what relates a result to its message. Its first field is the row version, so that `F.min("origin")`
    is the oldest message of a group.
    """
    with handed_over(spark, messages) as frame:
        yield described(frame, attempt, body_schema)
