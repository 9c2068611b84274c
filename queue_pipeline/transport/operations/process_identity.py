"""The identity of a process, so that another process on the same machine notices at once when it is gone."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")
_DEAD = ("Z", "X")


def this_process() -> str:
    """This process: boot id, pid namespace (a container has its own), pid and start time; empty without /proc."""
    pid = os.getpid()
    started = _started(pid)
    machine = _machine()
    return f"{machine} {pid} {started}" if machine and started else ""


def is_gone(process: str) -> bool:
    """Whether a process of this machine has ended; of other machines and containers nothing is known."""
    machine, _, identity = process.partition(" ")
    if not identity or machine != _machine():
        return False
    pid, _, started = identity.partition(" ")
    return _started(int(pid)) != started


def _machine() -> str:
    """One for all processes that see each other in /proc, and another after the machine was started again."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks since the boot; empty if there is no such process, or only its exit code."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in _DEAD else fields[19]
