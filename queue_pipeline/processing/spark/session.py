"""Starts Spark sessions, with the same Python everywhere, and fails early if Spark cannot be reached."""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.results.exceptions import describe, in_a_line
from queue_pipeline.processing.spark.folder import private_folders
from queue_pipeline.processing.spark.internals.calls import endpoint, retry_while
from queue_pipeline.processing.spark.settings import master_addresses
from queue_pipeline.processing.spark.warm_server import end_unfinished, starts_beside, taken_port

CONNECT_TIMEOUT_SECONDS = 5.0
DEFAULT_CONNECT_PORT = 15002
OLDEST_JAVA = 17
RETRIES = 6
"""Of a request to a server that listens: about seven seconds in all."""
_RETRY_CONNECT_SECONDS = 1.0

_starting = threading.Lock()
logger = logging.getLogger(__name__)


def start_session(config: Mapping[str, str]) -> SparkSession:
    """A session with these properties: of the Spark that is warm or reachable, else of one that is started."""
    properties = dict(config)
    with _starting:
        prepare_environment()
        check_reachable(properties)
        _name_others(properties)
        with private_folders(properties), warnings.catch_warnings():
            # Properties of the server itself can only be given by the process that starts it.
            warnings.filterwarnings("ignore", message=r"(?s)Failed to set .*CANNOT_MODIFY_")
            warnings.filterwarnings("ignore", category=FutureWarning)
            end_unfinished(properties)
            session = _built(properties)
        give_up_soon(session)
        return session


def _built(config: dict[str, str]) -> SparkSession:
    """Start Spark, or a session on it. No message causes an error here."""
    builder: Any = SparkSession.builder
    try:
        for name, value in config.items():
            builder = builder.config(name, value)
        session: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise SparkUnavailableError(
            f"Spark cannot be started ({in_a_line(describe(error))}); see what Java wrote to the log of the run, "
            "check QUEUE_PIPELINE_SPARK and QUEUE_PIPELINE_SPARK_CONF (spark_config of the spark resource: memory, "
            "ports, names of properties) and the space on disk"
        ) from error
    return session


def _name_others(config: dict[str, str]) -> None:
    """A server takes two gigabytes: log which others run, and what has its port, when one is about to be started."""
    for other in starts_beside(config):
        logger.warning(
            "a Spark server of yours is warm for %s (process %d); this project and setting get one of their own; "
            "end the other with: %s",
            other.project,
            other.pid,
            other.how_to_end,
        )
    if (taken := taken_port(config)) is not None:
        logger.warning("%s", taken)


def prepare_environment() -> None:
    """Let Spark's workers use this Python; by default they take whatever `python3` is on the path."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def check_reachable(config: dict[str, str]) -> None:
    """Fail within seconds where Spark cannot run: no Java, or no server at the address."""
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
    """Check that a master answers: the driver would try for a minute."""
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


def give_up_soon(session: Any) -> None:
    """Notice a dead server at once; the client would retry for ten minutes."""
    if not is_remote() or (found := endpoint(session)) is None:
        return
    retry_while(
        session, lambda: not refuses(*found),
        max_retries=RETRIES, initial_backoff=50, backoff_multiplier=4, max_backoff=2000, jitter=100,
    )  # fmt: skip


def refuses(host: str, port: int) -> bool:
    """Whether the machine refuses the connection; a network that does not answer may come back."""
    try:
        socket.create_connection((host, port), _RETRY_CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
