"""What becomes of orders."""

from decimal import Decimal

from pydantic import BaseModel, Field
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline import each, fail, send

TAX_PERCENT = {"AT": 20, "DE": 19}


class Order(BaseModel):
    """The body of an order. Any other body goes to the error queue."""

    id: str
    country: str
    net: Decimal = Field(gt=0, max_digits=12, decimal_places=2)


def write_invoices(messages: DataFrame) -> DataFrame:
    """An invoice with tax for each order; an order from another country fails."""
    order = messages.payload
    percent = F.coalesce(*[F.when(order.country == country, tax) for country, tax in TAX_PERCENT.items()])
    invoice = F.struct(order.id.alias("order_id"), F.round(order.net * (100 + percent) / 100, 2).alias("total"))
    return messages.select(
        "origin",
        each(
            send("invoices", json=invoice, when=percent.isNotNull()),
            fail(F.concat(F.lit("no tax is known for "), order.country), when=percent.isNull()),
        ),
    )
