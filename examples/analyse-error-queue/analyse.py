"""An error queue in pandas: what failed and why. The causes are fixed, the messages retried and processed."""

import tempfile
from decimal import Decimal

from pydantic import BaseModel, Field, field_validator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline import (
    QueuePipeline,
    QueueTransport,
    Selection,
    body_parser,
    each,
    fail,
    new_message,
    queue_definitions,
    send,
)


class Order(BaseModel):
    """An order as the pipeline expects it."""

    OrderId: str
    Country: str
    Amount: Decimal = Field(max_digits=12, decimal_places=2)


class LenientOrder(Order):
    """The fix of the first cause: one shop writes amounts with a comma."""

    @field_validator("Amount", mode="before")
    @classmethod
    def _with_a_point(cls, amount: object) -> object:
        return amount.replace(",", ".") if isinstance(amount, str) else amount


def declare(body_schema: type[Order], tax: dict[str, int]) -> QueuePipeline:
    """The pipeline, for the orders and countries that it knows."""

    def price(messages: DataFrame) -> DataFrame:
        country, amount = F.col("payload.Country"), F.col("payload.Amount")
        percent = F.create_map(*(F.lit(part) for pair in tax.items() for part in pair))[country]
        total = F.round(amount * (100 + percent) / 100, 2).alias("Total")
        return messages.select(
            "origin",
            each(
                send("billing", json=F.struct(F.col("payload.OrderId"), total), when=percent.isNotNull()),
                fail("no tax rate", error_type="CountryNotServed", when=percent.isNull()),
            ),
        )

    return QueuePipeline(
        name="orders",
        input_queue="orders",
        output_queues=["billing"],
        body_schema=body_schema,
        transform=price,
        linger_seconds=0,
    )


def run(database: str, pipeline: QueuePipeline) -> None:
    """Process what waits, as Dagster does when messages arrive."""
    job = queue_definitions([pipeline], database=database).resolve_job_def("orders_pipeline")
    job.execute_in_process()


def send_orders(transport: QueueTransport) -> None:
    """Twelve orders: three have a comma in their amount, four come from a country without a rate, one has both."""
    for n in range(12):
        amount = f"{n}9,90" if n % 4 == 0 else f"{n}9.90"
        country = "NZ" if n % 3 == 0 else "AT"
        order = f'{{"OrderId": "o{n}", "Country": "{country}", "Amount": "{amount}"}}'
        transport.send("orders", new_message(order, message_type="Shop.OrderPlaced"))


def analyse(database: str) -> None:
    """Look, fix, retry."""
    with QueueTransport(database) as transport:
        transport.install("orders", plain_queues=["billing", "error"])
        send_orders(transport)
        run(database, declare(Order, {"AT": 20, "DE": 19}))

        failed = transport.browse_failed("error", limit=None)
        print(f"{len(failed)} of 12 orders failed:")
        for cause, messages in failed.by_cause().items():
            print(f"  {len(messages)} x {cause.exception_type}, for example: {messages[0].exception_message}")

        frame = failed.to_pandas(body=body_parser(LenientOrder))
        amounts = frame.groupby(["exception_type", "payload.Country"])["payload.Amount"]
        print(amounts.agg(["count", "sum"]).reset_index().to_string(index=False))

        fixed = declare(LenientOrder, {"AT": 20, "DE": 19, "NZ": 15})
        for cause in ("CountryNotServed", "MessageBodyUnreadable"):
            retried = transport.failed.retry("error", Selection(exception=cause))
            print(f"{cause}: {retried.returned} retried")
        run(database, fixed)
        print(f"billed: {transport.peek('billing')}, failed: {transport.peek('error')}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        analyse(f"sqlite:///{folder}/queues.db")
