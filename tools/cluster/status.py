"""What lives of a cluster, as the machine and the master see it."""

from __future__ import annotations

from dataclasses import dataclass

from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.executors import executors_of
from tools.cluster.master_page import registered_workers
from tools.cluster.ports import answers


@dataclass(frozen=True, slots=True)
class Status:
    """A line for each program, and whether the cluster is all there."""

    lines: list[str]
    whole: bool


def look(folder: ClusterFolder) -> Status:
    """Look at every program of the cluster in a folder."""
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
