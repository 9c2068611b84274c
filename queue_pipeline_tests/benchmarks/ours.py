"""The worked example as it ships, processed as a run does it: the only place that knows how a pipeline is run."""

from __future__ import annotations

from typing import Any

from queue_pipeline.defs.orders import orders
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import QueueTransport

LARGEST_EXECUTOR_BATCH = 50_000
OWNER = "bench"
TRANSPORT: dict[str, Any] = {"endpoint": orders.input_queue, "error_queue": orders.error_queue}
"""Options of the transport, as a run of the pipeline gives them."""


def example() -> QueuePipeline:
    """The pipeline `orders` with its own settings, but that it ends when its queue is empty."""
    return _changed(linger_seconds=0.0)


def by_executors(rows: int) -> QueuePipeline:
    """The same by large batches that executors read and stage: at least two of them, as many as are in work at once."""
    batch = min(LARGEST_EXECUTOR_BATCH, max(1, -(-rows // 2)))
    return _changed(linger_seconds=0.0, route="executors", batch_messages=batch, batch_bytes=2 * 1024**3)


def drain(pipeline: QueuePipeline, transport: QueueTransport, spark: SparkResource) -> RunFigures:
    """Process the queue as a run of the pipeline does."""
    sessions = AttemptSessions(lambda: spark.spark_session)
    transformer = SparkTransformer(pipeline, sessions)
    executors = Executors(pipeline, transport, sessions)
    recovery = Recovery(pipeline, transport, transformer, executors)
    figures = RunFigures()
    ended = PipelineRun(
        pipeline,
        transport,
        OWNER,
        recovery,
        slots=pipeline.slots,
        on_attempt=figures.add,
    ).run()
    if ended.failure is not None:
        raise ended.failure
    return figures


def _changed(**values: Any) -> QueuePipeline:
    """The pipeline with other values; `model_copy` itself would accept names that no field has."""
    unknown = values.keys() - QueuePipeline.model_fields.keys()
    if unknown:
        raise ValueError(f"a pipeline has no {', '.join(sorted(unknown))}")
    return orders.model_copy(update=values)
