"""Makes Spark ready: the same Python everywhere, and a clear error at once where the client would wait for minutes."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from urllib.parse import urlsplit

from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.spark.settings import master_addresses

CONNECT_TIMEOUT_SECONDS = 5.0
DEFAULT_CONNECT_PORT = 15002
OLDEST_JAVA = 17


def prepare_environment() -> None:
    """Let Spark's workers use this Python; by default they take whatever `python3` is on the path."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def check_reachable(config: dict[str, str]) -> None:
    """Fail within seconds where Spark cannot be there: no Java, or nobody behind the address."""
    remote = config.get("spark.remote", "")
    if remote.startswith("sc://"):
        _check_server(remote)
    else:
        check_java()
        _check_master(config.get("spark.master", ""))


def _check_server(remote: str) -> None:
    address = urlsplit(remote.split(";", 1)[0])
    host, port = address.hostname or "localhost", address.port or DEFAULT_CONNECT_PORT
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_SECONDS).close()
    except OSError as error:
        raise SparkUnavailableError(
            f"the Spark Connect server at {host}:{port} does not answer ({error}); start it, or correct "
            "QUEUE_PIPELINE_SPARK (spark.remote of the spark resource)"
        ) from None


def _check_master(master: str) -> None:
    """A driver would try for a minute to register; of several masters one has to be there."""
    problems = []
    for host, port in master_addresses(master):
        try:
            socket.create_connection((host, port), CONNECT_TIMEOUT_SECONDS).close()
        except OSError as error:
            problems.append(f"{host}:{port} ({error})")
        else:
            return
    if problems:
        raise SparkUnavailableError(
            f"no Spark master answers at {', '.join(problems)}; start it (one on this machine: scripts/cluster start), "
            "or correct QUEUE_PIPELINE_SPARK (spark.master of the spark resource)"
        )


def check_java() -> None:
    """Fail where there is no Java that Spark can run on."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        raise SparkUnavailableError(
            f"Spark needs Java {OLDEST_JAVA} or newer and there is none; install it (Debian: apt-get install "
            "openjdk-17-jre-headless, or run scripts/bootstrap), or set JAVA_HOME"
        )
    words = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30).stderr
    version = re.search(r'version "(\d+)', words)
    if version and int(version[1]) < OLDEST_JAVA:
        raise SparkUnavailableError(f"Spark needs Java {OLDEST_JAVA} or newer; {java} is {version[1]}; set JAVA_HOME")
