"""The pipeline of ours that is measured: orders in, invoices out, with all guarantees."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.processing.drain import Drain
from queue_pipeline.processing.executors.staging import Executors
from queue_pipeline.processing.figures import RunFigures
from queue_pipeline.processing.outcomes import each, send
from queue_pipeline.processing.pipeline import Output, QueuePipeline
from queue_pipeline.processing.recovery import Recovery
from queue_pipeline.processing.spark_internals import AttemptSessions
from queue_pipeline.processing.transforming import SparkTransformer
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks.consumers.invoices import ENDPOINT, MESSAGE_TYPE

ORDER = (
    "`order` bigint NOT NULL, customer string NOT NULL, placed string, note string, "
    "lines array<struct<sku: string, quantity: int, price: double>>"
)
LARGEST_EXECUTOR_BATCH = 50_000
OWNER = "bench"


def invoice(order: Column) -> Column:
    """What everybody computes of an order; `consumers.invoices` has it in Python."""
    total = F.aggregate(order.lines, F.lit(0.0), lambda sum_, line: sum_ + line.quantity * line.price)
    kept = (order[name].alias(name) for name in ("order", "customer", "note", "lines"))
    return F.struct(*kept, F.round(total, 2).alias("total"))


def send_invoices(messages: DataFrame) -> DataFrame:
    """The transform of the pipeline."""
    return messages.select("origin", each(send("results", json=invoice(F.col("payload")))))


def declare(**options: Any) -> QueuePipeline:
    """The pipeline with default settings, but that it ends when its queue is empty."""
    return QueuePipeline(
        name="invoices",
        input_queue=ENDPOINT,
        output_queues=[Output(queue="results", message_type=MESSAGE_TYPE)],
        body_schema=ORDER,
        transform=send_invoices,
        linger_seconds=0.0,
        **options,
    )


def by_driver() -> QueuePipeline:
    """Batches through the driver, with default settings."""
    return declare(travel="driver")


def by_executors(rows: int) -> QueuePipeline:
    """Large batches by the executors, at least two of them, as many as are in work at once."""
    batch = min(LARGEST_EXECUTOR_BATCH, max(1, -(-rows // 2)))
    return declare(travel="executors", batch_messages=batch, batch_bytes=2 * 1024**3)


def drain(pipeline: QueuePipeline, transport: QueueTransport, spark: SparkResource) -> RunFigures:
    """Work the queue off as a run of the pipeline does."""
    sessions = AttemptSessions(lambda: spark.spark_session)
    transformer = SparkTransformer(pipeline, sessions)
    executors = Executors(pipeline, transport, sessions)
    recovery = Recovery(pipeline, transport, transformer, executors)
    figures = RunFigures()
    ended = Drain(
        pipeline,
        transport,
        OWNER,
        recovery.attempt,
        slots=pipeline.slots,
        limit=recovery.limit,
        on_attempt=figures.add,
    ).run()
    if ended.failure is not None:
        raise ended.failure
    return figures
