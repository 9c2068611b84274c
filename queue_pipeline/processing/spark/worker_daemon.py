"""The process from which Spark forks its Python workers, with the modules of our tasks loaded.

Otherwise each worker loads them itself, which takes more than a second of processor time, again after each idle minute.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from typing import Any

from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.processing.spark.internals.patches import wrap_tasks

LOADED = (
    "pyspark.worker",
    # Arrow looks for it when it first makes a scalar.
    "pandas",
    "queue_pipeline.processing.source.source",
    "queue_pipeline.processing.batch.tasks",
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


def follow_code() -> None:
    """Have workers reload the project's modules after a file changed.

    Spark reuses workers for all runs and sends functions of a module by name: a worker would call the old code.
    """
    code = SourceCode()

    def load_new_code(task: Any) -> None:
        # The task: an idle worker waits here for it, and may do so for long.
        task.peek(1)
        if code.change() or code.uncertain:
            code.forget()

    wrap_tasks(load_new_code, code.look)


if __name__ == "__main__":
    load()
    follow_code()
    importlib.import_module("pyspark.daemon").manager()
