"""Pipelines for tests, and definitions that a process started by Dagster can build again from its environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dagster as dg
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import QueueTransportResource, SparkResource
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline_tests.support.databases.backends import Backend

DATABASE, SCHEMA, BROKEN = "TEST_DATABASE", "TEST_SCHEMA", "TEST_BROKEN"


def forward(messages: DataFrame) -> DataFrame:
    """Send bodies on as they are."""
    return messages.select("origin", "body")


def fragile(messages: DataFrame) -> DataFrame:
    """Send bodies on, unless the file that the environment names says that this is broken."""
    if Path(os.environ[BROKEN]).exists():
        return messages.select("origin", "a_column_that_is_not_there")
    return messages.select("origin", F.concat(F.lit("done "), F.col("body").cast("string")).alias("body"))


def declare(**options: Any) -> QueuePipeline:
    """A pipeline from `orders` to `billing` that does not linger."""
    given = {
        "name": "orders",
        "input_queue": "orders",
        "output_queues": ["billing"],
        "transform": forward,
        "linger_seconds": 0,
        "peek_delay": 0.1,
    }
    return QueuePipeline(**{**given, **options})


def resources(backend: Backend, spark: SparkResource | None = None) -> dict[str, Any]:
    """The resources of a project on a database of a test's own."""
    return {
        "transport": QueueTransportResource(database=backend.url, default_schema=backend.schema),
        "spark": spark or SparkResource(spark_config=spark_config()),
    }


def fragile_job() -> dg.JobDefinition:
    """The job of a pipeline that a file can break; where its queues are is read from the environment by each run."""
    return _fragile(QueueTransportResource(database=dg.EnvVar(DATABASE), default_schema=dg.EnvVar(SCHEMA)))


def fragile_job_without_schema() -> dg.JobDefinition:
    """The same where a database has no schemas."""
    return _fragile(QueueTransportResource(database=dg.EnvVar(DATABASE)))


def fragile_job_of_processes() -> dg.JobDefinition:
    """The same where every step is a process."""
    return fragile_job().with_executor_def(dg.multiprocess_executor)


def _fragile(database: QueueTransportResource) -> dg.JobDefinition:
    pipeline = declare(transform=fragile, batch_messages=4, max_concurrency=2)
    definitions = dg.Definitions.merge(
        build_definitions([pipeline], autostart=False),
        dg.Definitions(resources={"transport": database, "spark": SparkResource(spark_config=spark_config())}),
    )
    return definitions.resolve_job_def("orders_pipeline")
