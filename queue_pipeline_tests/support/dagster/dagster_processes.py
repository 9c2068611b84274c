"""Dagster as it is run in production: a code server, the daemon and the webserver, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from queue_pipeline_tests.support.waiting import eventually
from tools.postgres_cluster import free_port

LOCATION = "queue_pipeline"
MODULE = "queue_pipeline.definitions"
REPOSITORY = "__repository__"
START_SECONDS = 120.0
STOP_SECONDS = 20.0
LOG_LINES = 60

INSTANCE = """\
telemetry:
  enabled: false
sensors:
  use_threads: true
  num_workers: 4
# Launches at once; the queued coordinator of the default looks every five seconds.
run_coordinator:
  module: dagster.core.run_coordinator
  class: DefaultRunCoordinator
run_monitoring:
  enabled: true
  free_slots_after_run_end_seconds: 60
retention:
  sensor:
    purge_after_days:
      skipped: 1
      failure: 7
      success: 7
nux:
  enabled: false
"""


@dataclass(frozen=True)
class Run:
    """A run as the webserver reports it."""

    id: str
    status: str
    job: str
    tags: Mapping[str, str]

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.status in ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True)
class Tick:
    """An evaluation of a sensor."""

    status: str
    timestamp: float
    skip_reason: str | None
    run_ids: tuple[str, ...]
    origin_run_ids: tuple[str, ...]
    """The runs whose end it was about, for sensors that watch runs."""


class Dagster:
    """A running deployment: its address, its processes, and what tests ask of it."""

    def __init__(
        self, home: Path, port: int, processes: dict[str, subprocess.Popen[bytes]], start: Callable[[str], None]
    ) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{port}"
        self._processes = processes
        self._start = start
        # Nothing between this machine and itself.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def query(self, text: str, **variables: Any) -> dict[str, Any]:
        """What GraphQL answers; an error of it fails the test."""
        body = json.dumps({"query": text, "variables": variables}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=60) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"GraphQL: {error.code} {error.read().decode()[:2000]}") from None
        assert not answer.get("errors"), answer["errors"]
        data: dict[str, Any] = answer["data"]
        return data

    def runs(self, *, tags: Mapping[str, str] | None = None, ids: Iterable[str] | None = None) -> list[Run]:
        """Runs, the newest first."""
        chosen: dict[str, Any] = {"tags": [{"key": key, "value": value} for key, value in (tags or {}).items()]}
        if ids is not None:
            chosen["runIds"] = list(ids)
        answer = self.query(
            """query ($filter: RunsFilter!) { runsOrError(filter: $filter) {
                 ... on Runs { results { runId status jobName tags { key value } } }
                 ... on Error { message } } }""",
            filter=chosen,
        )["runsOrError"]
        assert "results" in answer, answer
        return [
            Run(one["runId"], one["status"], one["jobName"], {tag["key"]: tag["value"] for tag in one["tags"]})
            for one in answer["results"]
        ]

    def run(self, run_id: str) -> Run:
        """One run."""
        (found,) = self.runs(ids=[run_id])
        return found

    def steps(self, run_id: str) -> dict[str, str]:
        """How the steps of a run ended, by name."""
        answer = self.query(
            "query ($id: ID!) { runOrError(runId: $id) { ... on Run { stepStats { stepKey status } } } }", id=run_id
        )
        return {step["stepKey"]: step["status"] for step in answer["runOrError"]["stepStats"]}

    def worker_pid(self, run_id: str) -> int | None:
        """The process that works on a run, once it has said so."""
        answer = self.query(
            """query ($id: ID!) { runOrError(runId: $id) { ... on Run { eventConnection { events {
                 ... on EngineEvent { metadataEntries { label
                   ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue } } } } } } } }""",
            id=run_id,
        )
        for event in answer["runOrError"]["eventConnection"]["events"]:
            for entry in event.get("metadataEntries", ()):
                if entry["label"] == "pid":
                    return int(entry.get("text") or entry["intValue"])
        return None

    def terminate(self, run_id: str) -> None:
        """What the button "Terminate" of a run does."""
        answer = self.query(
            """mutation ($id: String!) { terminateRun(runId: $id) { __typename
                 ... on TerminateRunFailure { message } ... on PythonError { message } } }""",
            id=run_id,
        )["terminateRun"]
        assert answer["__typename"] == "TerminateRunSuccess", answer

    def launch(self, job: str) -> str:
        """What the button "Launch run" of a job does; the id of the run."""
        answer = self.query(
            """mutation ($parameters: ExecutionParams!) { launchRun(executionParams: $parameters) { __typename
                 ... on LaunchRunSuccess { run { runId } } ... on Error { message } } }""",
            parameters={
                "selector": {
                    "repositoryName": REPOSITORY,
                    "repositoryLocationName": LOCATION,
                    "jobName": job,
                },
                "runConfigData": {},
            },
        )["launchRun"]
        assert answer["__typename"] == "LaunchRunSuccess", answer
        run_id: str = answer["run"]["runId"]
        return run_id

    def ticks(self, sensor: str, limit: int = 20) -> list[Tick]:
        """The last ticks of a sensor, the newest first."""
        answer = self.query(
            """query ($selector: SensorSelector!, $limit: Int!) { sensorOrError(sensorSelector: $selector) {
                 ... on Sensor { sensorState { ticks(limit: $limit) {
                   status timestamp skipReason runIds originRunIds } } }
                 ... on Error { message } } }""",
            selector={
                "repositoryName": REPOSITORY,
                "repositoryLocationName": LOCATION,
                "sensorName": sensor,
            },
            limit=limit,
        )["sensorOrError"]
        assert "sensorState" in answer, answer
        return [
            Tick(
                tick["status"],
                tick["timestamp"],
                tick["skipReason"],
                tuple(tick["runIds"]),
                tuple(tick["originRunIds"]),
            )
            for tick in answer["sensorState"]["ticks"]
        ]

    def materializations(self, *key: str) -> list[dict[str, Any]]:
        """The figures of an asset's materialisations, the newest first, each with its run."""
        answer = self.query(
            """query ($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset {
                 assetMaterializations(limit: 50) { runId metadataEntries { label
                   ... on IntMetadataEntry { intRepr } ... on FloatMetadataEntry { floatValue }
                   ... on TextMetadataEntry { text } } } } } }""",
            key={"path": list(key)},
        )["assetOrError"]
        return [{"run_id": one["runId"], **_figures(one)} for one in answer.get("assetMaterializations", ())]

    def assets(self) -> set[str]:
        """The names of all assets."""
        return {"/".join(node["assetKey"]["path"]) for node in self.query("{assetNodes{assetKey{path}}}")["assetNodes"]}

    def is_ready(self) -> bool:
        """Whether the webserver answers with the project loaded and the daemons have reported."""
        for name, process in self._processes.items():
            assert process.poll() is None, f"the {name} ended with {process.returncode}:\n{self.logs()}"
        try:
            answer = self.query(
                """{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {
                       __typename ... on PythonError { message } } } } }
                     instance { daemonHealth { daemonStatus(daemonType: "SENSOR") { healthy } } } }"""
            )
        except OSError:
            return False
        loaded = [entry["locationOrLoadError"] for entry in answer["workspaceOrError"]["locationEntries"]]
        for one in loaded:
            assert one is None or one["__typename"] != "PythonError", one["message"]
        healthy = answer["instance"]["daemonHealth"]["daemonStatus"]["healthy"]
        return bool(loaded) and all(loaded) and bool(healthy)

    def kill_code_server(self, after_seconds: float) -> None:
        """Stop the code server as `docker stop` does: SIGTERM to its process, SIGKILL to its group some time later."""
        server = self._processes["code-server"]
        server.terminate()
        with suppress(AssertionError):
            eventually(lambda: server.poll() is not None, seconds=after_seconds)
        _kill(server)

    def start_code_server(self) -> None:
        """Start the code server again, at the same address."""
        self._start("code-server")

    def logs(self) -> str:
        """The end of what every process printed."""
        parts = []
        for name in self._processes:
            log = self.home / f"{name}.log"
            lines = log.read_text(errors="replace").splitlines() if log.exists() else ["its log is gone"]
            parts.append("\n".join([f"--- {name}", *lines[-LOG_LINES:]]))
        return "\n".join(parts)


@contextmanager
def dagster_processes(
    environment: Mapping[str, str], *, module: str = MODULE, stop_seconds: float = STOP_SECONDS
) -> Iterator[Dagster]:
    """Start a deployment of a project in a home of its own; it may still be starting when the block begins.

    The code server is started once and shared, so that the project is imported once. At the end nothing of it runs;
    whatever has not ended by itself after `stop_seconds` is killed.
    """
    with tempfile.TemporaryDirectory(prefix="queue_pipeline-dagster-", ignore_cleanup_errors=True) as folder:
        home, port = Path(folder), free_port()
        socket = home / "code.sock"
        (home / "dagster.yaml").write_text(INSTANCE)
        # Before the processes, as `dagster instance migrate` does: together they can break an empty SQLite storage.
        dg.DagsterInstance.from_config(folder).dispose()
        workspace = home / "workspace.yaml"
        workspace.write_text(f"load_from:\n  - grpc_server:\n      socket: {socket}\n      location_name: {LOCATION}\n")
        programs = Path(sys.executable).parent
        commands: dict[str, list[object]] = {
            "code-server": ["dagster", "api", "grpc", "-m", module, "-s", socket, "--location-name", LOCATION],
            "daemon": ["dagster-daemon", "run", "-w", workspace],
            "webserver": ["dagster-webserver", "-h", "127.0.0.1", "-p", port, "-w", workspace],
        }
        given = {**environment, "DAGSTER_HOME": folder}
        processes: dict[str, subprocess.Popen[bytes]] = {}

        def start(name: str) -> None:
            program, *arguments = commands[name]
            command = [str(programs / str(program)), *map(str, arguments)]
            with (home / f"{name}.log").open("ab") as log:
                processes[name] = subprocess.Popen(
                    # The kernel ends it if this process dies, however hard.
                    ["setpriv", "--pdeathsig", "TERM", "--", *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=given,
                    cwd=home,
                    start_new_session=True,
                )

        try:
            for name in commands:
                if name != "code-server":
                    eventually(lambda: socket.exists() or processes["code-server"].poll() is not None, seconds=60)
                start(name)
            yield Dagster(home, port, processes, start)
        finally:
            # The daemon first, so that it starts no further run.
            started = [processes[name] for name in ("daemon", "webserver", "code-server") if name in processes]
            _stop(started, stop_seconds)


def _stop(processes: Sequence[subprocess.Popen[bytes]], seconds: float) -> None:
    """End processes with all that they started: kindly and all at once, for each may have a tick to end; then hard."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)

    def left() -> list[int]:
        ended = [process for process in processes if process.poll() is not None]
        running = [process.pid for process in processes if process not in ended]
        return [*running, *(pid for process in ended for pid in members(process.pid))]

    with suppress(AssertionError):
        eventually(lambda: not left(), seconds=seconds)
    for process in processes:
        _kill(process)
    eventually(lambda: not left(), seconds=10)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the group of a process."""
    for pid in members(process.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def members(group: int) -> list[int]:
    """The living processes of a group."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(process_group) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


def _figures(event: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for entry in event["metadataEntries"]:
        if "intRepr" in entry:
            figures[entry["label"]] = int(entry["intRepr"])
        elif "floatValue" in entry:
            figures[entry["label"]] = entry["floatValue"]
        elif "text" in entry:
            figures[entry["label"]] = entry["text"]
    return figures
