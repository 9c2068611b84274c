"""The DataFrame that a transform sees."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

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
PAYLOAD = "payload"
MESSAGE = (ORIGIN, "id", "row_version", "message_type", "headers", "body", "enqueued", "attempt")
"""The columns that every transform sees; with a body schema there is `payload` too."""


def messages_frame(frame: DataFrame, attempt: int, *further: str) -> DataFrame:
    """The columns of messages as a transform sees them, and further ones as they are.

    `origin` is what relates a result to its message. Its first field is the row version, so that `F.min("origin")`
    is the oldest message of a group.
    """
    columns = {
        ORIGIN: F.struct(*ORIGIN_FIELDS),
        "headers": F.from_json("headers", "map<string,string>"),
        "attempt": F.lit(attempt),
    }
    return frame.select(*(columns.get(name, F.col(name)).alias(name) for name in (*MESSAGE, *further)))
