"""A transform that calls `stop()` of Spark ends nothing: neither its own batch nor the Spark of others."""

import os
import subprocess
import sys
import textwrap

import pytest
from pyspark.sql import SparkSession

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.processing.processed import process

CLASSIC = textwrap.dedent("""
    from pyspark.sql import SparkSession
    from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
    from queue_pipeline.processing.spark.internals.calls import collected, driver_exit_code, physical_plan
    from queue_pipeline.processing.spark.internals.parts import missing_parts
    from queue_pipeline.processing.batch.executors import is_narrow
    base = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    with AttemptSessions(lambda: base).session() as session:
        session.stop()
        session.sparkContext.stop()
        SparkSession.builder.getOrCreate().stop()
        print("rows", collected(session.range(3)).num_rows)
        plans = [session.range(3), session.range(3).groupBy("id").count()]
        print("narrow", [is_narrow(physical_plan(plan)) for plan in plans], driver_exit_code(), missing_parts())
    base.stop()
    print("stopped", base.sparkContext._jsc is None)
""")


def stops(messages):
    messages.sparkSession.stop()
    SparkSession.active().stop()
    return messages.select("origin", "body")


@pytest.mark.parametrize("route", ["local", "executors"])
def test_a_transform_that_stops_spark_is_processed_and_stops_nothing(postgresql, spark, route, caplog):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", [new_message(str(number)) for number in range(3)])
    pipeline = QueuePipeline(
        name="orders", input_queue="orders", output_queues=["billing"], transform=stops, route=route
    )
    sessions = AttemptSessions(lambda: spark)
    transformer, executors = SparkTransformer(pipeline, sessions), Executors(pipeline, transport, sessions)
    processor = BatchProcessor(pipeline, transport, transformer, executors)
    report = process(processor, pipeline, transport.claim("orders", "me", 10))
    assert (report.messages, report.sent, list(report.failed)) == (3, 3, [])
    assert "a transform called stop() of Spark; it was ignored" in caplog.text
    with sessions.session() as other:
        assert other.range(3).count() == 3


@pytest.mark.slow
def test_a_classic_driver_also_keeps_running(tmp_path):
    """There `stop()` of any session ends the driver that all attempts of the run share."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    outcome = subprocess.run(
        [sys.executable, "-c", CLASSIC], env=inherited, cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    assert outcome.stdout.split("\n")[:3] == ["rows 3", "narrow [True, False] None {}", "stopped True"], outcome.stderr[
        -5000:
    ]
