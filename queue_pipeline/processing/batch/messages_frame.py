"""The DataFrame that a transform sees."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
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
"""What is known of the message that a result belongs to."""
SEAL = "seal"
"""The last field of an origin: a checksum of the others, which detects a changed origin."""
BETWEEN = "\x1f"
"""What separates the fields in the text whose checksum is the seal."""
PAYLOAD = "payload"
MESSAGE = (ORIGIN, "id", "row_version", "message_type", "headers", "body", "enqueued", "attempt")
"""The columns that every transform sees; with a body schema there is `payload` too."""


def messages_frame(frame: DataFrame, attempt: int, *further: str) -> DataFrame:
    """The columns of messages as a transform sees them, and further ones unchanged.

    The first field of `origin` is the row version: `F.min("origin")` is the oldest message of a group.
    """
    columns = {
        ORIGIN: F.struct(*ORIGIN_FIELDS, _checksum(*map(F.col, ORIGIN_FIELDS)).alias(SEAL)),
        "headers": F.from_json("headers", "map<string,string>"),
        "attempt": F.lit(attempt),
    }
    return frame.select(*(columns.get(name, F.col(name)).alias(name) for name in (*MESSAGE, *further)))


def checked_origin() -> Column:
    """The origin of a result without its seal; its row version is null where the seal does not match the other fields.

    Spark's optimizer removes both checksums where a plan only moves the origin.
    """
    fields = {name: F.col(f"{ORIGIN}.{name}") for name in ORIGIN_FIELDS}
    is_whole = F.col(f"{ORIGIN}.{SEAL}") == _checksum(*fields.values())
    fields["row_version"] = F.when(is_whole, fields["row_version"])
    return F.struct(*(field.alias(name) for name, field in fields.items())).alias(ORIGIN)


def _checksum(*fields: Column) -> Column:
    """Nulls are left out of the text. Spark plans these expressions anew for every batch, so there are few."""
    return F.crc32(F.concat_ws(BETWEEN, *fields))
