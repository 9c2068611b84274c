"""A Spark standalone cluster of this machine: a master, workers, and a Connect server whose executors they run."""

from __future__ import annotations

import re
import secrets
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from queue_pipeline.processing.spark.session import check_java
from tools.cluster import programs
from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.ports import Ports, prefer, take
from tools.cluster.state import ClusterError, ClusterState, Member
from tools.cluster.status import executors_of, registered_workers
from tools.processes import Processes, tail

START_SECONDS = 180.0
"""For any one program: five seconds on an idle machine."""
_LOOK_SECONDS = 0.05
_MEMORY = re.compile(r"(\d+)([mg])b?", re.IGNORECASE)


class StandaloneCluster:
    """Everything is kept in a folder and listens on the loopback address only; `stop` ends all of it."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 2,
        cores: int = 1,
        memory: str = "2g",
        connect: bool = True,
        ports: Ports | None = None,
    ) -> None:
        if megabytes(memory) < programs.EXECUTOR_MEMORY_MB:
            raise ClusterError(f"a worker with {memory} has no room for an executor, which asks for 1g; give it more")
        self._folder = ClusterFolder(folder.resolve())
        self._cores = cores
        self._memory = memory
        self._ports = ports or Ports()
        self._token = secrets.token_hex(32)
        self._processes = Processes(self._folder.path, programs.environment(self._folder.path, self._token))
        self.state = ClusterState(mark=self._processes.mark, size=workers, with_connect=connect)
        """What is written down about it."""
        self._started: dict[int, subprocess.Popen[bytes]] = {}
        self._count = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def master(self) -> str:
        """The setting for a driver of one's own: spark://127.0.0.1:7077."""
        return _there(self.state.master_url, "is not started")

    @property
    def remote(self) -> str:
        """The setting for Spark Connect: sc://localhost:15002."""
        return _there(self.state.remote_url, "has no Connect server")

    @property
    def environment(self) -> dict[str, str]:
        """What drivers and clients need beside the setting: where the secret of the cluster is, and the token."""
        return {"SPARK_CONF_DIR": str(self._folder.conf), programs.TOKEN_VARIABLE: self._token}

    @property
    def workers(self) -> list[Member]:
        """The workers that were started, also those that are gone since."""
        return list(self.state.workers)

    def executors(self, worker: Member) -> list[int]:
        """The processes that compute for a worker right now."""
        return executors_of(worker.port, self._processes.alive())

    def start(self) -> None:
        """Start all programs; returns when every worker is registered and Connect answers."""
        check_java()
        with self._folder.occupied():
            if self._folder.alive():
                raise ClusterError(
                    f"a cluster runs in {self._folder.path} already; stop it first, or use another folder"
                )
            ports = self._take_ports()
            self._folder.prepare(self._token)
            self._folder.write(self.state)
            try:
                self._start_all(ports)
            except BaseException:
                self._end()
                raise

    def start_worker(self) -> Member:
        """Start one more worker, for example in place of one that was killed; returns when it is registered."""
        worker = self._launch_worker()
        self._wait_until_registered(worker)
        return worker

    def stop(self) -> None:
        """End everything, executors of killed workers too. Logs stay until the next start."""
        with self._folder.occupied():
            self._end()

    def _end(self) -> None:
        self._folder.end(self._processes)
        self.state = self.state.emptied()

    def _take_ports(self) -> Ports:
        connect = take(self._ports.connect, "the Connect server", "--connect-port N") if self.state.with_connect else 0
        return Ports(take(self._ports.master, "the master", "--master-port N"), connect, prefer(self._ports.ui))

    def _start_all(self, ports: Ports) -> None:
        master = self._launch("master", programs.master(ports.master, ports.ui), ports.master, ports.ui)
        self.state.master = master
        self._folder.write(self.state)
        self._wait(master, lambda: registered_workers(master) is not None)
        workers = [self._launch_worker() for _ in range(self.state.size)]
        if self.state.with_connect:
            command = programs.connect(self.master, self._folder.path, ports.connect, cores=self._cores)
            server = self._launch("connect", command, ports.connect)
            self.state.connect = server
            self._folder.write(self.state)
            self._wait(server, lambda: programs.CONNECT_IS_UP in tail(self._folder.log(server.name), 200))
        for worker in workers:
            self._wait_until_registered(worker)

    def _launch_worker(self) -> Member:
        self._count += 1
        name = f"worker-{self._count}"
        port, ui_port = take(0, name), take(0, f"the page of {name}")
        command = programs.worker(
            self.master, self._folder.work(name), port, ui_port, cores=self._cores, memory=self._memory
        )
        worker = self._launch(name, command, port, ui_port)
        self.state.workers.append(worker)
        self._folder.write(self.state)
        return worker

    def _launch(self, name: str, command: list[str], port: int, ui_port: int | None = None) -> Member:
        process = self._processes.start(command, self._folder.log(name))
        self._started[process.pid] = process
        return Member(name=name, pid=process.pid, port=port, ui_port=ui_port)

    def _wait_until_registered(self, worker: Member) -> None:
        master = self.state.master
        assert master is not None
        self._wait(worker, lambda: worker.port in (registered_workers(master) or ()))

    def _wait(self, member: Member, look: Callable[[], bool]) -> None:
        limit = time.monotonic() + START_SECONDS
        while not look():
            if (code := self._started[member.pid].poll()) is not None:
                problem = f"ended with {code}"
            elif time.monotonic() > limit:
                problem = f"is not ready after {START_SECONDS:.0f} s"
            else:
                time.sleep(_LOOK_SECONDS)
                continue
            log = self._folder.log(member.name)
            raise ClusterError(f"Spark's {member.name} {problem}; the end of {log}:\n{_last_words(log)}")


def megabytes(amount: str) -> int:
    """An amount of memory as Spark writes it: 1536m, 2g."""
    found = _MEMORY.fullmatch(amount)
    if found is None:
        raise ClusterError(f"{amount!r} is no amount of memory; use for example 2g or 1536m")
    return int(found[1]) * (1024 if found[2].lower() == "g" else 1)


def _last_words(log: Path) -> str:
    """The end of a log without what only Spark's developers read: the cause stands far above the last line."""
    lines = [line for line in tail(log, 300).splitlines() if " INFO " not in line and not line.startswith("\tat ")]
    return "\n".join(lines[-15:])


def _there(value: str | None, otherwise: str) -> str:
    if value is None:
        raise ClusterError(f"the cluster {otherwise}")
    return value
