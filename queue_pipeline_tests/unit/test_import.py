"""Importing the package changes nothing in the process that imports it."""

import json
import subprocess
import sys

PROGRAM = """
import gc, importlib, json, os, sys, pyarrow, pyspark.sql, dagster

def state():
    return [dict(os.environ), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug()]

before = state()
changed = []
for module in sys.argv[1:]:
    importlib.import_module(module)
    if state() != before:
        changed.append(module)
        before = state()
print(json.dumps(changed))
"""
MODULES = [
    "queue_pipeline",
    "queue_pipeline.transport",
    "queue_pipeline.client",
    "queue_pipeline.cli.app",
    "queue_pipeline.processing.run.pipeline_run",
    "queue_pipeline.processing.source.source",
    "queue_pipeline.processing.batch.tasks",
    "queue_pipeline.orchestration.definitions",
    "queue_pipeline.definitions",
]


def test_imports_set_no_environment_variable_and_leave_the_garbage_collector_alone():
    # Dagster and Spark are imported first: what they change is not ours.
    ran = subprocess.run([sys.executable, "-c", PROGRAM, *MODULES], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout) == []
