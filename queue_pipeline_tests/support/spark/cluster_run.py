"""A run on a cluster, as a process of its own: it drains a queue by executors and writes down how that ended.

    python -m queue_pipeline_tests.support.spark.cluster_run FOLDER KIND BATCH

KIND is `example`, the worked example with tasks that fail at their first attempt, or `waiting`, which sends bodies on
and waits at the body `wait` until there is a file `go` in FOLDER.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.defs.orders import orders, price_orders
from queue_pipeline.errors import DatabaseUnavailableError
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.pipeline_run import PipelineRun, RunEnd
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.support.command_line import environment
from queue_pipeline_tests.support.spark.spark_cluster import JAVA_VARIABLE, QUICK
from tools.processes import Processes, tail

LEASE_SECONDS = 5.0
PATIENCE_SECONDS = 420.0
WAIT = b"wait"
ALL_MESSAGES = 1_000_000
"""A batch that holds whatever a test sends."""


@dataclass(frozen=True)
class ClusterRun:
    """A run at work."""

    processes: Processes
    process: subprocess.Popen[bytes]
    folder: Path
    log: Path

    def waits(self) -> bool:
        """Whether a task has come to the message at which it waits."""
        assert self.process.poll() is None, tail(self.log, 60)
        return any(self.folder.glob("waits.*"))

    def go_on(self) -> None:
        """Let the tasks that wait go on."""
        (self.folder / "go").touch()

    def hang(self) -> None:
        """Stop the driver with all of its processes, as a machine that is out of memory does. Executors go on."""
        self._signal(signal.SIGSTOP)

    def come_back(self) -> None:
        """Let the driver go on as if nothing had happened."""
        self._signal(signal.SIGCONT)

    def result(self) -> dict[str, Any]:
        """How it ended."""
        assert self.process.wait(PATIENCE_SECONDS) == 0, tail(self.log, 60)
        result: dict[str, Any] = json.loads((self.folder / "result").read_text())
        return result

    def _signal(self, number: signal.Signals) -> None:
        for pid in self.processes.alive():
            os.kill(pid, number)


@contextmanager
def cluster_run(
    kind: str,
    url: str,
    spark: str,
    access: Mapping[str, str],
    folder: Path,
    *,
    batch: int = ALL_MESSAGES,
    conf: str = "",
) -> Iterator[ClusterRun]:
    """A run on a database and a cluster, whose secrets `access` names; ended, whatever happens."""
    folder.mkdir()
    variables = {
        **access,
        "QUEUE_PIPELINE_DATABASE": url,
        "QUEUE_PIPELINE_SPARK": spark,
        "QUEUE_PIPELINE_SPARK_CONF": conf,
        JAVA_VARIABLE: QUICK,
        "PYTHONWARNINGS": "ignore",
    }
    processes, log = Processes(folder, environment(**variables)), folder.with_suffix(".log")
    command = [sys.executable, "-m", __name__, str(folder), kind, str(batch)]
    run = ClusterRun(processes, processes.start(command, log), folder, log)
    try:
        yield run
    finally:
        run.come_back()
        processes.end()


def _fails_at_first() -> Any:
    def fails_at_first(row_version: int) -> bool:
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0 and context.partitionId() % 3 == 1:
            raise RuntimeError(f"the first attempt at part {context.partitionId()} fails")
        return True

    return F.udf(fails_at_first, "boolean", useArrow=True)


def _unlucky(messages: DataFrame) -> Any:
    return price_orders(messages.where(_fails_at_first()("row_version")))


def _waiting(folder: str) -> Any:
    def wait(body: bytes) -> bytes:
        if body == WAIT:
            (Path(folder) / f"waits.{os.getpid()}").touch()
            limit = time.monotonic() + PATIENCE_SECONDS
            while not (Path(folder) / "go").exists():
                assert time.monotonic() < limit, "this task was not released in time"
                time.sleep(0.02)
        return body

    # A function of Spark's needs a session, which there is none of yet.
    return lambda messages: messages.select("origin", F.udf(wait, "binary", useArrow=True)("body").alias("body"))


def _pipeline(kind: str, folder: str, batch: int) -> QueuePipeline:
    common = {
        "route": "executors",
        "batch_messages": batch,
        "batch_bytes": 2 * 1024**3,
        "linger_seconds": 0.0,
        "lease_seconds": LEASE_SECONDS,
    }
    if kind == "example":
        return orders.model_copy(update={**common, "transform": _unlucky})
    given = {"name": "orders", "input_queue": "orders", "output_queues": ["billing"], "transform": _waiting(folder)}
    # Two slots would share what is meant to be one batch.
    return QueuePipeline(**given, **common, max_concurrency=1 if batch == ALL_MESSAGES else 2)


def _run(folder: str, kind: str, batch: int) -> dict[str, Any]:
    pipeline, figures = _pipeline(kind, folder, batch), RunFigures()
    spark = SparkResource(spark_config=spark_config())
    with QueueTransport(endpoint="orders") as transport:
        sessions = AttemptSessions(lambda: spark.spark_session)
        transformer = SparkTransformer(pipeline, sessions)
        executors = Executors(pipeline, transport, sessions)
        recovery = Recovery(pipeline, transport, transformer, executors)
        owner = f"run {os.getpid()}"
        drain = PipelineRun(
            pipeline,
            transport,
            owner,
            recovery,
            slots=pipeline.slots,
            on_attempt=figures.add,
        )
        try:
            ended = drain.run()
        except DatabaseUnavailableError as error:
            # A server that is still starting refuses the next claim, too.
            ended = RunEnd("the database is away", error)
    spark.spark_session.stop()
    failure = type(ended.failure).__name__ if ended.failure else None
    return {
        "reason": ended.reason,
        "failure": failure,
        "messages": figures.messages,
        "failed": figures.failed,
        "failed_attempts": figures.failed_attempts,
    }


if __name__ == "__main__":
    result = _run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    (Path(sys.argv[1]) / "result").write_text(json.dumps(result))
