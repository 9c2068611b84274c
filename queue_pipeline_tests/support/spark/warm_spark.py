"""One Spark for the whole suite: the local Connect server that the product itself keeps warm, in a place of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql.connect.session import SparkSession as RemoteSession

from queue_pipeline.processing.spark.warm_server import find

DISCOVERY_VARIABLE = "SPARK_LOCAL_CONNECT_DISCOVERY"
ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def users_spark(folder: Path, python: Path) -> Iterator[dict[str, str]]:
    """The environment of a server that the commands of a user start, with the Python of the user.

    It is another one than the suite's: workers of the server that a user's project started know no module of the tests.
    """
    settings = {
        DISCOVERY_VARIABLE: str(folder / "connect.json"),
        "QUEUE_PIPELINE_SPARK": "warm:local[2]",
        "SPARK_TESTING": "1",
        "PYSPARK_PYTHON": str(python),
    }
    try:
        yield settings
    finally:
        _stop(settings)


def _stop(settings: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pyspark.sql.connect.local_server", "--stop"]
    subprocess.run(command, env={**os.environ, **settings}, capture_output=True)


@contextmanager
def private_spark(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a server of these tests alone, started and stopped by this function.

    Processes that tests start inherit the variables and share the server. None of them may start it: its workers have
    the modules and the folder of the process that did.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        DISCOVERY_VARIABLE: str(folder / "connect.json"),
        "QUEUE_PIPELINE_SPARK": "warm:local[2]",
        "SPARK_TESTING": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        start = [str(Path(sys.executable).with_name("queue-pipeline")), "spark", "start"]
        # Its stdout is not that of `scripts/bench --json`.
        subprocess.run(start, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
        yield settings
    finally:
        _end_session()
        _stop(settings)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_session() -> None:
    """End this process's session before its server: at exit a client without a server waits for minutes."""
    session = RemoteSession._get_default_session()
    if session is not None and find() is not None:
        session.stop()
