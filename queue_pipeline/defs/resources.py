"""Where the queues and Spark are: two environment variables, read when a run or a tick starts."""

from __future__ import annotations

import os

import dagster as dg

from queue_pipeline.orchestration.names import SPARK, TRANSPORT
from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE
from queue_pipeline.transport.queues import SUBSCRIPTIONS_VARIABLE


@dg.definitions
def resources() -> dg.Definitions:
    """The database by name of its variable, so that its password is never part of a configuration."""
    database = dg.EnvVar(ENVIRONMENT_VARIABLE) if ENVIRONMENT_VARIABLE in os.environ else None
    subscriptions = dg.EnvVar(SUBSCRIPTIONS_VARIABLE) if SUBSCRIPTIONS_VARIABLE in os.environ else None
    return dg.Definitions(
        resources={
            TRANSPORT: QueueTransportResource(database=database, subscriptions_table=subscriptions),
            SPARK: SparkResource(spark_config=spark_config()),
        }
    )
