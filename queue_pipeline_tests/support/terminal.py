"""A program on a real terminal of a given size."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """Runs one program; `screen` is all that it has written so far."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], columns: int) -> None:
        self.screen = ""
        self._pid, self._end = pty.fork()
        if self._pid == 0:
            # A suite that a shell started in the background ignores it, and so would the program.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.chdir(folder)
            os.execvpe(command[0], list(command), {**environment, "TERM": "xterm-256color"})
        self.resize(columns)

    def resize(self, columns: int) -> None:
        """Give the terminal another width, as a person who drags its window."""
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.kill(self._pid, signal.SIGWINCH)

    def read(self, text: str, seconds: float = 30.0) -> str:
        """Read until a text appears; returns what was read."""
        read, end = "", time.monotonic() + seconds
        while text not in read:
            assert time.monotonic() < end, f"{text!r} is not in {read!r}"
            read += self._read_some()
        return read

    def press_ctrl_c(self) -> int:
        """Interrupt the program as the keyboard does; returns its exit code."""
        os.write(self._end, b"\x03")
        end = time.monotonic() + 30
        while self._read_some():
            assert time.monotonic() < end, "the program goes on"
        _, status = os.waitpid(self._pid, 0)
        os.close(self._end)
        return os.waitstatus_to_exitcode(status)

    def _read_some(self) -> str:
        ready, _, _ = select.select([self._end], [], [], 1.0)
        try:
            part = os.read(self._end, 65_536).decode() if ready else "\0"
        except OSError:  # the program has ended
            part = ""
        self.screen += part.replace("\0", "")
        return part


def plain(written: str) -> list[str]:
    """The lines of a text without what steers a terminal."""
    # A frame begins at the top left.
    return _ESCAPES.sub("", written.replace("\x1b[H", "\n")).replace("\r", "").split("\n")
