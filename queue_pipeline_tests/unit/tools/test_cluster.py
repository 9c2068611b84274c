"""The cluster's decisions: which ports it takes, what Spark's programs see, and what it says when one of them dies."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline_tests.support.waiting import eventually
from tools.cluster import programs
from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.command import CONNECT_PORT, main
from tools.cluster.ports import Ports, answers, prefer, take
from tools.cluster.standalone import StandaloneCluster, megabytes
from tools.cluster.state import STATE, ClusterError, ClusterState, Member
from tools.cluster.status import executors_of, registered_workers
from tools.processes import Processes

pytestmark = pytest.mark.heavy

PROCESS = Path("/proc/self/cmdline").read_text().split("\0")[:-1]
LISTENER = [
    sys.executable,
    "-c",
    "import socket, time; one = socket.create_server(('127.0.0.1', 0)); print(one.getsockname()[1], flush=True); "
    "time.sleep(600)",
]
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_a_port_that_is_taken_is_named_with_its_process_unless_any_other_will_do(taken: int) -> None:
    with pytest.raises(ClusterError) as refused:
        take(taken, "the master", "--master-port N")
    process = f"process {os.getpid()} ({PROCESS[0]}"
    assert f"port {taken} for the master is taken by {process}" in str(refused.value)
    assert f"end it (kill {os.getpid()}), or choose another port: --master-port N (0 is any" in str(refused.value)
    assert prefer(taken) not in (taken, 0)
    assert take(0, "anything") not in (taken, 0)
    assert answers(taken)


@pytest.mark.parametrize(("amount", "expected"), [("2g", 2048), ("1536m", 1536), ("1GB", 1024)])
def test_memory_is_spelt_as_spark_spells_it(amount: str, expected: int) -> None:
    assert megabytes(amount) == expected


@pytest.mark.parametrize(("memory", "reported"), [("2", "no amount of memory"), ("512m", "no room for an executor")])
def test_too_little_or_invalid_memory_is_refused(memory: str, reported: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=reported):
        StandaloneCluster(tmp_path, memory=memory)


def test_programs_of_spark_see_no_setting_of_another_spark_and_use_this_python(tmp_path: Path) -> None:
    given = {"PATH": "/bin", "SPARK_REMOTE": "sc://other", "SPARK_HOME": "/other", "PYSPARK_PYTHON": "/other/python"}
    made = programs.environment(tmp_path, "token", given)
    assert made["PATH"] == "/bin"
    assert made["PYSPARK_PYTHON"] == sys.executable
    assert made["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert made["SPARK_LOCAL_DIRS"] == str(tmp_path / "local")
    assert not [name for name, value in made.items() if "other" in value]


def test_everything_listens_on_the_loopback_address() -> None:
    url = "spark://127.0.0.1:1"
    assert programs.master(1, 2)[2:4] == ["--host", "127.0.0.1"]
    assert programs.worker(url, Path("work"), 3, 4, cores=1, memory="2g")[2:4] == ["--host", "127.0.0.1"]
    server = programs.connect(url, Path("folder"), 5, cores=1)
    assert {"spark.connect.grpc.binding.address=127.0.0.1", "spark.driver.bindAddress=127.0.0.1"} <= set(server)


class Page(BaseHTTPRequestHandler):
    """A master's page, or something else."""

    answer: object = None

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(self.answer).encode() if self.path == "/json/" else b"<html>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page() -> Iterator[Member]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Member(name="master", pid=1, port=7077, ui_port=server.server_port)
        server.shutdown()


def test_workers_count_when_the_master_says_that_they_live(page: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [{"port": 1, "state": "ALIVE"}, {"port": 2, "state": "DEAD"}]
    details = {"url": "spark://127.0.0.1:7077", "status": "ALIVE", "workers": workers}
    monkeypatch.setattr(Page, "answer", details)
    assert registered_workers(page) == {1}
    monkeypatch.setattr(Page, "answer", {**details, "status": "RECOVERING"})
    assert registered_workers(page) is None
    monkeypatch.setattr(Page, "answer", {**details, "url": "spark://127.0.0.1:7078"})
    assert registered_workers(page) is None


@pytest.mark.parametrize("answer", [None, [], {}, {"status": "ALIVE"}, {"workers": [{}]}])
def test_any_other_answer_is_not_that_of_a_master(
    page: Member, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Page, "answer", answer)
    assert registered_workers(page) is None


def test_executors_are_distinguished_by_their_worker(tmp_path: Path) -> None:
    ours = Processes(tmp_path, os.environ)
    try:
        one = ours.start(
            [*SLEEPER, programs.EXECUTOR, "--worker-url", "spark://Worker@127.0.0.1:7001"], tmp_path / "log"
        )
        ours.start([*SLEEPER, programs.EXECUTOR, "--worker-url", "spark://Worker@127.0.0.1:7002"], tmp_path / "log")
        ours.start([*SLEEPER, "spark://Worker@127.0.0.1:7001"], tmp_path / "log")
        assert eventually(lambda: executors_of(7001, ours.alive())) == [one.pid]
    finally:
        ours.end()


@pytest.mark.parametrize("text", ["", "{}", '{"mark": "a", "size": 0, "with_connect": true}'])
def test_a_state_that_cannot_be_read_is_reported_and_kept(tmp_path: Path, text: str) -> None:
    (tmp_path / STATE).write_text(text)
    with pytest.raises(ClusterError, match="cannot be read"):
        ClusterFolder(tmp_path).read()
    assert main(["stop", "--folder", str(tmp_path)]) == 1
    assert (tmp_path / STATE).exists()


def test_what_is_written_down_is_read_again(tmp_path: Path) -> None:
    state = ClusterState(mark="abc", size=1, with_connect=True)
    state.master = Member(name="master", pid=1, port=7077, ui_port=8080)
    state.connect = Member(name="connect", pid=2, port=15002)
    ClusterFolder(tmp_path).write(state)
    assert ClusterFolder(tmp_path).read() == state
    assert (state.master_url, state.remote_url) == ("spark://127.0.0.1:7077", "sc://localhost:15002")


def test_one_folder_is_started_or_stopped_by_one_at_a_time(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    with folder.occupied(), pytest.raises(ClusterError, match="right now"):
        StandaloneCluster(tmp_path).start()


def test_a_second_cluster_in_a_folder_neither_starts_nor_harms_the_first(tmp_path: Path) -> None:
    first = Processes(tmp_path, os.environ)
    try:
        process = first.start(SLEEPER, tmp_path / "log")
        ClusterFolder(tmp_path).write(ClusterState(mark=first.mark, size=1, with_connect=False))
        second = StandaloneCluster(tmp_path)
        with pytest.raises(ClusterError, match="already"):
            second.start()
        second.stop()
        assert process.poll() is None
        assert ClusterFolder(tmp_path).alive() == [process.pid]
    finally:
        first.end()


def test_a_program_that_dies_is_reported_with_the_end_of_its_log_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = "sleep 600 & echo no room in the inn; exit 3"
    monkeypatch.setattr(programs, "master", lambda *_: ["sh", "-c", helper])
    cluster = StandaloneCluster(tmp_path)
    with pytest.raises(ClusterError, match=r"(?s)Spark's master ended with 3; the end of .*no room in the inn"):
        cluster.start()
    assert Processes(tmp_path, {}, cluster.state.mark).alive() == []
    assert ClusterFolder(tmp_path).read() is None


def test_without_java_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert main(["start", "--folder", str(tmp_path / "cluster")]) == 1
    assert "Spark needs Java 17 or newer and there is none; install it" in capsys.readouterr().err


def test_a_port_that_is_taken_is_reported_before_anything_starts(
    taken: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--master-port", "0", "--connect-port", str(taken)]
    assert main(["start", *options, "--folder", str(tmp_path)]) == 1
    assert f"port {taken} for the Connect server is taken" in capsys.readouterr().err
    assert ClusterFolder(tmp_path).read() is None


def test_a_port_of_a_cluster_in_another_folder_is_reported_with_the_command_that_stops_it(tmp_path: Path) -> None:
    other = tmp_path / "other one"
    ours = Processes(tmp_path, {**os.environ, "SPARK_CONF_DIR": str(other / "conf")})
    ClusterFolder(other).path.mkdir()
    try:
        ours.start(LISTENER, tmp_path / "log")
        port = int(eventually(lambda: (tmp_path / "log").read_text().strip()))
        with pytest.raises(ClusterError, match=r"taken by process \d+ .*; end it \(kill \d+\), or choose"):
            take(port, "the Connect server")
        ClusterFolder(other).write(ClusterState(mark=ours.mark, size=1, with_connect=True))
        with pytest.raises(ClusterError) as refused:
            take(port, "the Connect server")
        assert f"which this ends: scripts/cluster stop --folder '{other}'; or choose" in str(refused.value)
    finally:
        ours.end()


def test_a_port_of_a_warm_server_is_reported_with_the_command_that_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discovery = tmp_path / "server.json"
    monkeypatch.setenv("SPARK_LOCAL_CONNECT_DISCOVERY", str(discovery))
    server = subprocess.Popen(
        [*LISTENER, "org.apache.spark.sql.connect.service.SparkConnectServer"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        described = {"host": "localhost", "port": port, "token": "t", "pid": server.pid, "spark_version": "4.3.0"}
        discovery.write_text(json.dumps(described))
        with pytest.raises(
            ClusterError, match=r"it is a warm Spark server, which this ends: .*queue-pipeline spark stop"
        ):
            take(port, "the Connect server")
    finally:
        server.kill()
        server.communicate()


def test_the_cluster_and_the_warm_server_want_different_ports() -> None:
    assert str(CONNECT_PORT) == "15002"
    assert spark_config(None, {})["spark.local.connect.server.port"] == "15012"


def test_a_cluster_that_is_not_started_has_no_address(tmp_path: Path) -> None:
    cluster = StandaloneCluster(tmp_path, connect=False, ports=Ports())
    with pytest.raises(ClusterError, match="is not started"):
        _ = cluster.master
    with pytest.raises(ClusterError, match="has no Connect server"):
        _ = cluster.remote


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        ([], "start, stop or status"),
        (["begin"], "no such command"),
        (["start", "--workers", "0"], "not in the range"),
        (["start", "--memory", "lots"], "no amount of memory"),
    ],
)
def test_what_cannot_be_done_is_reported(
    arguments: list[str],
    reported: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    handler = signal.getsignal(signal.SIGTERM)
    assert main(arguments) != 0
    assert reported in capsys.readouterr().err.lower()
    assert signal.getsignal(signal.SIGTERM) is handler
