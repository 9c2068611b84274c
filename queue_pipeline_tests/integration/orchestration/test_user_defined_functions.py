"""Functions that a module makes with `@udf` and `@pandas_udf` when it is loaded work on every kind of Spark."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.command_line import environment
from queue_pipeline_tests.support.dagster.dagster_processes import START_SECONDS, dagster_processes
from queue_pipeline_tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[3]
DAGSTER = str(Path(sys.executable).with_name("dagster"))
SHOP = "queue_pipeline_tests.support.spark.udf_shop"
LOUD = "ABC!"
PATIENCE = 120.0
RESULT = [LOUD, LOUD, ["a", "b", "c"], LOUD, LOUD, LOUD, LOUD, ["abc"], LOUD, LOUD]
PROJECT = """

import dagster as dg

from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.orchestration.resources import QueueTransportResource
from queue_pipeline.processing.spark.settings import spark_config

resources = {
    "transport": QueueTransportResource(database=dg.EnvVar("QUEUE_PIPELINE_DATABASE")),
    "spark": SparkResource(spark_config=spark_config()),
}
defs = dg.Definitions.merge(build_definitions([phones], autostart=False), dg.Definitions(resources=resources))
"""


def execute(module, job, home, **variables):
    """What the command line of Dagster does: a process that loads the project before it starts Spark."""
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    ran = subprocess.run(
        [DAGSTER, "job", "execute", "-m", module, "-j", job],
        cwd=home,
        env=environment(**variables, DAGSTER_HOME=str(home), PYTHONWARNINGS="ignore"),
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]


@pytest.fixture
def queues(sqlite):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", [new_message('{"text": "abc"}') for _ in range(3)])
    return transport


def sent(transport):
    assert (transport.peek("orders"), transport.peek("error"), transport.claims.list()) == (0, 0, [])
    return [list(json.loads(shown.body).values()) for shown in transport.show("billing", 100)]


def test_functions_work_on_the_warm_spark(queues, sqlite, spark, spark_settings, tmp_path):
    execute(SHOP, "words_pipeline", tmp_path / "home", **spark_settings, QUEUE_PIPELINE_DATABASE=sqlite.url)
    assert sent(queues) == [RESULT] * 3


@pytest.mark.slow
def test_functions_work_in_a_run_that_a_code_server_starts(queues, sqlite, spark, spark_settings):
    variables = environment(**spark_settings, QUEUE_PIPELINE_DATABASE=sqlite.url, PYTHONWARNINGS="ignore")
    with dagster_processes(variables, module=SHOP) as dagster:
        eventually(dagster.is_ready, seconds=START_SECONDS)
        run_id = dagster.launch("words_pipeline")
        eventually(lambda: dagster.run(run_id).status in ("SUCCESS", "FAILURE"), seconds=PATIENCE)
        assert dagster.run(run_id).status == "SUCCESS", dagster.logs()
    assert sent(queues) == [RESULT] * 3


@pytest.mark.slow
@pytest.mark.parametrize("route", ["local", "executors"])
def test_functions_work_on_a_classic_spark(queues, sqlite, tmp_path, route):
    settings = {"QUEUE_PIPELINE_DATABASE": sqlite.url, "QUEUE_PIPELINE_SPARK": "local[2]", "UDF_ROUTE": route}
    execute(SHOP, "words_pipeline", tmp_path / "home", **settings)
    assert sent(queues) == [RESULT] * 3


def test_the_example_of_the_documentation_runs(queues, sqlite, spark, spark_settings, tmp_path):
    (block,) = re.findall(
        r"```python\n(# queue_pipeline/defs/phones\.py\n.*?)```", (ROOT / "docs/pipelines.md").read_text(), re.S
    )
    (tmp_path / "phone_shop.py").write_text(block + PROJECT)
    queues.install("phones", plain_queues=["contacts"])
    queues.send("phones", new_message('{"number": "+43 (1) 234-56", "name": " ada  LOVELACE "}'))
    settings = {**spark_settings, "QUEUE_PIPELINE_DATABASE": sqlite.url, "PYTHONPATH": str(tmp_path)}
    execute("phone_shop", "phones_pipeline", tmp_path / "home", **settings)
    (shown,) = queues.show("contacts", 100)
    assert json.loads(shown.body) == {"number": "+43123456", "name": "Ada Lovelace"}
