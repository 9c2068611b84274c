"""The worked example: orders are validated, priced and sent on for invoicing and shipping; totals go into a table."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from queue_pipeline.processing.outcomes import Merge, Results, each, fail, send
from queue_pipeline.processing.pipeline import Output, QueuePipeline

Money = Annotated[Decimal, Field(max_digits=12, decimal_places=2, gt=0)]

TAX = {"AT": "0.20", "DE": "0.19", "FR": "0.20", "IT": "0.22", "NL": "0.21", "PL": "0.23"}
VOLUME_DISCOUNT = ((100, "0.12"), (20, "0.05"))
FREE_SHIPPING_FROM, SHIPPING, EXPRESS = "150.00", "6.90", "14.50"


class Line(BaseModel):
    """An article of an order."""

    Sku: str = Field(min_length=3, max_length=20)
    Quantity: int = Field(ge=1, le=10_000)
    UnitPrice: Money


class OrderPlaced(BaseModel):
    """The event that the shop publishes; names as the .NET contract writes them."""

    OrderId: str = Field(min_length=1)
    Customer: str = Field(min_length=1)
    Country: str = Field(min_length=2, max_length=2)
    Currency: Literal["EUR"]
    PlacedAt: datetime
    Express: bool = False
    Lines: list[Line] = Field(min_length=1)


def price_orders(messages: DataFrame) -> Results:
    """Prices orders with volume discounts, tax and shipping; refuses countries that are not served."""
    order = F.col("payload")
    tax = _choose(order.Country, TAX)
    priced = messages.select(
        "origin",
        "payload",
        tax.alias("tax_rate"),
        F.transform(order.Lines, _priced_line).alias("lines"),
    )
    net = F.aggregate("lines", _money("0"), lambda sum_, line: (sum_ + line.Net).cast("decimal(14,2)"))
    priced = priced.withColumn("net", net)
    priced = priced.withColumn("shipping", _shipping(F.col("net"), order.Express))
    priced = priced.withColumn("tax", ((F.col("net") + F.col("shipping")) * F.col("tax_rate")).cast("decimal(14,2)"))
    priced = priced.withColumn("total", (F.col("net") + F.col("shipping") + F.col("tax")).cast("decimal(14,2)"))

    served = F.col("tax_rate").isNotNull()
    head = [order.OrderId.alias("OrderId"), order.Customer.alias("Customer"), order.Country.alias("Country")]
    invoice = F.struct(
        *head, F.col("lines").alias("Lines"), F.col("net").alias("Net"), F.col("shipping").alias("Shipping"),
        F.col("tax").alias("Tax"), F.col("total").alias("Total"), order.Currency.alias("Currency"),
    )  # fmt: skip
    parcel = F.struct(
        *head,
        order.Express.alias("Express"),
        F.transform(order.Lines, lambda line: F.struct(line.Sku.alias("Sku"), line.Quantity.alias("Quantity"))).alias(
            "Items"
        ),
    )
    results = priced.select(
        "origin",
        each(
            send("billing", json=invoice, when=served),
            send("shipping", json=parcel, when=served),
            fail(F.concat(F.lit("no deliveries to "), order.Country), error_type="CountryNotServed", when=~served),
        ),
    )
    totals = (
        priced.where(served)
        .groupBy(order.Country.alias("country"), F.to_date(order.PlacedAt).alias("day"))
        .agg(F.count("*").alias("orders"), F.sum("total").cast("decimal(18,2)").alias("revenue"))
    )
    return Results(results, tables=[Merge("order_totals", totals, key=["country", "day"], add=["orders", "revenue"])])


def _priced_line(line: Column) -> Column:
    """A line with its volume discount."""
    discount = F.lit(0).cast("decimal(3,2)")
    for quantity, rate in reversed(VOLUME_DISCOUNT):
        discount = F.when(line.Quantity >= quantity, F.lit(rate).cast("decimal(3,2)")).otherwise(discount)
    net = (line.Quantity * line.UnitPrice * (1 - discount)).cast("decimal(14,2)")
    return F.struct(
        line.Sku.alias("Sku"), line.Quantity.alias("Quantity"), line.UnitPrice.alias("UnitPrice"), net.alias("Net")
    )


def _shipping(net: Column, express: Column) -> Column:
    standard = F.when(net >= _money(FREE_SHIPPING_FROM), _money("0")).otherwise(_money(SHIPPING))
    return F.when(express, _money(EXPRESS)).otherwise(standard)


def _choose(key: Column, values: dict[str, str]) -> Column:
    chosen = F.lit(None).cast("decimal(4,2)")
    for name, value in values.items():
        chosen = F.when(key == name, F.lit(value).cast("decimal(4,2)")).otherwise(chosen)
    return chosen


def _money(amount: str) -> Column:
    return F.lit(amount).cast("decimal(14,2)")


orders = QueuePipeline(
    name="orders",
    description="Orders are validated, priced and sent on for invoicing and shipping; totals go into a table.",
    input_queue="orders",
    output_queues=[
        Output(queue="billing", message_type="Shop.InvoiceRequested", description="Invoices to be written."),
        Output(queue="shipping", message_type="Shop.ShipmentRequested", description="Parcels to be sent."),
    ],
    body_schema=OrderPlaced,
    transform=price_orders,
    transaction_mode="transaction_scope",
)
