"""The local Spark Connect server that is kept warm between runs, found and ended by the file that Spark keeps of it."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.spark.folder import ABOUT, DISCOVERY, DISCOVERY_VARIABLE, spark_folder
from queue_pipeline.processing.spark.port_holder import port_holder
from queue_pipeline.processing.spark.settings import PORT_PROPERTY, PROPERTIES_VARIABLE, spark_config
from queue_pipeline.transport.private_files import user_folder

END_SECONDS = 15.0
_ENDING = 0.1

logger = logging.getLogger(__name__)


class SparkServerError(QueuePipelineError):
    """The warm server cannot be examined or stopped."""


@dataclass(frozen=True, slots=True)
class WarmSpark:
    """A server that runs; its address never holds its token."""

    pid: int
    address: str
    version: str
    memory_bytes: int
    seconds: int
    discovery: str
    """The file by which it is found."""
    project: str = ""
    """The folder of the project that it was started for."""

    @property
    def how_to_end(self) -> str:
        """The command that stops it, from any project."""
        return f"{DISCOVERY_VARIABLE}={shlex.quote(self.discovery)} queue-pipeline spark stop"


def find(discovery: str | os.PathLike[str] | None = None) -> WarmSpark | None:
    """The server, if there is one. Reads without Spark's lock, which a process that starts a server holds for long."""
    path = Path(discovery or discovery_file())
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        pid, address, version = int(found["pid"]), f"sc://{found['host']}:{found['port']}", str(found["spark_version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if (figures := _figures(pid)) is None:
        return None
    memory, seconds = figures
    return WarmSpark(pid, address, version, memory, seconds, str(path), _project(path))


def find_others(discovery: str | os.PathLike[str] | None = None) -> list[WarmSpark]:
    """The servers of this user for other projects, or for other settings of this one."""
    own = Path(discovery or discovery_file())
    paths = sorted(path for path in user_folder().glob(f"spark-*/{DISCOVERY}") if path != own)
    return [server for server in map(find, paths) if server is not None]


def starts_beside(config: Mapping[str, str]) -> list[WarmSpark]:
    """The other servers that run, if one more is about to be started."""
    if not config.get("spark.remote", "").startswith("local") or os.environ.get(DISCOVERY_VARIABLE):
        return []
    own = discovery_file(config)
    return [] if find(own) is not None else find_others(own)


def taken_port(config: Mapping[str, str]) -> str | None:
    """If a server is about to be started and another process has its port: which one, and how to choose another."""
    if PORT_PROPERTY not in config or find(discovery_file(config)):
        return None
    port = config[PORT_PROPERTY]
    holder = port_holder(int(port)) if port.isdigit() else None
    if holder is None:
        return None
    return (
        f"port {port} is taken by {holder}; the Spark server gets another free port, which queue-pipeline spark status "
        f"shows; choose one with {PROPERTIES_VARIABLE}='{PORT_PROPERTY}=N'"
    )


def end(discovery: str | os.PathLike[str] | None = None) -> WarmSpark | None:
    """Stop the server and wait until it is gone; returns what was stopped."""
    # The command line loads this module, and PySpark only here.
    from queue_pipeline.processing.spark.internals.calls import stop_local_server

    path = Path(discovery or discovery_file())
    found = find(path)
    stopped = stop_local_server(str(path))
    if stopped is None:
        raise SparkServerError("the Spark server could not be looked at; is ps installed (Debian: procps)?")
    if found is None:
        return None
    limit = time.monotonic() + END_SECONDS
    while _figures(found.pid) is not None:
        if time.monotonic() > limit:
            raise SparkServerError(
                f"the Spark server, process {found.pid}, does not end; end it with: kill -9 {found.pid}"
            )
        time.sleep(_ENDING)
    return found


def end_unfinished(config: Mapping[str, str]) -> None:
    """End a server whose starter died before it had written the file by which others find it: Spark would find the
    process, refuse to start another server beside it, and every later run would fail.
    """
    if not config.get("spark.remote", "").startswith("local"):
        return
    from queue_pipeline.processing.spark.internals.calls import end_unknown_server

    path = discovery_file(config)
    if path.parent.is_dir() and find(path) is None:
        end_unknown_server(str(path), _kill)


def discovery_file(config: Mapping[str, str] | None = None) -> Path:
    """Where Spark writes down how to reach the server of this project and setting; by default, of the environment."""
    named = os.environ.get(DISCOVERY_VARIABLE)
    return Path(named).absolute() if named else spark_folder(spark_config() if config is None else config) / DISCOVERY


def _project(discovery: Path) -> str:
    try:
        return str(json.loads((discovery.parent / ABOUT).read_text(encoding="utf-8"))["project"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _kill(pid: int) -> None:
    if _figures(pid) is None:
        return
    logger.warning("a Spark server was never finished by the run that started it; its process %d is ended", pid)
    os.kill(pid, signal.SIGKILL)
    limit = time.monotonic() + END_SECONDS
    while _figures(pid) is not None and time.monotonic() < limit:
        time.sleep(_ENDING)


def _figures(pid: int) -> tuple[int, int] | None:
    """Memory in bytes and age in seconds of a Spark server; None when the process is gone or something else."""
    look = ["ps", "-ww", "-o", "rss=,etimes=,stat=,args=", "-p", str(pid)]
    try:
        found = subprocess.run(look, capture_output=True, text=True, timeout=10, env={**os.environ, "LC_ALL": "C"})
    except (OSError, subprocess.SubprocessError) as error:
        raise SparkServerError(f"ps does not run ({error}); install it (Debian: procps)") from None
    words = found.stdout.split(maxsplit=3)
    if found.returncode != 0 or len(words) < 4 or words[2].startswith("Z") or "SparkConnectServer" not in words[3]:
        return None
    return int(words[0]) * 1024, int(words[1])
