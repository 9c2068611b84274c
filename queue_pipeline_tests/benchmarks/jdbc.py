"""The worked example by what Spark offers by itself: its JDBC reader and writer.

It is not exactly once: it takes nothing out of the queue, each table is written in commits of its own, and totals can
only be appended to a table that has none yet.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from queue_pipeline.defs.orders import EXPRESS, FREE_SHIPPING_FROM, SHIPPING, TAX_PERCENT, VOLUME_DISCOUNT_PERCENT
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.benchmarks.consumers.envelopes import ENDPOINT, MESSAGE_TYPES

ROWS_A_PARTITION = 10_000
ROWS_A_TRIP = 1_000

ORDER = (
    "OrderId string, Customer string, Country string, Currency string, PlacedAt timestamp, Express boolean, "
    "Lines array<struct<Sku: string, Quantity: int, UnitPrice: decimal(12,2)>>"
)


def process_orders(spark: SparkSession, url: str, connection: Any) -> None:
    """Read `orders` in partitions by seq, price them, and write invoices, parcels, failures and totals."""
    address = _address(url)
    # Kept in memory: four tables are written, and each would read and price all orders again.
    priced = price(_read(spark, address, connection)).persist()
    good, bad = priced.where("reason IS NULL"), priced.where("reason IS NOT NULL")
    _write(_messages(good, "billing", _invoice()), "billing", address)
    _write(_messages(good, "shipping", _parcel()), "shipping", address)
    _write(bad.select(F.uuid().alias("id"), _failed_headers().alias("headers"), "body"), "error", address)
    _write(_totals(good), "order_totals", address)
    priced.unpersist()


def price(rows: DataFrame) -> DataFrame:
    """Orders with what is computed of them, in cents; `reason` is why one fails, else null."""
    orders = rows.withColumn("received", F.from_json("headers", "map<string, string>")).withColumn(
        "order", F.from_json(F.col("body").cast("string"), ORDER)
    )
    orders = orders.withColumn("tax_percent", _tax_percent()).withColumn("reason", _reason())
    orders = orders.withColumn("lines", F.transform("order.Lines", _priced_line))
    net = F.aggregate("lines", F.lit(0).cast("long"), lambda sum_, line: sum_ + line.Net)
    shipping = F.when(F.col("order.Express"), EXPRESS).when(F.col("net") >= FREE_SHIPPING_FROM, 0).otherwise(SHIPPING)
    orders = orders.withColumn("net", net).withColumn("shipping", shipping.cast("long"))
    tax = F.floor(((F.col("net") + F.col("shipping")) * F.col("tax_percent") + 50) / 100)
    orders = orders.withColumn("tax", tax)
    return orders.withColumn("total", F.expr("net + shipping + tax")).drop("headers")


def _tax_percent() -> Column:
    chosen = F.lit(None).cast("int")
    for country, percent in TAX_PERCENT.items():
        chosen = F.when(F.col("order.Country") == country, percent).otherwise(chosen)
    return chosen


def _reason() -> Column:
    """Why an order fails: the rules of the model, as far as a sample breaks them, and the country."""
    order = F.col("order")
    whole = F.lit(True)
    for rule in (
        F.length(order.OrderId) >= 1,
        F.length(order.Customer) >= 1,
        F.length(order.Country) == 2,
        order.Currency == "EUR",
        order.PlacedAt.isNotNull(),
        F.size(order.Lines) >= 1,
        F.forall(
            order.Lines,
            lambda line: F.length(line.Sku).between(3, 20) & line.Quantity.between(1, 10_000) & (line.UnitPrice > 0),
        ),
    ):
        whole = whole & F.coalesce(rule, F.lit(False))
    unreadable = F.col("received").isNull() | F.col("received")[wire.MESSAGE_ID].isNull()
    return (
        F.when(unreadable, "headers are no JSON object")
        .when(~whole, "the body is no valid order")
        .when(F.col("tax_percent").isNull(), "no deliveries to that country")
    )


def _priced_line(line: Column) -> Column:
    discount = F.lit(0)
    for quantity, percent in reversed(VOLUME_DISCOUNT_PERCENT):
        discount = F.when(line.Quantity >= quantity, percent).otherwise(discount)
    cents = (line.UnitPrice * 100).cast("long") * line.Quantity
    return F.struct(
        line.Sku.alias("Sku"),
        line.Quantity.alias("Quantity"),
        line.UnitPrice.alias("UnitPrice"),
        F.floor((cents * (100 - discount) + 50) / 100).alias("Net"),
    )


def _head() -> list[Column]:
    return [F.col(f"order.{name}") for name in ("OrderId", "Customer", "Country")]


def _invoice() -> Column:
    return F.struct(
        *_head(),
        F.transform("lines", lambda line: line.withField("Net", _euros(line.Net))).alias("Lines"),
        *(_euros(F.col(name)).alias(name.capitalize()) for name in ("net", "shipping", "tax", "total")),
        F.col("order.Currency"),
    )


def _parcel() -> Column:
    items = F.transform("order.Lines", lambda line: F.struct(line.Sku.alias("Sku"), line.Quantity.alias("Quantity")))
    return F.struct(*_head(), F.coalesce("order.Express", F.lit(False)).alias("Express"), items.alias("Items"))


def _totals(good: DataFrame) -> DataFrame:
    groups = good.groupBy(F.col("order.Country").alias("country"), F.to_date("order.PlacedAt").alias("day"))
    return groups.agg(F.count("*").alias("orders"), _euros(F.sum("total")).alias("revenue"))


def _messages(good: DataFrame, queue: str, body: Column) -> DataFrame:
    return good.select(
        F.uuid().alias("id"),
        F.to_json(_result_headers(MESSAGE_TYPES[queue])).alias("headers"),
        F.to_json(body).cast("binary").alias("body"),
    )


def _result_headers(message_type: str) -> Column:
    received = F.col("received")
    return _map(
        {
            wire.MESSAGE_ID: F.uuid(),
            wire.CORRELATION_ID: received[wire.CORRELATION_ID],
            wire.CONVERSATION_ID: received[wire.CONVERSATION_ID],
            wire.RELATED_TO: received[wire.MESSAGE_ID],
            wire.ENCLOSED_MESSAGE_TYPES: F.lit(message_type),
            wire.MESSAGE_INTENT: F.lit("Send"),
            wire.CONTENT_TYPE: F.lit("application/json"),
            wire.TIME_SENT: F.lit(wire.format_timestamp(datetime.now(UTC))),
            wire.ORIGINATING_ENDPOINT: F.lit(ENDPOINT),
            wire.ORIGINATING_MACHINE: F.lit(wire.machine_name()),
            wire.ORIGINATING_HOST_ID: F.lit(wire.host_id()),
            wire.REPLY_TO_ADDRESS: F.lit(ENDPOINT),
        }
    )


def _failed_headers() -> Column:
    failure = {
        wire.FAILED_QUEUE: F.lit(ENDPOINT),
        wire.TIME_OF_FAILURE: F.lit(wire.format_timestamp(datetime.now(UTC))),
        wire.EXCEPTION_TYPE: F.lit("OrderRefused"),
        wire.EXCEPTION_MESSAGE: F.col("reason"),
        wire.PROCESSING_ENDPOINT: F.lit(ENDPOINT),
        wire.PROCESSING_MACHINE: F.lit(wire.machine_name()),
    }
    known = F.coalesce("received", F.create_map().cast("map<string, string>"))
    return F.to_json(F.map_concat(known, _map(failure)))


def _map(values: dict[str, Column]) -> Column:
    return F.map_from_arrays(F.array(*map(F.lit, values)), F.array(*values.values()))


def _euros(cents: Column) -> Column:
    return (cents.cast("decimal(16,0)") / 100).cast("decimal(16,2)")


def _read(spark: SparkSession, address: dict[str, Any], connection: Any) -> DataFrame:
    first, last, count = connection.execute("SELECT min(seq), max(seq), count(*) FROM orders").fetchone()
    connection.commit()
    bounds = {"lowerBound": first, "upperBound": last + 1, "numPartitions": max(2, count // ROWS_A_PARTITION)}
    read = spark.read.format("jdbc").options(**address, dbtable="orders", fetchsize=ROWS_A_TRIP)
    return read.options(partitionColumn="seq", **bounds).load().select("headers", "body")


def _write(rows: DataFrame, table: str, address: dict[str, Any]) -> None:
    writer = rows.write.format("jdbc").options(**address, dbtable=table, stringtype="unspecified")
    # The driver turns a batch into statements of many rows: fewer of them for the server.
    writer.option("batchsize", ROWS_A_TRIP).option("reWriteBatchedInserts", "true").mode("append").save()


def _address(url: str) -> dict[str, Any]:
    address = urlsplit(url)
    return {
        "url": f"jdbc:postgresql://{address.hostname}:{address.port}{address.path}",
        "user": unquote(address.username or ""),
        "password": unquote(address.password or ""),
        "driver": "org.postgresql.Driver",
    }
