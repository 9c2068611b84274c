"""The DataFrame that a transform sees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body.schema import CHECKED, RECORD, with_payload, with_record
from queue_pipeline.processing.handover import SMALLEST_FILE, handed_over

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
MESSAGE = (ORIGIN, "id", "row_version", "message_type", "headers", "body", "enqueued", "attempt")
"""The columns that every transform sees."""


class MessagesFrame(NamedTuple):
    """A batch as a frame."""

    frame: DataFrame
    all_fit: bool
    """Whether every message is for the transform: then there is no column `fits`."""


def described(
    frame: DataFrame, attempt: int, body_schema: Any = None, *further: str, read: str | None = None
) -> DataFrame:
    """The columns of messages as a transform sees them, and further ones as they are.

    `read` names the column of bodies that were read before, if there is one.
    """
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
        *(F.col(name) for name in (*further, *((read,) if read else ()))),
    ]
    selected = frame.select(*columns)
    if body_schema is None:
        return selected
    return with_payload(selected, body_schema, (*MESSAGE, *further), read)


def seen_by_transforms(frame: DataFrame, body_schema: Any = None) -> DataFrame:
    """What `described` made, without what only we look at."""
    return frame.select(*MESSAGE, *(() if body_schema is None else ("payload",)))


@contextlib.contextmanager
def messages_frame(
    spark: SparkSession, messages: pa.Table, attempt: int, body_schema: Any = None
) -> Iterator[MessagesFrame]:
    """A batch as a frame, for as long as the block lasts.

    The parsed body is `payload`, and `fits` says whether it may be used, unless that is known of all.

    `origin` is what relates a result to its message. Its first field is the row version, so that `F.min("origin")`
    is the oldest message of a group.
    """
    if body_schema is not None and messages.nbytes >= SMALLEST_FILE:
        messages = with_record(messages, body_schema)
    with handed_over(spark, messages) as frame:
        read = next((name for name in (RECORD, CHECKED) if name in messages.column_names), None)
        yield MessagesFrame(described(frame, attempt, body_schema, read=read), body_schema is None or read == CHECKED)
