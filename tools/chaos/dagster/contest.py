"""One run: a deployment under faults, then quiet until all is processed, then the account."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import sqlalchemy as sa

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport import QueueTransport
from tools.chaos.dagster.accountant import accounts
from tools.chaos.dagster.faults import KINDS, SPARK_KILLED, Faults
from tools.chaos.dagster.liveness import Liveness
from tools.chaos.dagster.plan import FINE, HARMFUL, fault_order
from tools.chaos.dagster.project import Project
from tools.chaos.dagster.report import GOOD, DagsterReport
from tools.chaos.dagster.services import Services
from tools.chaos.dagster.shop import Sender, install
from tools.chaos.dagster.standstill import Watch
from tools.chaos.dagster.webserver import Webserver
from tools.chaos.report import Report
from tools.graphql import IN_FLIGHT
from tools.postgres_cluster import PostgresCluster, free_port
from tools.processes import tail

START_SECONDS = 300.0
DRAIN_SECONDS = 180.0
"""When the rest has not become smaller for this long, it is left over."""
END_SECONDS = 90.0
"""How long runs may take to end, and what they hold to be free, after everything was processed."""
_FINE, _FINE_SECONDS = 12, 15.0
"""Harmless messages at the end, and how often one of them comes."""
_LOOK_SECONDS = 0.5
_TARGET_SECONDS = 10.0
_GAPS = (2.0, 6.0)
_PAIR_SHARE = 0.15
"""How often the next fault does not wait until the pipelines have recovered from the one before."""


@dataclass(frozen=True)
class Options:
    """What to run."""

    seed: int
    seconds: float
    longest_standstill: float
    without: Sequence[str] = ()
    logs: Path | None = None
    show_progress: Callable[[str], None] = lambda line: None


class Contest:
    """The deployment, its senders, its faults and the watch over it."""

    def __init__(self, options: Options, folder: Path, closing: ExitStack) -> None:
        self.options = options
        self.cluster = closing.enter_context(PostgresCluster(settings={"max_connections": "200"}))
        url = self.cluster.url()
        self.project = Project(folder / "project", url, free_port(), free_port())
        self.transport = closing.enter_context(QueueTransport(url))
        self.engine = sa.create_engine(sa.make_url(url).set(drivername="postgresql+psycopg"), pool_pre_ping=True)
        closing.callback(self.engine.dispose)
        logs = options.logs or folder
        logs.mkdir(parents=True, exist_ok=True)
        self.journal = logs / "faults.log"
        self.services = Services(logs.resolve(), self.project.environment(), self.project.commands)
        closing.callback(self.services.close)
        self.liveness = Liveness(self.services, self.project.environment())
        closing.callback(self.liveness.close)
        self.web = Webserver(self.project.web_address)
        self.watch = Watch(self.engine)
        closing.callback(self.watch.close)
        harmful = [action for action in HARMFUL if action not in options.without]
        self.sender = Sender(self.transport, options.seed, harmful)
        closing.callback(self.sender.close)
        self.faults = Faults(options.seed, self.project, self.services, self.cluster, self.transport, self.watch)
        closing.callback(self.faults.close)
        self.chance = Random(f"{options.seed}/gaps")
        self.unexpected: Counter[str] = Counter()

    def start(self) -> None:
        """Create everything, in the order that Dagster needs: its storage before the services that share it."""
        self.project.folder.mkdir(parents=True)
        self.project.write()
        install(self.transport)
        self._prepare_storage()
        self.services.start()
        self.liveness.start()
        self.sender.start()
        self.watch.start()
        started = time.monotonic()
        self._wait(self._is_ready, START_SECONDS, "Dagster starts")
        self._wait(
            lambda: self.watch.has_completed_since(GOOD, started), START_SECONDS, "the first orders are processed"
        )

    def make_faults(self) -> float:
        """Make faults until the time is over; returns how long that was."""
        started = time.monotonic()
        kinds = [kind for kind in KINDS if kind not in self.options.without]
        for kind in fault_order(self.options.seed, kinds):
            left = started + self.options.seconds - time.monotonic()
            if left <= 0:
                return time.monotonic() - started
            self._make(kind, started)
        raise AssertionError("unreachable")

    def drain(self) -> float:
        """Wait until everything is processed and nothing is held; returns how long that took."""
        started = time.monotonic()
        self.sender.close()
        fewest, since = self.watch.waiting() + 1, started
        fine_at = [started + number * _FINE_SECONDS for number in range(_FINE)]
        while fewest and time.monotonic() - since < DRAIN_SECONDS:
            left = self.watch.waiting()
            if left < fewest:
                fewest, since = left, time.monotonic()
            if left and fine_at and time.monotonic() >= fine_at[0]:
                # A message is blamed only if others succeed.
                fine_at.pop(0)
                with suppress(QueuePipelineError):
                    self.sender.send_hostile(FINE)
                fewest += 1
            self._show(f"draining: {left:,} messages are left")
            time.sleep(_LOOK_SECONDS)
        drained = time.monotonic() - started
        with suppress(TimeoutError):
            self._wait(self._is_quiet, END_SECONDS, "runs end")
        for status, count in self._runs_in_flight().items():
            self.unexpected[f"runs that are {status} though nothing waits: {count}"] += count
        return drained

    def report(self, seconds: float, drained: float) -> DagsterReport:
        """The account, after the deployment has ended."""
        work = self._work()
        self.watch.close()
        self.liveness.close()
        self.services.close()
        with self.engine.connect() as connection:
            found = accounts(connection)
        report = Report(self.options.seed, seconds, drained, found, self.watch.standstills.times, work, self.unexpected)
        return DagsterReport(report, self.watch.standstills, self.options.longest_standstill)

    def _make(self, kind: str, started: float) -> None:
        """One fault: wait for a target, do it, undo it, and wait until orders flow again."""
        deadline = time.monotonic() + _TARGET_SECONDS
        while (lasts := self.faults.begin(kind)) is None:
            if time.monotonic() > deadline:
                self._note(f"{kind}: nothing to do it to")
                return
            self._sleep(_LOOK_SECONDS, started)
        began = time.monotonic()
        self.watch.fault(kind)
        self._note(kind)
        self._sleep(lasts, started, is_watched=False)
        self.faults.end(kind)
        over = time.monotonic()
        if self.chance.random() < _PAIR_SHARE:
            self._sleep(self.chance.uniform(*_GAPS), started)
            return
        while not self.watch.has_completed_since(GOOD, over):
            if time.monotonic() - began > 1.5 * self.options.longest_standstill:
                self._note(f"{kind}: no recovery yet, going on")
                break
            self._sleep(_LOOK_SECONDS, started)
        else:
            self._note(f"{kind}: orders flow again {time.monotonic() - began:.1f} s after its beginning")
        self._sleep(self.chance.uniform(*_GAPS), started)

    def _sleep(self, seconds: float, started: float, *, is_watched: bool = True) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            if is_watched and self.faults.spark_has_died():
                self.watch.fault(SPARK_KILLED)
                self._note(SPARK_KILLED)
            standstills = self.watch.standstills
            self._show(
                f"{time.monotonic() - started:.0f} s: {self.sender.sent:,} messages sent, "
                f"{standstills.done:,} completed, {standstills.times.total():,} faults"
            )

    def _prepare_storage(self) -> None:
        """Services that start together on an empty home can break a SQLite storage for good."""
        program = str(Path(sys.executable).with_name("dagster"))
        done = subprocess.run(
            [program, "instance", "migrate"],
            env=self.project.environment(),
            cwd=self.project.home,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise QueuePipelineError(f"Dagster's storage cannot be created: {done.stderr[-2000:]}")

    def _is_ready(self) -> bool:
        with suppress(OSError):
            return self.web.is_ready()
        return False

    def _is_quiet(self) -> bool:
        """Whether no run is in flight and no place is held."""
        return not self._runs_in_flight() and not self.transport.slots.list()

    def _runs_in_flight(self) -> Counter[str]:
        try:
            return Counter(run.status for run in self.web.runs(*IN_FLIGHT) if run.pipeline is not None)
        except OSError as error:
            return Counter({f"unknown ({error})": 1})

    def _work(self) -> Counter[tuple[str, str]]:
        work = Counter({("supervisor", f"restarted the {name}"): n for name, n in self.services.restarts.items()})
        work.update(("liveness probe", f"restarted the {name}") for name in self.liveness.restarted)
        with suppress(OSError):
            work.update(("runs", f"{run.pipeline} {run.status}") for run in self.web.runs() if run.pipeline)
        return work

    def _wait(self, look: Callable[[], bool], seconds: float, what: str) -> None:
        started = time.monotonic()
        while not look():
            if time.monotonic() - started > seconds:
                log = tail(self.services.log("code server"), 40)
                raise TimeoutError(f"{what}: not within {seconds:.0f} s\n{log}")
            self._show(f"waiting until {what}: {time.monotonic() - started:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def _show(self, line: str) -> None:
        self.options.show_progress(line)

    def _note(self, line: str) -> None:
        with self.journal.open("a") as journal:
            journal.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def run(options: Options) -> DagsterReport:
    """Run it; nothing is left behind but logs in a folder that was asked for."""
    with ExitStack() as closing:
        folder = Path(
            closing.enter_context(TemporaryDirectory(prefix="queue_pipeline-chaos-", ignore_cleanup_errors=True))
        )
        contest = Contest(options, folder, closing)
        try:
            contest.start()
        except TimeoutError as error:
            raise QueuePipelineError(str(error)) from None
        seconds = contest.make_faults()
        drained = contest.drain()
        return contest.report(seconds, drained)
