"""What the tests of Dagster's objects share: an instance in memory, and a pipeline's queues."""

import dagster as dg
import pytest


@pytest.fixture
def instance():
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


@pytest.fixture
def queues(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


@pytest.fixture
def warm(spark, spark_resource):
    """The Spark of the suite, started: Dagster makes a copy of the resource that finds the same session."""
    return spark_resource
