"""What Spark offers by itself: no claim, no fence, no ids that a replay makes again, nothing deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.transport import headers as wire
from queue_pipeline_tests.benchmarks.consumers.invoices import ENDPOINT, MESSAGE_TYPE
from queue_pipeline_tests.benchmarks.ours import ORDER, invoice

ROWS_A_PARTITION = 10_000
ROWS_A_TRIP = 1_000


def copy_invoices(spark: SparkSession, url: str, connection: Any) -> None:
    """Read `sent`, write `results`, in partitions by seq."""
    first, last, count = connection.execute("SELECT min(seq), max(seq), count(*) FROM sent").fetchone()
    connection.commit()
    options = _address(url)
    bounds = {"lowerBound": first, "upperBound": last + 1, "numPartitions": max(2, count // ROWS_A_PARTITION)}
    read = spark.read.format("jdbc").options(**options, dbtable="sent", fetchsize=ROWS_A_TRIP)
    rows = read.options(partitionColumn="seq", **bounds).load()
    results = rows.select(
        F.uuid().alias("id"),
        F.to_json(_headers()).alias("headers"),
        F.to_json(invoice(F.from_json(F.col("body").cast("string"), ORDER))).cast("binary").alias("body"),
    )
    writer = results.write.format("jdbc").options(**options, dbtable="results", stringtype="unspecified")
    writer.option("batchsize", ROWS_A_TRIP).mode("append").save()


def _headers() -> Column:
    received = F.from_json("headers", "map<string, string>")
    values = {
        wire.MESSAGE_ID: F.uuid(),
        wire.CORRELATION_ID: received[wire.CORRELATION_ID],
        wire.CONVERSATION_ID: received[wire.CONVERSATION_ID],
        wire.RELATED_TO: received[wire.MESSAGE_ID],
        wire.ENCLOSED_MESSAGE_TYPES: F.lit(MESSAGE_TYPE),
        wire.MESSAGE_INTENT: F.lit("Send"),
        wire.CONTENT_TYPE: F.lit("application/json"),
        wire.TIME_SENT: F.lit(wire.format_timestamp(datetime.now(UTC))),
        wire.ORIGINATING_ENDPOINT: F.lit(ENDPOINT),
        wire.ORIGINATING_MACHINE: F.lit(wire.machine_name()),
        wire.ORIGINATING_HOST_ID: F.lit(wire.host_id()),
        wire.REPLY_TO_ADDRESS: F.lit(ENDPOINT),
    }
    return F.map_from_arrays(F.array(*map(F.lit, values)), F.array(*values.values()))


def _address(url: str) -> dict[str, Any]:
    address = urlsplit(url)
    return {
        "url": f"jdbc:postgresql://{address.hostname}:{address.port}{address.path}",
        "user": unquote(address.username or ""),
        "password": unquote(address.password or ""),
        "driver": "org.postgresql.Driver",
    }
