"""The names under which queues and pipelines appear in Dagster, in one place so that a person can guess them."""

from __future__ import annotations

import re

import dagster as dg

from queue_pipeline.processing.pipeline import QueuePipeline

PIPELINE_TAG = "queue_pipeline/pipeline"
SLOTS_TAG = "queue_pipeline/slots"
SATELLITE_TAG = "queue_pipeline/satellite"
TRANSPORT = "transport"
SPARK = "spark"
QUEUES_GROUP = "queues"


def queue_key(queue: str) -> dg.AssetKey:
    """The asset of a queue: `queues/orders`, and `queues/dbo/orders` where the address names a schema."""
    parts = [part for part in re.split(r"[^A-Za-z0-9_\-]+", queue) if part]
    return dg.AssetKey(["queues", *parts])


def pipeline_key(pipeline: QueuePipeline) -> dg.AssetKey:
    """The asset of a pipeline."""
    return dg.AssetKey([pipeline.name])


def job_name(pipeline: QueuePipeline) -> str:
    """The job that runs a pipeline."""
    return f"{pipeline.name}_pipeline"


def owner(run_id: str) -> str:
    """Under which name a run holds its claims."""
    return f"run {run_id}"
