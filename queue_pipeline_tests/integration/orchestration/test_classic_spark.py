"""The worked example without Spark Connect: a session inside the run, as on a cluster's driver."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.spark.cluster_run import cluster_run
from tools.example import shop
from tools.example.orders import good_orders, order_body, order_message

COMMAND = [str(Path(sys.executable).with_name("dagster")), "job", "execute", "-m", "queue_pipeline.definitions"]


@pytest.mark.slow
def test_a_classic_session_processes_the_same_orders(sqlite, tmp_path):
    transport = sqlite.transport()
    shop.install(transport)
    orders = good_orders(3)
    transport.send("orders", [order_message(order_body(next(orders))) for _ in range(20)])
    transport.send("orders", order_message(b'{"OrderId": "bad"}'))
    settings = {
        "QUEUE_PIPELINE_DATABASE": sqlite.url,
        "QUEUE_PIPELINE_SPARK": "local[2]",
        "DAGSTER_HOME": str(tmp_path),
        "PYTHONWARNINGS": "ignore",
    }
    # A process with a Connect session passes its mode on to those that it starts.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    outcome = subprocess.run(
        [*COMMAND, "-j", "orders_pipeline"], env={**inherited, **settings}, capture_output=True, text=True, timeout=280
    )
    assert outcome.returncode == 0, outcome.stderr[-5000:]
    assert [transport.peek(queue) for queue in ("orders", "billing", "shipping", "error")] == [0, 20, 20, 1]
    assert sum(total.orders for total in shop.totals(transport)) == 20
    assert transport.claims.list() == []


@pytest.mark.slow
def test_executors_of_a_classic_spark_take_batches_side_by_side(sqlite, tmp_path):
    """In threads of their own, which have no session unless they are given one."""
    transport = sqlite.transport()
    transport.install("orders", "billing")
    transport.send("orders", [new_message(str(number)) for number in range(8)])
    with cluster_run("waiting", sqlite.url, "local[2]", {}, tmp_path / "run", batch=2) as run:
        run.go_on()
        result = run.result()
    assert (result["reason"], result["messages"], result["failed_attempts"]) == ("the queue is empty", 8, 0)
    assert sorted(int(shown.body) for shown in transport.show("billing", 100)) == list(range(8))
    assert transport.claims.list() == []
