"""The DataFrame that a transform sees."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body_schema import parse_body

ORIGIN = "origin"
PROBLEM = "problem"


def messages_frame(spark: SparkSession, messages: pa.Table, attempt: int, body_schema: Any = None) -> DataFrame:
    """A batch as a frame, with the parsed body as `payload` and what is wrong with it as `problem`.

    `origin` is what relates a result to its message. Its first field is the row version, so that `F.min("origin")`
    is the oldest message of a group.
    """
    frame = spark.createDataFrame(messages)
    origin = F.struct("row_version", "id", "message_id", "correlation_id", "conversation_id", "reply_to")
    columns = [
        origin.alias(ORIGIN),
        F.col("id"),
        F.col("row_version"),
        F.col("message_type"),
        F.from_json("headers", "map<string,string>").alias("headers"),
        F.col("body"),
        F.col("enqueued"),
        F.lit(attempt).alias("attempt"),
    ]
    if body_schema is None:
        return frame.select(*columns)
    parsed = parse_body(body_schema, F.col("body"))
    return frame.select(*columns, parsed.payload.alias("payload"), parsed.problem.alias(PROBLEM))
