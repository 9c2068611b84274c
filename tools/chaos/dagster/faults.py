"""The faults: what each kind does to the deployment, and how it ends."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import sqlalchemy as sa

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.spark import warm_server as warm_spark
from queue_pipeline.transport import QueueTransport
from tools.chaos.dagster.plan import BILLING, ORDERS
from tools.chaos.dagster.project import CODE_SERVER, DAEMON, WEBSERVER, Project
from tools.chaos.dagster.services import RESTART_SECONDS, STOP_SECONDS, Services
from tools.chaos.dagster.standstill import Watch
from tools.chaos.dagster.webserver import Run, Webserver
from tools.postgres_cluster import PostgresCluster
from tools.processes import send_signal

_TERMINATE_BACKENDS = sa.text(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND datname = current_database()"
)
_LOCK = """
import sqlite3, sys, time
seconds, *files = sys.argv[1:]
connections = [sqlite3.connect(file, timeout=30, isolation_level=None) for file in files]
for connection in connections:
    connection.execute("BEGIN EXCLUSIVE")
time.sleep(float(seconds))
"""
SPARK_KILLED = "Spark killed by a message"
"""No fault that is made: what hostile messages did."""
_BY = "scripts/chaos"
_TRIES = 30
_RESTART = (STOP_SECONDS + RESTART_SECONDS,)


@dataclass(frozen=True)
class Fault:
    """A kind of fault: `begin` says whether there was something to do; `end` undoes it after one of the times."""

    begin: Callable[[Faults], bool]
    end: Callable[[Faults], None] | None = None
    seconds: tuple[float, ...] = (0.0,)


class Faults:
    """Makes faults in one deployment."""

    def __init__(
        self,
        seed: int,
        project: Project,
        services: Services,
        cluster: PostgresCluster,
        transport: QueueTransport,
        watch: Watch,
    ) -> None:
        self._chance = random.Random(f"{seed}/targets")
        self._project = project
        self.services = services
        self._cluster = cluster
        self._transport = transport
        self._watch = watch
        self._web = Webserver(project.web_address)
        self._release = 1
        self._paused = ORDERS
        self._locker: subprocess.Popen[bytes] | None = None
        self._spark: int | None = None

    def begin(self, kind: str) -> float | None:
        """Begin a fault; returns for how long it lasts, or None when there was nothing to do it to."""
        fault = KINDS[kind]
        seconds = self._chance.choice(fault.seconds)
        # It may be about to die of this fault.
        self._spark = None
        # Dagster or the database may be away for a moment from what was done before.
        with suppress(OSError, sa.exc.DBAPIError, QueuePipelineError):
            if fault.begin(self):
                return seconds
        return None

    def end(self, kind: str) -> None:
        """End a fault that lasts."""
        self._spark = None
        if (undo := KINDS[kind].end) is None:
            return
        for _ in range(_TRIES):
            with suppress(QueuePipelineError):
                return undo(self)
            time.sleep(1)
        raise QueuePipelineError(f"the fault {kind!r} could not be ended")

    def spark_has_died(self) -> bool:
        """Whether Spark has died since the last look without a fault: a hostile message did it."""
        found = warm_spark.find(self._project.discovery)
        before, self._spark = self._spark, found.pid if found else None
        return before is not None and before != self._spark

    def close(self) -> None:
        """Leave no process behind."""
        self.unlock_storage()

    def _run_at_work(self) -> Run | None:
        runs = [run for run in self._web.runs("STARTED") if run.pipeline in (ORDERS, BILLING)]
        return self._chance.choice(runs) if runs else None

    def kill_run(self) -> bool:
        """SIGKILL for the process of a run."""
        run = self._run_at_work()
        pid = self._web.worker_pid(run) if run is not None else None
        if pid is None or not self.services.has(CODE_SERVER, pid):
            return False
        send_signal([pid], signal.SIGKILL)
        return True

    def terminate_run(self) -> bool:
        """What the button of a run in the UI does."""
        run = self._run_at_work()
        return run is not None and self._web.terminate(run) == "TerminateRunSuccess"

    def kill_spark(self) -> bool:
        """SIGKILL for the Spark server that the runs share."""
        found = warm_spark.find(self._project.discovery)
        send_signal([found.pid] if found else [], signal.SIGKILL)
        return found is not None

    def reload(self) -> bool:
        """What the button of a code location in the UI does."""
        return self._web.reload() == "WorkspaceLocationEntry"

    def deploy(self) -> bool:
        """A file changes; every second time the code location is loaded anew, too."""
        self._release += 1
        self._project.deploy(self._release)
        if self._release % 2:
            with suppress(OSError):
                self._web.reload()
        return True

    def stop_database(self) -> bool:
        """The server crashes."""
        self._cluster.stop("immediate")
        return True

    def start_database(self) -> None:
        """From the thread that started it first: the server ends with its thread."""
        self._cluster.start()

    def kill_backends(self) -> bool:
        """Every session of the database ends."""
        with self._transport.database.engine.begin() as connection:
            return bool(connection.execute(_TERMINATE_BACKENDS).scalar_one())

    def lock_storage(self) -> bool:
        """An exclusive transaction of another process in each of Dagster's SQLite files."""
        files = [str(path) for path in self._project.storages if path.exists()]
        # Longer than it is held by plan: it is ended from here.
        self._locker = subprocess.Popen([sys.executable, "-c", _LOCK, "60", *files], start_new_session=True)
        return bool(files)

    def unlock_storage(self) -> None:
        """The other process ends."""
        if self._locker is not None:
            self._locker.kill()
            self._locker.wait()
            self._locker = None

    def pause(self) -> bool:
        """An operator pauses one of the pipelines of the orders."""
        self._paused = self._chance.choice((ORDERS, BILLING))
        is_paused = self._transport.pauses.pause(self._paused, by=_BY)
        self._watch.paused.add(self._paused)
        return is_paused

    def resume(self) -> None:
        """The operator lets it go on."""
        self._transport.pauses.resume(self._paused)
        self._watch.paused.discard(self._paused)


KINDS: Mapping[str, Fault] = {
    "code server restarted": Fault(lambda faults: faults.services.stop(CODE_SERVER), seconds=_RESTART),
    "code server killed": Fault(lambda faults: faults.services.kill(CODE_SERVER)),
    "code server's inner process killed": Fault(lambda faults: faults.services.kill_inner_server(CODE_SERVER)),
    "daemon restarted": Fault(lambda faults: faults.services.stop(DAEMON), seconds=_RESTART),
    "daemon killed": Fault(lambda faults: faults.services.kill(DAEMON)),
    "webserver killed": Fault(lambda faults: faults.services.kill(WEBSERVER)),
    "run killed": Fault(Faults.kill_run),
    "run terminated": Fault(Faults.terminate_run),
    "Spark killed": Fault(Faults.kill_spark),
    "code location reloaded": Fault(Faults.reload),
    "new code deployed": Fault(Faults.deploy),
    "database stopped": Fault(Faults.stop_database, Faults.start_database, (2.0, 6.0, 12.0)),
    "database connections killed": Fault(Faults.kill_backends),
    "Dagster's storage locked": Fault(Faults.lock_storage, Faults.unlock_storage, (5.0, 15.0)),
    "pipeline paused": Fault(Faults.pause, Faults.resume, (3.0, 8.0)),
}
"""All kinds by name."""
