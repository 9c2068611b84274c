"""Which process listens on a port of this machine, as far as Linux tells this user."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class PortHolder:
    """A process that listens on a port, or that there is one which this user may not see."""

    pid: int | None = None
    command: str = ""
    """The program and what it runs, without arguments: they may hold secrets."""

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
    program, *arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
    # A program that renamed itself may have put its arguments into its name.
    program = program.partition(" ")[0]
    if program.endswith("java"):
        run = [word for word in arguments if word.startswith("org.apache.spark.") and "=" not in word]
    elif arguments[:1] == ["-m"]:
        run = arguments[:2]
    else:
        run = [word for word in arguments[:1] if os.path.isfile(entry / "cwd" / word)]
    return " ".join([program, *run])
