"""Spark's Python workers as they are forked, and what plans show of what they do."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import types as T

from queue_pipeline.processing.batch.executors import _claimed, is_narrow
from queue_pipeline.processing.batch.tasks import Reading
from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.source.reader import claim_parts
from queue_pipeline.processing.spark.internals.calls import physical_plan
from queue_pipeline.processing.spark.worker_daemon import LOADED
from queue_pipeline.transport import new_message


def test_workers_are_forked_by_a_process_that_has_loaded_what_they_need(spark):
    def loaded(_):
        modules = (*LOADED, "queue_pipeline.definitions")
        command = Path(f"/proc/{os.getppid()}/cmdline").read_text().split("\0")
        yield pa.RecordBatch.from_pydict({"loaded": [sum(one in sys.modules for one in modules)], "by": [command[2]]})

    found = spark.range(1).mapInArrow(loaded, "loaded long, by string").collect()
    assert {tuple(row) for row in found} == {(len(LOADED), "queue_pipeline.processing.spark.worker_daemon")}


def test_what_forks_workers_has_no_threads_of_its_own_that_could_hold_a_lock():
    """But for that of an allocator which handles forks itself."""
    code = (
        "import os; from queue_pipeline.processing.spark.worker_daemon import load; load(); "
        "print(*(open(f'/proc/self/task/{one}/comm').read().strip() for one in os.listdir('/proc/self/task')))"
    )
    environment = {**os.environ, "SPARK_PYTHON_RUNTIME": "PYTHON_WORKER"}
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    threads = shown.stdout.split()
    assert len(threads) - threads.count("jemalloc_bg_thd") == 1, shown.stderr


def test_a_plan_shows_neither_where_the_database_is_nor_its_password(postgresql, spark):
    transport = postgresql.transport()
    transport.install("orders")
    transport.send("orders", [new_message("{}")])
    claim = transport.claim("orders", "me", 10)
    settings = executor_settings(transport)
    schema = T.StructType([T.StructField("id", T.StringType(), nullable=False)])
    frame = _claimed(spark, Reading(settings, claim, claim_parts(transport, claim), schema))
    plan = physical_plan(frame)
    assert Reading.__name__ in plan
    assert is_narrow(plan)
    password = settings.transport.database.password
    assert password
    assert not any(password in text for text in (plan, repr(settings), str(frame)))


def test_a_reused_worker_reloads_the_code_of_the_project_once_it_changed(spark, tmp_path):
    folder, module = str(tmp_path), f"prices_{os.getpid()}"
    file = tmp_path / f"{module}.py"

    def priced(batches):
        if folder not in sys.path:
            sys.path.insert(0, folder)
        tax = importlib.import_module(module).TAX
        # A worker that left something unread would not be used again.
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"tax": [tax], "worker": [os.getpid()]})

    def ask():
        return spark.range(0, 4, 1, 4).mapInArrow(priced, "tax long, worker long").collect()

    file.write_text("TAX = 20\n")
    before = {row.worker for _ in range(3) for row in ask()}
    file.write_text("TAX = 100\n")
    after = ask()
    assert {row.tax for row in after} == {100}
    assert before & {row.worker for row in after}, "no worker was used again: this has shown nothing"
