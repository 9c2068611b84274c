"""The services of the deployment, and a supervisor that restarts what died, as systemd and Docker do."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.processes import Processes, send_signal

STOP_SECONDS = 10.0
"""What `docker stop` gives a container between SIGTERM and SIGKILL."""
RESTART_SECONDS = 1.0
_LOOK_SECONDS = 0.2
_INNER_SERVER = b"api\0grpc"


@dataclass
class Service:
    """One program with all that it starts: like a container, it ends as a whole."""

    name: str
    command: Sequence[str]
    processes: Processes
    main: subprocess.Popen[bytes] | None = None
    stop_until: float | None = None
    """While it is being stopped: when the rest of it is killed."""

    @property
    def is_running(self) -> bool:
        """Whether its main process lives, and has not been asked to end too long ago."""
        is_alive = self.main is not None and self.main.poll() is None
        return is_alive and (self.stop_until is None or time.monotonic() < self.stop_until)


class Services:
    """Starts services, restarts those whose main process ended, and ends all of them."""

    def __init__(self, folder: Path, environment: Mapping[str, str], commands: Mapping[str, Sequence[str]]) -> None:
        self._folder = folder
        self._services = {
            name: Service(name, command, Processes(folder, environment)) for name, command in commands.items()
        }
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        self.restarts: Counter[str] = Counter()

    def start(self) -> None:
        """Start all of them; from now on they are watched."""
        with self._lock:
            for service in self._services.values():
                self._start(service)
        self._supervisor.start()

    def kill(self, name: str) -> bool:
        """End a service without notice, with all that it started."""
        with self._lock:
            return self._services[name].processes.kill() > 0

    def stop(self, name: str) -> bool:
        """Ask a service to end, as `docker stop` does; the rest is killed some seconds later, and it starts anew."""
        with self._lock:
            service = self._services[name]
            if service.stop_until is not None:
                return False
            service.stop_until = time.monotonic() + STOP_SECONDS
            if service.main is not None:
                service.main.terminate()
            return True

    def kill_inner_server(self, name: str) -> bool:
        """End the process that holds the code, and its runs, under the server that passes requests on to it."""
        with self._lock:
            found = self._services[name].processes.alive()
            inner = [pid for pid in found if _INNER_SERVER in _command_line(pid)]
            send_signal([*inner, *(pid for pid in found if _parent(pid) in inner)], signal.SIGKILL)
            return bool(inner)

    def has(self, name: str, pid: int) -> bool:
        """Whether a process is one of a service; its number may be another program's by now."""
        return pid in self._services[name].processes.alive()

    def log(self, name: str) -> Path:
        """What a service printed."""
        return self._folder / f"{name.replace(' ', '-')}.log"

    def close(self) -> None:
        """End everything, at once and by force: nothing of it is kept."""
        self._is_closed.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        with self._lock:
            for service in self._services.values():
                service.processes.kill()

    def _supervise(self) -> None:
        while not self._is_closed.wait(_LOOK_SECONDS):
            with self._lock:
                for service in self._services.values():
                    self._look_at(service)

    def _look_at(self, service: Service) -> None:
        if service.is_running:
            return
        # What a container or a control group held is gone with its main process.
        service.processes.kill()
        service.stop_until = None
        self.restarts[service.name] += 1
        if not self._is_closed.wait(RESTART_SECONDS):
            self._start(service)

    def _start(self, service: Service) -> None:
        service.main = service.processes.start(service.command, self.log(service.name))


def _parent(pid: int) -> int | None:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def _command_line(pid: int) -> bytes:
    """The command of a process; empty when it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
