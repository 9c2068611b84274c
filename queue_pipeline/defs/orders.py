"""The worked example: orders are validated, priced and sent on for invoicing and shipping; totals go into a table."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from queue_pipeline import Output, QueuePipeline, add_to, each, fail, send

Money = Annotated[Decimal, Field(max_digits=12, decimal_places=2, gt=0)]

TAX_PERCENT = {"AT": 20, "DE": 19, "FR": 20, "IT": 22, "NL": 21, "PL": 23}
VOLUME_DISCOUNT_PERCENT = ((100, 12), (20, 5))
FREE_SHIPPING_FROM, SHIPPING, EXPRESS = 15_000, 690, 1_450
"""In cents, as all amounts until they are written: whole numbers are exact and need no wide decimals."""


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


def price_orders(messages: DataFrame) -> DataFrame:
    """Prices orders with volume discounts, tax and shipping; refuses countries that are not served."""
    order = F.col("payload")
    net, shipping, tax, total = (F.col(name) for name in ("net", "shipping", "tax", "total"))
    priced = (
        messages.select("origin", "payload", F.transform(order.Lines, _priced_line).alias("lines"))
        .select("*", F.aggregate("lines", F.lit(0).cast("long"), lambda sum_, line: sum_ + line.Net).alias("net"))
        .select("*", _shipping(net, order.Express).alias("shipping"), _tax_percent(order.Country).alias("tax_percent"))
        .select("*", _percent(net + shipping, F.col("tax_percent")).alias("tax"))
        .select("*", (net + shipping + tax).alias("total"))
    )
    served = F.col("tax_percent").isNotNull()
    head = [order.OrderId.alias("OrderId"), order.Customer.alias("Customer"), order.Country.alias("Country")]
    invoice = F.struct(
        *head,
        F.transform("lines", lambda line: line.withField("Net", _euros(line.Net))).alias("Lines"),
        _euros(net).alias("Net"),
        _euros(shipping).alias("Shipping"),
        _euros(tax).alias("Tax"),
        _euros(total).alias("Total"),
        order.Currency.alias("Currency"),
    )
    items = F.transform(order.Lines, lambda line: F.struct(line.Sku.alias("Sku"), line.Quantity.alias("Quantity")))
    parcel = F.struct(*head, order.Express.alias("Express"), items.alias("Items"))
    return priced.select(
        "origin",
        each(
            send("billing", json=invoice, when=served),
            send("shipping", json=parcel, when=served),
            add_to(
                "order_totals",
                key={"country": order.Country, "day": F.to_date(order.PlacedAt)},
                add={"orders": 1, "revenue": _euros(total)},
                when=served,
            ),
            fail(F.concat(F.lit("no deliveries to "), order.Country), error_type="CountryNotServed", when=~served),
        ),
    )


def _priced_line(line: Column) -> Column:
    """A line with its volume discount."""
    discount = F.lit(0)
    for quantity, percent in reversed(VOLUME_DISCOUNT_PERCENT):
        discount = F.when(line.Quantity >= quantity, percent).otherwise(discount)
    net = _percent((line.UnitPrice * 100).cast("long") * line.Quantity, 100 - discount)
    return F.struct(
        line.Sku.alias("Sku"), line.Quantity.alias("Quantity"), line.UnitPrice.alias("UnitPrice"), net.alias("Net")
    )


def _tax_percent(country: Column) -> Column:
    """The rate of a country; null where the shop does not deliver."""
    rate = F.lit(None).cast("int")
    for name, percent in TAX_PERCENT.items():
        rate = F.when(country == name, percent).otherwise(rate)
    return rate


def _shipping(net: Column, express: Column) -> Column:
    return F.when(express, EXPRESS).when(net >= FREE_SHIPPING_FROM, 0).otherwise(SHIPPING).cast("long")


def _percent(cents: Column, percent: Column) -> Column:
    """A percentage of an amount, rounded to the cent, half up."""
    return F.floor((cents * percent + 50) / 100)


def _euros(cents: Column) -> Column:
    return (cents.cast("decimal(16,0)") / 100).cast("decimal(16,2)")


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
