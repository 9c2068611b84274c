"""Processor time by kind of process, from /proc: what limits a way when both cores are busy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

KINDS = {"postgres": "postgresql", "java": "java", "python": "python"}
"""What the name of a program begins with, and the kind it belongs to."""
_TICKS = os.sysconf("SC_CLK_TCK")
# Fields of /proc/PID/stat after the name, which is in parentheses and may contain anything.
_PARENT = 1
_TIMES = slice(11, 15)
"""User and system time of the process, and of its children that have ended."""

Seconds = dict[str, float]


def processor_seconds(more: Iterable[int] = (), proc: Path = Path("/proc")) -> Seconds:
    """Seconds that this process, processes given by id and all their descendants have used, by kind.

    A child that ended is counted with its parent.
    """
    found = dict(_processes(proc))
    children: dict[int, list[int]] = {}
    for pid, (parent, _, _) in found.items():
        children.setdefault(parent, []).append(pid)
    seconds = dict.fromkeys(KINDS.values(), 0.0)
    waiting, seen = [os.getpid(), *more], set()
    while waiting:
        pid = waiting.pop()
        if pid in seen or pid not in found:
            continue
        seen.add(pid)
        waiting += children.get(pid, [])
        _, kind, ticks = found[pid]
        if kind is not None:
            seconds[kind] += ticks / _TICKS
    return seconds


def difference(before: Seconds, after: Seconds) -> Seconds:
    """What was used in between."""
    return {kind: after[kind] - before[kind] for kind in after}


def _processes(proc: Path) -> Iterator[tuple[int, tuple[int, str | None, int]]]:
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
        yield int(folder.name), (int(fields[_PARENT]), kind, sum(map(int, fields[_TIMES])))
