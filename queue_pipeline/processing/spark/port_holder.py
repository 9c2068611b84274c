"""Which process listens on a port of this machine, as far as Linux tells this user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp."""
MOST_CHARACTERS = 80
"""A command of Java is pages long; its beginning and its main class say what it is."""


@dataclass(frozen=True, slots=True)
class PortHolder:
    """A process that listens on a port, or that there is one which this user may not see."""

    pid: int | None = None
    command: str = ""

    def __str__(self) -> str:
        """The process in words."""
        if self.pid is None:
            return "a process of another user"
        return f"process {self.pid} ({self.command})"


def port_holder(port: int) -> PortHolder | None:
    """The process that listens on a port; None if there is none, or if this system does not say."""
    sockets = set(_listening(port))
    if not sockets:
        return None
    for entry in Path("/proc").glob("[0-9]*"):
        # Processes end meanwhile, and those of other users cannot be read.
        with suppress(OSError):
            if any(_target(one) in sockets for one in (entry / "fd").iterdir()):
                return PortHolder(int(entry.name), _command(entry))
    return PortHolder()


def _listening(port: int) -> Iterator[str]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text(encoding="ascii").splitlines()[1:]:
                words = line.split()
                if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                    yield f"socket:[{words[9]}]"


def _target(link: Path) -> str:
    with suppress(OSError):
        return os.readlink(link)
    return ""


def _command(entry: Path) -> str:
    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
    if words[0].endswith("java"):
        classes = [word for word in words[1:] if word.startswith("org.apache.spark.") and "=" not in word]
        return " ".join([words[0], *classes])
    text = " ".join(words).strip()
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
