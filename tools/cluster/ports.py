"""Ports of the loopback address: whether they can be had, and which process has them."""

from __future__ import annotations

import shlex
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from queue_pipeline.processing.spark import warm_server
from queue_pipeline.processing.spark.port_holder import PortHolder, port_holder
from tools.cluster.state import HOST, STATE, ClusterError


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the cluster is found; 0 is any port that is free. Its page moves elsewhere when its port is taken."""

    master: int = 0
    connect: int = 0
    ui: int = 0


def take(port: int, what: str, option: str = "another port") -> int:
    """The port if it is free, or any free one for 0; `option` chooses another."""
    found = _free(port)
    if found is None:
        holder = port_holder(port)
        raise ClusterError(
            f"port {port} for {what} is taken by {holder or 'another program'}; {how_to_end(holder)}or choose another "
            f"port: {option} (0 is any that is free)"
        )
    return found


def how_to_end(holder: PortHolder | None) -> str:
    """The command that ends the process in the way of a cluster, as the beginning of a sentence."""
    if holder is None or holder.pid is None:
        return ""
    for server in filter(None, [warm_server.find(), *warm_server.find_others()]):
        if server.pid == holder.pid:
            return f"it is a warm Spark server, which this ends: {server.how_to_end}; "
    if (folder := _cluster_of(holder.pid)) is not None:
        return f"it belongs to a cluster, which this ends: scripts/cluster stop --folder {shlex.quote(str(folder))}; "
    return f"end it (kill {holder.pid}), "


def _cluster_of(pid: int) -> Path | None:
    """The folder of the cluster that a process belongs to: its programs get their settings from there."""
    with suppress(OSError):
        for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, _, value = entry.partition(b"=")
            folder = Path(value.decode(errors="replace")).parent
            if name == b"SPARK_CONF_DIR" and (folder / STATE).is_file():
                return folder
    return None


def prefer(port: int) -> int:
    """The port, or any free one if a process has it."""
    return _free(port) or take(0, "anything")


def answers(port: int) -> bool:
    """Whether a process listens."""
    with socket.socket() as trial:
        trial.settimeout(1)
        return trial.connect_ex((HOST, port)) == 0


def _free(port: int) -> int | None:
    with socket.socket() as trial:
        # As Spark does it: a port whose last connections are still being forgotten is free.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            return None
        return int(trial.getsockname()[1])
