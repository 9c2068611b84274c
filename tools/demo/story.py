"""The demo from beginning to end: queues, orders, Spark, Dagster, and the results."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from queue_pipeline.cli.output import write_heading, write_lines, write_table
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session
from queue_pipeline.processing.spark import warm_server as warm_spark
from queue_pipeline.processing.spark.folder import DISCOVERY_VARIABLE
from queue_pipeline.processing.spark.session import check_reachable
from queue_pipeline.processing.spark.settings import ENVIRONMENT_VARIABLE as SPARK_VARIABLE
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport.transport import QueueTransport
from tools.demo.dagster_ui import JOB, DagsterUi, Run, free_port
from tools.demo.figures import Figures, unprocessed
from tools.demo.workplace import DemoError, Workplace, keeps_warm, project_folder
from tools.example import shop
from tools.example.orders import random_seed
from tools.example.samples import samples
from tools.processes import Processes, tail

BAD = 0.01
TRICKLE_A_SECOND = 3.0
PATIENCE_SECONDS = 300.0
"""For any one step: a slow machine that starts Spark for the first time may need a minute."""
_LOOK_SECONDS = 0.25
_DAGSTER = "dagster"
FIX = """sed -i 's/^TAX_PERCENT = {/&"NZ": 15, /' queue_pipeline/defs/orders.py"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for on the command line."""

    messages: int
    once: bool
    trickle: bool
    keep_spark: bool


class Story:
    """One demo; `end` ends all processes that it started."""

    def __init__(self, place: Workplace, wishes: Wishes) -> None:
        self._place = place
        self._wishes = wishes
        self._environment = place.environment(os.environ)
        self._processes = Processes(project_folder(), self._environment)
        self._transport = QueueTransport(place.database)
        self._ui: DagsterUi | None = None
        self._ui_is_ours = False
        self._trickling = threading.Event()

    def run(self) -> bool:
        """Run it; returns whether every order became one result and the run succeeded."""
        began = time.time()
        shop.install(self._transport)
        before = Figures.read(self._transport)
        spark = self._start_spark()
        kinds = shop.send(self._transport, samples(self._wishes.messages, bad=BAD, seed=random_seed()))
        sent, sent_at = kinds.total(), time.monotonic()
        _say(f"sent {sent:,} orders to the queue orders, {sent - kinds[None]:,} of them bad")
        dagster = self._start_dagster()
        self._wait_for_spark(spark)
        if self._ui is not None:
            self._wait_for_ui(self._ui, dagster, began)
        _say("the pipeline orders is at work")
        self._wait_for_orders(dagster)
        seconds = time.monotonic() - sent_at
        _say("all orders are processed; the run waits some seconds for more before it ends")
        run = self._wait_for_run(dagster, began)
        now = Figures.read(self._transport)
        whole = now.complete(before, sent)
        self._sum_up(now.rows(before, sent, seconds), whole, sent, seconds)
        return whole and (run is None or self._stay(dagster, run))

    def end(self) -> None:
        """End everything that was started."""
        self._trickling.set()
        if self._ui is not None and self._ui_is_ours and self._processes.alive():
            # Before Dagster goes: a run that is killed would count as running when the demo is started again.
            with suppress(OSError):
                self._ui.terminate(self._ui.runs(in_flight=True))
                limit = time.monotonic() + 5
                while self._ui.runs(in_flight=True) and time.monotonic() < limit:
                    time.sleep(_LOOK_SECONDS)
        kept = warm_spark.find(self._place.discovery) if self._wishes.keep_spark else None
        left = self._processes.end(but=[kept.pid] if kept else [])
        if kept is None and self._place.owns_spark(os.environ):
            self._place.end_spark()
        self._transport.close()
        if left:
            raise DemoError(f"these processes do not end: {', '.join(map(str, left))}; end them with: kill -9")
        if kept is not None:
            where = f"{DISCOVERY_VARIABLE}={shlex.quote(str(self._place.discovery))}"
            _say(f"Spark is still warm, process {kept.pid}; stop it with:")
            write_lines(f"    {where} .venv/bin/queue-pipeline spark stop")

    def _start_spark(self) -> subprocess.Popen[bytes] | None:
        if not keeps_warm(os.environ):
            # Parameters after the address may hold a token.
            _say(f"Spark is {os.environ[SPARK_VARIABLE].partition(';')[0]}, as {SPARK_VARIABLE} says")
            # An error here is one sentence; later it would be in the middle of a run's log.
            check_reachable(spark_config(environment=self._environment))
            return None
        _say("starting Spark: half a minute when it is cold, longer on a busy machine")
        command = [sys.executable, "-m", "queue_pipeline.cli", "spark", "start"]
        marked = self._place.owns_spark(os.environ)
        return self._processes.start(command, self._log("spark"), marked=marked)

    def _start_dagster(self) -> subprocess.Popen[bytes]:
        program = str(Path(sys.executable).with_name("dagster"))
        if self._wishes.once:
            command = [program, "job", "execute", "-m", "queue_pipeline.definitions", "-j", JOB]
        else:
            self._create_storage(program)
            self._ui = DagsterUi(free_port(), self._place.dagster_home)
            command = [program, "dev", "-h", "127.0.0.1", "-p", str(self._ui.port)]
        return self._processes.start(command, self._log(_DAGSTER))

    def _create_storage(self, program: str) -> None:
        """Create Dagster's storage before its processes start: together they can break an empty SQLite one for good."""
        if self._place.has_storage:
            return
        log = self._log(_DAGSTER)
        if self._processes.start([program, "instance", "migrate"], log).wait(PATIENCE_SECONDS) != 0:
            raise DemoError(f"Dagster's storage cannot be created: {tail(log, 3)}")

    def _wait_for_spark(self, spark: subprocess.Popen[bytes] | None) -> None:
        if spark is None:
            return
        began = time.monotonic()
        with progress(Session(), "starting Spark"):
            code = spark.wait(PATIENCE_SECONDS)
        if code != 0:
            raise DemoError(f"Spark does not start: {tail(self._place.log('spark'), 3)}")
        _say(f"Spark is warm ({time.monotonic() - began:.0f} s later)")

    def _wait_for_ui(self, ui: DagsterUi, dagster: subprocess.Popen[bytes], began: float) -> None:
        with progress(Session(), "starting Dagster"):
            self._wait(ui.answers, dagster, "Dagster does not come up")
        self._ui_is_ours = True
        # What an earlier demo left behind when it was killed would keep the peek loop from starting runs.
        ui.terminate(ui.runs(before=began, in_flight=True), dead=True)
        _say(f"Dagster is up at {ui.address}")

    def _wait_for_orders(self, dagster: subprocess.Popen[bytes]) -> None:
        total = unprocessed(self._transport)
        with progress(Session(), "processing orders", total) as on_progress:

            def all_are_processed() -> bool:
                left = unprocessed(self._transport)
                on_progress(max(0, total - left))
                return left == 0

            self._wait(all_are_processed, dagster, "the orders are not processed")

    def _wait_for_run(self, dagster: subprocess.Popen[bytes], began: float) -> Run | None:
        """Until the first run is over; without the UI it is the program itself."""
        if self._ui is None:
            with progress(Session(), "waiting for the end of the run"):
                code = dagster.wait(PATIENCE_SECONDS)
            if code != 0:
                raise self._trouble("the job failed")
            return None
        ui, found = self._ui, list[Run]()

        def first_is_over() -> bool:
            found[:] = ui.runs(since=began)[-1:]
            return bool(found) and found[0].is_over

        with progress(Session(), "waiting for the end of the run"):
            self._wait(first_is_over, dagster, "the first run does not end")
        return found[0]

    def _stay(self, dagster: subprocess.Popen[bytes], run: Run) -> bool:
        """Say where to look, and stay until Ctrl-C."""
        assert self._ui is not None
        write_heading("Where to look")
        for number, (address, what) in enumerate(self._ui.pages(run), 1):
            write_lines(f"  {number}. {address}", f"     {what}")
        write_lines("")
        write_heading("Fix what failed, in another terminal")
        write_lines(
            f"  cd {shlex.quote(str(project_folder()))}",
            f"  export QUEUE_PIPELINE_DATABASE={shlex.quote(self._place.database)}",
            "  .venv/bin/queue-pipeline errors list --exception CountryNotServed    # which orders, and why",
            f"  {FIX}    # serve them",
            "  .venv/bin/queue-pipeline errors retry --exception CountryNotServed   # the next run has the new code",
            "  .venv/bin/queue-pipeline status --watch                              # see them go; Ctrl-C ends it",
            "  git checkout queue_pipeline/defs/orders.py                           # undo the change",
            "",
        )
        write_heading("More to try")
        write_lines(
            "  scripts/example send --count 5000 --bad 0.05   # more; Plots show how quick it is",
            "  scripts/example totals                         # what the pipeline added up",
            "  .venv/bin/queue-pipeline pause orders --reason lunch            # and: resume orders",
            "",
        )
        if self._wishes.trickle:
            threading.Thread(target=self._trickle, daemon=True).start()
            _say(f"{TRICKLE_A_SECOND:g} orders a second keep coming")
        _say("Ctrl-C ends the demo and all that it started")
        sys.stdout.flush()
        try:
            dagster.wait()
        except KeyboardInterrupt:
            return run.status == "SUCCESS"
        raise self._trouble("Dagster ended")

    def _trickle(self) -> None:
        transport, seed = QueueTransport(self._place.database), random_seed()
        endless = samples(sys.maxsize, bad=BAD, seed=seed)
        while not self._trickling.wait(1 / TRICKLE_A_SECOND):
            with suppress(Exception):
                shop.send(transport, [next(endless)])

    def _sum_up(self, rows: list[tuple[str, str, str]], whole: bool, sent: int, seconds: float) -> None:
        write_lines("")
        write_table(("what happened", "this time", "in all"), rows, figures=("this time", "in all"))
        write_lines("", "Every order became exactly one result." if whole else "The numbers do not add up!")
        write_lines(f"{sent:,} orders took {seconds:.1f} s, including the start of Dagster and of the run.", "")
        sys.stdout.flush()

    def _wait(self, look: Callable[[], bool], dagster: subprocess.Popen[bytes], problem: str) -> None:
        limit = time.monotonic() + PATIENCE_SECONDS
        while True:
            with suppress(OSError):
                if look():
                    return
            if dagster.poll() is not None and not (self._wishes.once and dagster.returncode == 0):
                raise self._trouble("Dagster ended")
            if time.monotonic() > limit:
                raise self._trouble(f"{problem} after {PATIENCE_SECONDS:.0f} s")
            time.sleep(_LOOK_SECONDS)

    def _trouble(self, what: str) -> DemoError:
        log = self._place.log(_DAGSTER)
        return DemoError(f"{what}; the end of {log}:\n{tail(log)}")

    def _log(self, name: str) -> Path:
        path = self._place.log(name)
        path.unlink(missing_ok=True)
        return path


def _say(line: str) -> None:
    write_lines(f"demo: {line}")
    sys.stdout.flush()
