"""Pipelines where dagster-pyspark is not installed: each of its releases needs one patch release of Dagster."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
sys.modules["dagster_pyspark"] = sys.modules["dagster_spark"] = None
import dagster as dg
from queue_pipeline import QueueTransport, SparkResource, new_message, queue_definitions
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline_tests.support.dagster import pipelines

database = sys.argv[1]
spark = SparkResource(spark_config={**spark_config(), "spark.sql": {"shuffle": {"partitions": 1}}})
definitions = queue_definitions([pipelines.declare()], database=database, spark=spark)
assert spark.properties["spark.sql.shuffle.partitions"] == "1"
assert SparkResource.__mro__[1].__module__ == "queue_pipeline.orchestration.resources"
with QueueTransport(database) as transport, dg.DagsterInstance.ephemeral() as instance:
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", new_message("1"))
    assert definitions.resolve_job_def("orders_pipeline").execute_in_process(instance=instance).success
    print([shown.body for shown in transport.show("billing")])
"""


@pytest.mark.usefixtures("spark_settings")
def test_a_pipeline_runs_without_dagster_pyspark(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, f"sqlite:///{tmp_path}/queues.db"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout) == (0, "[b'1']\n"), ran.stderr
