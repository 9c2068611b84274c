"""A job for the executors of a cluster, in a process of its own: this one may hold another Spark session.

    python -m queue_pipeline_tests.support.spark.spark_cluster FOLDER ROWS

Each task leaves a file in FOLDER that names the worker which it runs on, and goes on when there is a file `go`.
The file `result` then holds the sum of what the tasks computed, and the workers whose results count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.spark.session import check_reachable, prepare_environment
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline_tests.support.command_line import environment
from tools.processes import Processes, tail

PARTITIONS = 4
PATIENCE_SECONDS = 120.0
QUICK = "-XX:+UseSerialGC"
"""For JVMs that live for seconds; conftest.py chooses the compiler."""
PROPERTY, VALUE = "spark.sql.shuffle.partitions", "3"
JAVA_VARIABLE = "JAVA_TOOL_OPTIONS"


@dataclass(frozen=True)
class Job:
    """A job at work."""

    process: subprocess.Popen[bytes]
    folder: Path
    log: Path

    def workers(self) -> set[str]:
        """The workers that have or had a task of it; fails with what the job said if it ended."""
        assert self.process.poll() is None, tail(self.log, 50)
        return {path.name.partition("@")[2] for path in self.folder.iterdir() if "@" in path.name}

    def result(self) -> tuple[int, set[str]]:
        """Let the tasks go on; the sum that they computed, and the workers that did."""
        (self.folder / "go").touch()
        assert self.process.wait(PATIENCE_SECONDS) == 0, tail(self.log, 50)
        result = json.loads((self.folder / "result").read_text())
        return result["sum"], set(result["workers"])


@contextmanager
def running_job(setting: str, access: Mapping[str, str], folder: Path, rows: int) -> Iterator[Job]:
    """A job as a driver, or as a client of a driver, by the setting that names Spark; ended, whatever happens."""
    folder.mkdir()
    variables = {
        **access,
        "QUEUE_PIPELINE_SPARK": setting,
        "QUEUE_PIPELINE_SPARK_CONF": f"{PROPERTY}={VALUE}",
        JAVA_VARIABLE: QUICK,
        "PYTHONWARNINGS": "ignore",
    }
    processes, log = Processes(folder, environment(**variables)), folder.with_suffix(".log")
    try:
        yield Job(processes.start([sys.executable, "-m", __name__, str(folder), str(rows)], log), folder, log)
    finally:
        processes.end()


def _double(folder: str) -> Any:
    def double(number: int) -> tuple[int, str]:
        context = TaskContext.get()
        assert context is not None
        # An executor works in …/<worker>/<application>/<executor>; Python does too, or below it for a Connect session.
        worker = next(part for part in reversed(Path.cwd().parts) if part.startswith("worker-"))
        (Path(folder) / f"{context.partitionId()}.{context.attemptNumber()}@{worker}").touch()
        limit = time.monotonic() + PATIENCE_SECONDS
        while not (Path(folder) / "go").exists():
            assert time.monotonic() < limit, "this task was not released in time"
            time.sleep(0.02)
        return number * 2, worker

    return F.udf(double, "doubled long, worker string", useArrow=False)


def _run(folder: str, rows: int) -> dict[str, Any]:
    config = spark_config()
    prepare_environment()
    check_reachable(config)
    builder: Any = SparkSession.builder
    for key, value in config.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        assert session.conf.get(PROPERTY) == VALUE
        computed = session.range(0, rows, 1, PARTITIONS).select(_double(folder)("id").alias("made")).collect()
    finally:
        session.stop()
    made = [row.made for row in computed]
    return {"sum": sum(each.doubled for each in made), "workers": sorted({each.worker for each in made})}


if __name__ == "__main__":
    result = _run(sys.argv[1], int(sys.argv[2]))
    (Path(sys.argv[1]) / "result").write_text(json.dumps(result))
