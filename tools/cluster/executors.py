"""The executors of a worker: processes that it starts for whoever drives a job."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tools.cluster.ports import HOST
from tools.cluster.programs import EXECUTOR


def executors_of(worker_port: int, among: Iterable[int]) -> list[int]:
    """Which of these processes are executors of the worker, also of one that is gone."""
    wanted = {EXECUTOR.encode(), f"spark://Worker@{HOST}:{worker_port}".encode()}
    found = []
    for pid in among:
        with suppress(OSError):
            if wanted <= set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")):
                found.append(pid)
    return sorted(found)
