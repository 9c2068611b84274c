"""The pipelines: orders and billing, which must not notice anything, and a hostile one beside them."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import TableRow, add_to, each, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from tools.chaos.dagster.hostile import obey
from tools.chaos.dagster.plan import (
    BILLED,
    BILLING,
    ERRORS,
    HOSTILE,
    HOSTILE_ERRORS,
    HOSTILE_RESULTS,
    ORDERS,
    RESULTS,
    TOTALS,
)

LEASE_SECONDS = 20.0
"""Short, so that what only a lease frees is free soon; docs/reliability.md names it with the figures."""
BATCH_SECONDS = 40.0
_ORDER = "number bigint NOT NULL, customer int NOT NULL, amount bigint NOT NULL"
_INVOICE = f"{_ORDER}, zone string NOT NULL, release int NOT NULL"
_ACTION = "number bigint NOT NULL, action string NOT NULL"


def pipelines(release: int) -> list[QueuePipeline]:
    """All of them, as this release of the project declares them."""
    return [
        *(
            QueuePipeline(
                name=queue,
                input_queue=queue,
                output_queues=[output],
                body_schema=schema,
                transform=partial(transform, release=release),
                error_queue=ERRORS,
                lease_seconds=LEASE_SECONDS,
            )
            for queue, output, schema, transform in (
                (ORDERS, BILLING, _ORDER, accept),
                (BILLING, RESULTS, _INVOICE, bill),
            )
        ),
        QueuePipeline(
            name=HOSTILE,
            input_queue=HOSTILE,
            output_queues=[HOSTILE_RESULTS],
            body_schema=_ACTION,
            transform=obey,
            error_queue=HOSTILE_ERRORS,
            # Two attempts: each attempt of a message that kills Spark takes as long as Spark's start.
            recoverability=Recoverability(immediate_retries=0, delayed_retries=1, delayed_retry_seconds=2),
            batch_seconds=BATCH_SECONDS,
            lease_seconds=LEASE_SECONDS,
        ),
    ]


def accept(messages: DataFrame, release: int) -> DataFrame:
    """Send every order on, and add it to the totals; through a temporary view of the commonest name."""
    messages.createOrReplaceTempView("messages")
    found = messages.sparkSession.sql("SELECT origin, payload, current_timezone() AS zone FROM messages")
    order = F.col("payload")
    invoice = F.struct(order.number, order.customer, order.amount, "zone", F.lit(release).alias("release"))
    return found.select("origin", each(send(BILLING, json=invoice), _total(TOTALS)))


def bill(messages: DataFrame, release: int) -> DataFrame:
    """The same once more, to the results."""
    messages.createOrReplaceTempView("messages")
    found = messages.sparkSession.sql("SELECT origin, payload, current_timezone() AS zone FROM messages")
    invoice = F.col("payload")
    result = F.struct(
        invoice.number,
        invoice.customer,
        invoice.amount,
        F.array(invoice.zone, "zone").alias("zones"),
        F.array(invoice.release, F.lit(release)).alias("releases"),
    )
    return found.select("origin", each(send(RESULTS, json=result), _total(BILLED)))


def _total(table: str) -> TableRow:
    order = F.col("payload")
    return add_to(table, key={"customer": order.customer}, add={"messages": 1, "amount": order.amount})
