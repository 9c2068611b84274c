"""Processes that leave nothing behind: all that is started here carries a mark, and so does what that starts in turn.

`dagster dev` and Spark's programs start further processes, some of which outlive their parents and their process group.
A variable in the environment goes down to all of them.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from queue_pipeline.transport.private_files import make_private_file, make_private_folder

MARK = "QUEUE_PIPELINE_MARK"
POLITE_SECONDS = 6.0
"""Dagster's code server waits for a tick in work, which may take longer than a person wants to wait."""
STERN_SECONDS = 5.0
_LOOK_SECONDS = 0.1


class Processes:
    """Starts programs, and ends them with all that came of them.

    Another process that knows the mark can end them, too, and later.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], mark: str | None = None) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self.mark = mark or str(uuid.uuid4())
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str], log: Path, *, marked: bool = True) -> subprocess.Popen[bytes]:
        """Start a program in a session of its own, so that Ctrl-C reaches it only through us."""
        make_private_file(log)
        with open(log, "ab") as output:
            process = subprocess.Popen(
                command,
                cwd=self._folder,
                env={**self._environment, **({MARK: self.mark} if marked else {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def alive(self, but: Collection[int] = ()) -> list[int]:
        """Every process that carries the mark and still runs."""
        mark = f"{MARK}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            # A process that is gone meanwhile, or another user's, cannot be read.
            with suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return [pid for pid in found if pid not in but]

    def end(self, but: Collection[int] = ()) -> list[int]:
        """End everything: what we started as by Ctrl-C, what is left by request, the rest by force.

        Returns what even then is still there.
        """
        send_signal((process.pid for process in self._started if process.poll() is None), signal.SIGINT)
        _wait(lambda: all(process.poll() is not None for process in self._started), POLITE_SECONDS)
        send_signal(self.alive(but), signal.SIGTERM)
        if not _wait(lambda: not self.alive(but), STERN_SECONDS):
            send_signal(self.alive(but), signal.SIGKILL)
            _wait(lambda: not self.alive(but), STERN_SECONDS)
        for process in self._started:
            process.poll()
        return self.alive(but)

    def kill(self) -> int:
        """End everything at once and by force; returns how many processes that took."""
        killed: set[int] = set()
        limit = time.monotonic() + STERN_SECONDS
        # What is started while the others end is found by the next look.
        while (found := self.alive()) and time.monotonic() < limit:
            send_signal(found, signal.SIGKILL)
            killed |= {*found}
            time.sleep(_LOOK_SECONDS)
        for process in self._started:
            process.poll()
        return len(killed)


@contextmanager
def occupied(folder: Path, refusal: Exception) -> Iterator[None]:
    """Hold the lock of a folder, which is made if it is missing; raises `refusal` if another process holds it."""
    make_private_folder(folder)
    with open(folder / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise refusal from None
        yield


def tail(log: Path, lines: int = 15) -> str:
    """The last lines that a program wrote."""
    try:
        return os.linesep.join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def send_signal(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes, some of which may be gone."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _wait(look: Callable[[], bool], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not look():
        if time.monotonic() > limit:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
