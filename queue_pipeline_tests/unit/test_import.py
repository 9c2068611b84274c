"""Importing the package changes nothing in the process that imports it."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import gc, importlib, json, os, pyarrow, pyspark.sql, dagster

def state():
    return [dict(os.environ), gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug()]

before = state()
importlib.import_module({module!r})
print(json.dumps([before, state()]))
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


@pytest.mark.parametrize("module", MODULES)
def test_an_import_sets_no_environment_variable_and_leaves_the_garbage_collector_alone(module):
    # Dagster and Spark are imported first: what they do is theirs.
    program = PROGRAM.format(module=module)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    before, after = json.loads(ran.stdout)
    assert after == before
