"""The fixtures in a project of a user's own: its tests, run by pytest in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

TESTS = """
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.client import QueueClient
from queue_pipeline.processing.declaration.outcomes import each, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.testing import run_transform


def double(messages: DataFrame) -> DataFrame:
    return messages.select("origin", each(send("billing", json=F.struct((F.col("payload.n") * 2).alias("n")))))


doubled = QueuePipeline(
    name="doubled", input_queue="orders", output_queues=["billing"], transform=double, body_schema="n int NOT NULL"
)


def test_numbers_are_doubled():
    assert run_transform(doubled, [{"n": 1}, {"n": 2}]).bodies("billing") == [{"n": 2}, {"n": 4}]


def test_text_is_refused(queue_spark):
    result = run_transform(doubled, [{"n": "one"}], spark=queue_spark)
    assert [failure.error_type for failure in result.failures] == ["MessageBodyUnreadable"]


def test_a_client_sends(queue_transport):
    queue_transport.install("orders")
    with QueueClient(queue_transport, "shop", create=True) as client:
        client.send("orders", {"n": 1})
    assert queue_transport.peek("orders") == 1


def test_queues_are_fresh_in_every_test(queue_transport):
    queue_transport.install("orders")
    assert queue_transport.peek("orders") == 0
"""


@pytest.mark.usefixtures("spark")
def test_the_fixtures_work_in_a_users_project(tmp_path, spark_settings):
    (tmp_path / "test_shop.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "queue_pipeline.testing.plugin", "--durations=4", "-vv"]
    environment = {**os.environ, **spark_settings, "PYTHONPATH": str(Path(__file__).parents[3])}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert "4 passed" in ran.stdout, ran.stdout + ran.stderr
