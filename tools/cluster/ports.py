"""Ports of the loopback address: which ones somebody wants, and whether they can be had."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from tools.cluster.errors import ClusterError

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the cluster is found; 0 is any port that is free. Its page moves elsewhere when its port is taken."""

    master: int = 0
    connect: int = 0
    ui: int = 0


def take(port: int, what: str) -> int:
    """The port if nobody listens there, or any free one for 0."""
    found = _free(port)
    if found is None:
        raise ClusterError(
            f"port {port} for {what} is taken by another program: end it (perhaps a cluster in another folder), "
            "or choose another port; 0 is any that is free"
        )
    return found


def prefer(port: int) -> int:
    """The port, or any free one if somebody has it."""
    return _free(port) or take(0, "anything")


def answers(port: int) -> bool:
    """Whether somebody listens."""
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
