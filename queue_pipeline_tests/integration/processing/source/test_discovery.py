"""Spark finds `sql_queue` by itself, in classic Spark and by Connect; the page about it is run from top to bottom."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline.processing.spark.own_server import OwnServer
from queue_pipeline.processing.spark.settings import PUSHDOWN, spark_config
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.databases.failed import fail, failure

ROOT = Path(__file__).resolve().parents[4]
OTHER_DATABASE = 'QueueTransport("postgresql://…", schema="shop")'
AFTER = """
shown = spark.read.format("sql_queue").option("queue", "orders").load()
print("messages elsewhere:", [bytes(row.body) for row in shown.collect()])
"""


def blocks(page):
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


def program_of_the_page(other, checkpoint):
    """Everything that docs/spark.md shows, as one program; a stream of it takes what is there and ends."""
    text = "\n".join(blocks("docs/spark.md"))
    assert (
        text.count(OTHER_DATABASE) == text.count("/somewhere/durable") == text.count('processingTime="1 second"') == 1
    )
    text = text.replace(OTHER_DATABASE, f"QueueTransport({other!r})").replace("/somewhere/durable", str(checkpoint))
    before, stream, after = text.partition("stream = spark.readStream")
    head, start, rest = (stream + after).partition(".start()\n)")
    send_more = 'from queue_pipeline import new_message\ntransport.send("orders", new_message("later"))\n'
    ran = head.replace('processingTime="1 second"', "availableNow=True") + start + "\nquery.awaitTermination(120)\n"
    return before + send_more + ran + rest + AFTER


def run_program(text, environment, folder):
    (folder / "program.py").write_text(text)
    ran = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )
    assert ran.returncode == 0, ran.stderr[-5_000:]
    return ran.stdout


@pytest.mark.slow
@pytest.mark.parametrize("way", ["classic", "connect"])
def test_what_the_page_shows_runs_without_registering_anything(tmp_path, monkeypatch, way):
    here, elsewhere = (f"sqlite:///{tmp_path}/{name}.db" for name in ("here", "elsewhere"))
    with QueueTransport(here) as transport, QueueTransport(elsewhere) as other:
        transport.install("orders", "billing")
        transport.send("orders", [new_message(f"message {n}") for n in range(3)])
        fail(transport, failure(transport, **{"Shop.Tenant": "north"}), failure(transport))
        other.install("orders")
        other.send("orders", new_message("of the other database"))
        for name in ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_PYTHON"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("QUEUE_PIPELINE_DATABASE", here)
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
        text = program_of_the_page(elsewhere, tmp_path / "checkpoint")
        if way == "classic":
            environment = os.environ | {"PYSPARK_SUBMIT_ARGS": "--master local[1] pyspark-shell"}
            printed = run_program(text, environment, tmp_path)
        else:
            server = OwnServer(spark_config("warm:local[1]", {}))
            try:
                # What the client knows of the database is not what the server finds it by.
                environment = os.environ | {"SPARK_REMOTE": server.address}
                printed = run_program(text, environment, tmp_path)
            finally:
                server.end()
        assert "|Shop.NoStockError| north|       1|" in printed
        assert "messages elsewhere: [b'of the other database']" in printed
        billed = sorted(one.body for one in transport.browse("billing"))
        assert billed == [b"LATER", b"MESSAGE 0", b"MESSAGE 1", b"MESSAGE 2"]
        assert (transport.peek("orders"), transport.peek("error"), other.peek("orders")) == (0, 2, 1)


def test_sessions_of_pipelines_let_the_database_filter():
    assert {setting: spark_config(setting, {})[PUSHDOWN] for setting in (None, "local[2]", "sc://host", "yarn")} == {
        None: "true", "local[2]": "true", "sc://host": "true", "yarn": "true"
    }  # fmt: skip


LOOK = """
import pickle, sys, pkgutil
names = [one.name for one in pkgutil.iter_modules() if one.name.startswith("pyspark_")]
before = set(sys.modules)
import pyspark.sql.datasource
base = set(sys.modules)
module = __import__("pyspark_sql_queue")
loaded = sorted({name.partition(".")[0] for name in set(sys.modules) - base})
from pyspark.cloudpickle import dumps
source = module.DefaultSource
print("pyspark_sql_queue" in names, loaded, source.name(), issubclass(source, pyspark.sql.datasource.DataSource))
sys.stdout.flush()
sys.stdout.buffer.write(dumps(source))
"""
UNPICKLE = "import sys, pickle; print(pickle.loads(sys.stdin.buffer.read()).instance)"


def test_the_module_that_spark_imports_is_light_and_every_process_gets_the_same_source(tmp_path):
    ran = subprocess.run([sys.executable, "-c", LOOK], cwd=tmp_path, capture_output=True, timeout=60, check=True)
    words, _, pickled = ran.stdout.partition(b"\n")
    assert words.decode() == "True ['pyspark_sql_queue'] sql_queue True"
    instances = {
        subprocess.run([sys.executable, "-c", UNPICKLE], input=pickled, capture_output=True, check=True).stdout
        for _ in range(2)
    }
    assert len(instances) == 1 and instances != {b"\n"}
