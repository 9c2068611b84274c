"""Environments in which every message fails, with a real Spark: nothing is dead-lettered, and everything says why."""

import importlib
import json
import os
import socket
import subprocess
import sys

import dagster as dg
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.checks import AGE, check_pipeline
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines

ONCE = {"immediate_retries": 0, "delayed_retries": 0, "alike_failures": 2}
COUNT = 5


def by_worker(function):
    """A transform whose function of Python runs in Spark's workers."""

    def transform(messages):
        return messages.select("origin", F.udf(function, StringType())(F.col("body").cast("string")).alias("body"))

    return transform


def needs_a_package(text):
    package = importlib.import_module("package_that_is_not_installed")

    return package.price(text)


def needs_a_service(text):
    with socket.create_connection(("127.0.0.1", 1), timeout=1):
        return text


def needs_space(text):
    """The device of Linux that is always full."""
    with open("/dev/full", "w") as file:
        file.write(text)
    return text


def expects_another_format(text):
    return json.loads(text)["Version2"]["n"]


def plans_too_deep(messages):
    deep = F.col("body").cast("string")
    for number in range(5_000):
        deep = F.concat(deep, F.lit(str(number)))
    return messages.select("origin", deep.alias("body"))


BROKEN = {
    "ModuleNotFoundError": by_worker(needs_a_package),
    "ConnectionRefusedError": by_worker(needs_a_service),
    "OSError: [Errno 28] No space left on device": by_worker(needs_space),
    "KeyError": by_worker(expects_another_format),
    "RecursionError": plans_too_deep,
}


@pytest.fixture
def orders(sqlite):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", [new_message(json.dumps({"n": n})) for n in range(COUNT)])
    return transport


def job_of(pipeline, resources):
    definitions = dg.Definitions.merge(
        build_definitions([pipeline], autostart=False), dg.Definitions(resources=resources)
    )
    return definitions.resolve_job_def(names.Names().job(pipeline))


def execute(pipeline, resources, instance):
    return job_of(pipeline, resources).execute_in_process(instance=instance, raise_on_error=False)


def failure_of(result):
    (event,) = [event for event in result.all_events if event.is_step_failure]
    return str(event.step_failure_data.user_failure_data)


def kept(transport):
    claims = transport.claims.list()
    waiting = transport.peek("orders") + sum(claim.messages for claim in claims)
    return (
        waiting,
        sum(claim.failures for claim in claims),
        transport.peek("error"),
        transport.status("orders")[0].delayed,
    )


REPRESENTATIVE = ("ModuleNotFoundError", "RecursionError")
"""One cause in Spark's workers, and one in this process; the others run with `scripts/test --all`."""


@pytest.mark.parametrize(
    "cause", [pytest.param(one, marks=() if one in REPRESENTATIVE else pytest.mark.slow) for one in BROKEN]
)
def test_messages_stay_uncounted_until_the_environment_works(sqlite, orders, warm, instance, cause):
    resources = pipelines.resources(sqlite, warm)
    pipeline = pipelines.declare(transform=BROKEN[cause], recoverability=ONCE, batch_messages=2)
    result = execute(pipeline, resources, instance)
    assert not result.success
    reason = failure_of(result)
    assert cause in reason
    assert "is to blame: " in reason
    assert "Fix the cause" in reason
    assert kept(orders) == (COUNT, 0, 0, 0)
    (known,) = orders.failures.list().values()
    assert cause in known.last_error
    check = check_pipeline(orders, pipelines.declare(oldest_message_seconds=0.001), AGE)
    assert cause in check.description
    assert execute(pipelines.declare(recoverability=ONCE), resources, instance).success
    assert (orders.peek("billing"), orders.failures.list()) == (COUNT, {})


def test_a_success_in_an_earlier_run_is_known_while_code_and_spark_are_the_same(
    sqlite, orders, warm, instance, monkeypatch
):
    """One bad message, and nothing else to try: it is to blame, because this code has processed messages before."""
    resources = pipelines.resources(sqlite, warm)
    pipeline = pipelines.declare(transform=by_worker(refuses_seven), recoverability=ONCE)
    monkeypatch.setenv("QUEUE_PIPELINE_WATCH_CODE", "1")
    job = job_of(pipeline, resources)
    assert job.execute_in_process(instance=instance).success
    orders.send("orders", new_message(json.dumps({"n": 7})))
    assert job.execute_in_process(instance=instance).success
    assert (orders.peek("billing"), orders.peek("error")) == (COUNT, 1)


def refuses_seven(text):
    if json.loads(text)["n"] == 7:
        raise ValueError("not seven")
    return text


@pytest.mark.heavy
def test_spark_that_cannot_start_says_what_to_do():
    """In a process of its own, because a process has one Spark."""
    program = """
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.errors import SparkUnavailableError
try:
    SparkResource(spark_config={"spark.master": "local[1]", "spark.driver.memory": "100m"}).spark_session
except SparkUnavailableError as error:
    print("unavailable:", error)
"""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    outcome = subprocess.run(
        [sys.executable, "-c", program], env=inherited, capture_output=True, text=True, timeout=120
    )
    assert outcome.stdout.startswith("unavailable: Spark cannot be started ("), outcome.stderr[-2_000:]
    assert "check QUEUE_PIPELINE_SPARK and QUEUE_PIPELINE_SPARK_CONF" in outcome.stdout
