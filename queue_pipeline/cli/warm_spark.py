"""The local Spark Connect server that is kept warm between runs, found and ended by the file that Spark keeps of it.

Spark's module for it is experimental: all that is used of it is here.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass

from queue_pipeline.transport.errors import QueuePipelineError

END_SECONDS = 15.0
_ENDING = 0.1


class SparkServerError(QueuePipelineError):
    """The server cannot be looked after from here."""


@dataclass(frozen=True, slots=True)
class WarmSpark:
    """A server that runs; its address never holds its token."""

    pid: int
    address: str
    version: str
    memory_bytes: int
    seconds: int


def find(discovery: str | os.PathLike[str] | None = None) -> WarmSpark | None:
    """The server, if there is one. Reads without Spark's lock, which whoever starts a server holds for long."""
    try:
        with open(discovery or discovery_file(), encoding="utf-8") as file:
            told = json.load(file)
        pid, address, version = int(told["pid"]), f"sc://{told['host']}:{told['port']}", str(told["spark_version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if (figures := _figures(pid)) is None:
        return None
    memory, seconds = figures
    return WarmSpark(pid, address, version, memory, seconds)


def end(discovery: str | os.PathLike[str] | None = None) -> WarmSpark | None:
    """Stop the server and wait until it is gone; returns what was stopped."""
    from pyspark.sql.connect.local_server import Discovery, LocalConnectServer

    found = find(discovery)
    with Discovery(None if discovery is None else os.fspath(discovery)) as held:
        stopped = LocalConnectServer(held).stop()
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


def discovery_file() -> str:
    """Where Spark writes down how to reach the server."""
    from pyspark.sql.connect.local_server import Discovery

    return str(Discovery().path)


def _figures(pid: int) -> tuple[int, int] | None:
    """Memory in bytes and age in seconds of a Spark server; None when the process is gone or something else."""
    look = ["ps", "-ww", "-o", "rss=,etimes=,stat=,args=", "-p", str(pid)]
    try:
        told = subprocess.run(look, capture_output=True, text=True, timeout=10, env={**os.environ, "LC_ALL": "C"})
    except (OSError, subprocess.SubprocessError) as error:
        raise SparkServerError(f"ps does not run ({error}); install it (Debian: procps)") from None
    words = told.stdout.split(maxsplit=3)
    if told.returncode != 0 or len(words) < 4 or words[2].startswith("Z") or "SparkConnectServer" not in words[3]:
        return None
    return int(words[0]) * 1024, int(words[1])
