"""Which programs of a cluster run, as the machine and the master see it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.ports import answers
from tools.cluster.programs import EXECUTOR
from tools.cluster.state import HOST, Member

_TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Status:
    """A line for each program, and whether the cluster is complete."""

    lines: list[str]
    whole: bool


def status_of(folder: ClusterFolder) -> Status:
    """Check every program of the cluster in a folder."""
    state = folder.read()
    if state is None or state.master is None:
        return Status([f"none runs in {folder.path}"], whole=False)
    alive = folder.alive()
    registered = registered_workers(state.master)
    lines = [_line("master", state.master.pid, registered is not None, f"at {state.master_url}, page {state.ui}")]
    at_work = 0
    for worker in state.workers:
        fit = worker.pid in alive and worker.port in (registered or ())
        at_work += fit
        lines.append(_line(worker.name, worker.pid, fit, f"executors: {len(executors_of(worker.port, alive))}"))
    connected = not state.with_connect
    if state.connect is not None:
        connected = state.connect.pid in alive and answers(state.connect.port)
        lines.append(_line("connect", state.connect.pid, connected, f"at {state.remote_url}"))
    return Status(lines, whole=registered is not None and at_work >= state.size and connected)


def _line(name: str, pid: int, fit: bool, more: str) -> str:
    return f"{name:<9} process {pid:<8} {'alive' if fit else 'gone'}" + (f", {more}" if fit else "")


def registered_workers(master: Member) -> set[int] | None:
    """The ports of the workers that the master counts as alive; None if there is no answer, or another program's."""
    try:
        # A proxy that the environment names is not the way to this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{HOST}:{master.ui_port}/json/", timeout=_TIMEOUT_SECONDS) as answer:
            page: dict[str, Any] = json.load(answer)
        if page["status"] != "ALIVE" or page["url"] != f"spark://{HOST}:{master.port}":
            return None
        return {int(worker["port"]) for worker in page["workers"] if worker["state"] == "ALIVE"}
    except (OSError, ValueError, LookupError, TypeError):
        return None


def executors_of(worker_port: int, among: Iterable[int]) -> list[int]:
    """Which of these processes are executors of the worker, even if that has ended."""
    wanted = {EXECUTOR.encode(), f"spark://Worker@{HOST}:{worker_port}".encode()}
    found = []
    for pid in among:
        with suppress(OSError):
            if wanted <= set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")):
                found.append(pid)
    return sorted(found)
