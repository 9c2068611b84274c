"""The names under which queues and pipelines appear in Dagster, in one place so that a person can guess them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import dagster as dg

if TYPE_CHECKING:
    # Not loaded for a name: it brings Spark, which a health check must not wait for.
    from queue_pipeline.processing.declaration.pipeline import QueuePipeline

PEEK_SENSOR = "peek_queues"
PIPELINE_TAG = "queue_pipeline/pipeline"
SLOTS_TAG = "queue_pipeline/slots"
CODE_TAG = "queue_pipeline/code"
"""Which code the code server had loaded when it defined the job of a run."""
_RUN = "run "
TRANSPORT = "transport"
SPARK = "spark"
GROUP = "queue_pipelines"
"""One for queues and pipelines: Dagster folds groups, and two of them would hide which queue leads where."""


def queue_key(queue: str) -> dg.AssetKey:
    """The asset of a queue: `queues/orders`, and `queues/dbo/orders` where the address names a schema."""
    return _key("queues", queue)


def event_key(event: str) -> dg.AssetKey:
    """The asset of an event type: `events/Shop/OrderAccepted`."""
    return _key("events", event)


def pipeline_key(pipeline: QueuePipeline) -> dg.AssetKey:
    """The asset of a pipeline."""
    return dg.AssetKey([pipeline.name])


def job_name(pipeline: QueuePipeline) -> str:
    """The job that runs a pipeline."""
    return f"{pipeline.name}_pipeline"


def dequeue_op(pipeline: QueuePipeline) -> str:
    """The step that claims."""
    return f"dequeue_{pipeline.name}"


def process_op(pipeline: QueuePipeline) -> str:
    """The step that processes."""
    return f"process_{pipeline.name}"


def defined_names(pipeline: QueuePipeline) -> set[str]:
    """What Dagster knows of a pipeline by name; jobs, graphs and ops share one space."""
    return {pipeline.name, job_name(pipeline), dequeue_op(pipeline), process_op(pipeline)}


def owner(run_id: str) -> str:
    """Under which name a run holds its claims and its places."""
    return f"{_RUN}{run_id}"


def run_of(owner: str) -> str | None:
    """The run that holds something under this name, if it is that of a run."""
    return owner.removeprefix(_RUN) if owner.startswith(_RUN) else None


def _key(folder: str, name: str) -> dg.AssetKey:
    parts = [part for part in re.split(r"[^A-Za-z0-9_\-]+", name) if part]
    # A name without a single letter that Dagster allows still needs a key of its own.
    return dg.AssetKey([folder, *(parts or [name.encode().hex()])])
