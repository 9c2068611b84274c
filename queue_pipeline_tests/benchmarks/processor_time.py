"""Processor time by kind of process, from /proc: what limits a way when both cores are busy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = {"postgres": "postgresql", "java": "java", "python": "python"}
"""What the name of a program begins with, and the kind it belongs to."""
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name, which is in parentheses and may contain anything.
_PARENT = 1
_TIMES = slice(11, 15)
"""User and system time of the process, and of its children that have ended."""

Seconds = dict[str, float]


class Used(NamedTuple):
    """What a process has used so far, with its children that have ended."""

    parent: int
    kind: str | None
    seconds: float


Look = dict[int, Used]
"""The processes that count, by id."""


def look(more: Iterable[int] = (), proc: Path = Path("/proc")) -> Look:
    """This process, processes given by id and all their descendants."""
    found = dict(_processes(proc))
    children: dict[int, list[int]] = {}
    for pid, used in found.items():
        children.setdefault(used.parent, []).append(pid)
    waiting, seen = [os.getpid(), *more], {}
    while waiting:
        pid = waiting.pop()
        if pid not in seen and pid in found:
            seen[pid] = found[pid]
            waiting += children.get(pid, [])
    return seen


def difference(before: Look, after: Look) -> Seconds:
    """Seconds that were used in between, by kind.

    What a process had used before it ended is now its parent's, which may be of another kind: Spark ends idle workers.
    """
    seconds = dict.fromkeys(KINDS.values(), 0.0)
    for sign, looked in ((1, after), (-1, before)):
        for pid, used in looked.items():
            heir = used
            while sign < 0 and pid not in after and heir.parent in before:
                pid, heir = heir.parent, before[heir.parent]
            if heir.kind is not None:
                seconds[heir.kind] += sign * used.seconds
    return seconds


def _processes(proc: Path) -> Iterator[tuple[int, Used]]:
    for folder in proc.iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except OSError:
            continue  # ended meanwhile
        name, _, rest = text.partition("(")[2].rpartition(")")
        fields = rest.split()
        kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), None)
        yield int(folder.name), Used(int(fields[_PARENT]), kind, sum(map(int, fields[_TIMES])) / _TICKS)
