"""What the tests of Dagster's objects share: an instance in memory, and a pipeline's queues."""

import dagster as dg
import pytest

from queue_pipeline.orchestration.watch.upkeep import Upkeep
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.held_by_runs import Clock, keeper


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


@pytest.fixture
def home(tmp_path):
    """A folder for Dagster's own files."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    return folder


@pytest.fixture
def clock():
    """The time of the peek loop's upkeep, which a test moves on."""
    return Clock()


@pytest.fixture
def keep(queues, instance, clock):
    """Has the upkeep of a pipeline look again after some time."""
    return keeper(Upkeep([pipelines.declare(start_seconds=60)], clock), clock, instance, queues)
