"""The DataFrame that a transform sees."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body_schema import with_payload

ORIGIN = "origin"
FITS = "fits"


def messages_frame(spark: SparkSession, messages: pa.Table, attempt: int, body_schema: Any = None) -> DataFrame:
    """A batch as a frame, with the parsed body as `payload` and whether it is usable as `fits`.

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
    selected = frame.select(*columns)
    return selected if body_schema is None else with_payload(selected, body_schema)
