"""The process from which Spark forks its Python workers, with all loaded that tasks of ours need.

Spark's own loads next to nothing, and every worker by itself: more than a second of processor time each, and again when
a worker was idle for a minute. `spark.python.daemon.module` names this one where workers are known to have it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os

LOADED = (
    "pyspark.worker",
    # Arrow looks for it when it first makes a scalar.
    "pandas",
    "queue_pipeline.processing.executors.source",
    "queue_pipeline.processing.executors.tasks",
)
DRIVER = "sqlalchemy.dialects.postgresql.psycopg"
"""With psycopg, of an extra, so that it may be missing."""


def load() -> None:
    """Import what workers will need, and keep them from searching it for garbage."""
    # A process is forked with the thread that forks it and no other: what is loaded should start none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for module in LOADED:
        importlib.import_module(module)
    with contextlib.suppress(ImportError):
        importlib.import_module(DRIVER)
        importlib.import_module("psycopg")
    gc.freeze()


if __name__ == "__main__":
    load()
    importlib.import_module("pyspark.daemon").manager()
