"""The demo's decisions: where it keeps things, what it counts, and whose UI it looks at."""

from __future__ import annotations

import json
import signal
import socket
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from queue_pipeline.orchestration.storage.old_runs import keep_days
from tools.demo.command import main
from tools.demo.dagster_ui import DagsterUi, Run, free_port
from tools.demo.figures import Figures
from tools.demo.workplace import DemoError, Workplace

pytestmark = pytest.mark.heavy


def test_a_demo_has_a_database_a_dagster_and_a_spark_of_its_own(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    made = place.environment({"QUEUE_PIPELINE_DATABASE": "postgresql://production", "PATH": "/bin"})
    assert made["QUEUE_PIPELINE_DATABASE"] == f"sqlite:///{tmp_path}/queues.db"
    assert made["DAGSTER_HOME"] == str(tmp_path / "dagster")
    assert made["SPARK_LOCAL_CONNECT_DISCOVERY"] == str(tmp_path / "spark" / "connect.json")
    assert made["PATH"] == "/bin"
    assert keep_days(made) == 7
    assert place.owns_spark({})


def test_a_spark_that_the_environment_names_is_used_and_left_alone(tmp_path: Path) -> None:
    place, given = Workplace(tmp_path), {"SPARK_LOCAL_CONNECT_DISCOVERY": "elsewhere.json"}
    assert place.environment(given)["SPARK_LOCAL_CONNECT_DISCOVERY"] == "elsewhere.json"
    assert not place.owns_spark(given)
    assert not place.owns_spark({"QUEUE_PIPELINE_SPARK": "sc://cluster:15002"})


def test_a_second_demo_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    with Workplace(tmp_path).occupied(), pytest.raises(DemoError, match="already"), Workplace(tmp_path).occupied():
        pass
    with Workplace(tmp_path).occupied():
        pass


def test_a_fresh_start_removes_the_files_of_the_demo_and_nothing_else(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.prepare()
    for name in ("queues.db", "queues.db-wal", "dagster.log", "letters.txt"):
        (tmp_path / name).write_text("x")
    place.clear()
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_every_order_is_accounted_for() -> None:
    before = Figures(5, 10, 10, 1, 10, Decimal(100))
    assert Figures(0, 110, 110, 6, 110, Decimal(200)).complete(before, 100)
    assert Figures(40, 70, 70, 6, 70, Decimal(200)).complete(before, 100)
    for wrong in (
        Figures(0, 109, 109, 6, 109, Decimal(200)),  # one is lost
        Figures(0, 111, 111, 6, 111, Decimal(200)),  # one is duplicated
        Figures(0, 110, 109, 6, 110, Decimal(200)),  # sent to one queue only
        Figures(0, 110, 110, 6, 109, Decimal(200)),  # not added up
    ):
        assert not wrong.complete(before, 100)


def test_the_result_is_shown_for_this_run_and_in_total() -> None:
    before = Figures(0, 10, 10, 1, 10, Decimal("100.00"))
    rows = Figures(0, 1010, 1010, 3, 1010, Decimal("1100.50")).rows(before, 1002, 3.21)
    assert ("orders sent", "1,002", "") in rows
    assert ("invoices in billing", "1,000", "1,010") in rows
    assert ("bad orders in error", "2", "3") in rows
    assert ("revenue in order_totals", "1,000.50", "1,100.50") in rows
    assert ("seconds from sent to processed", "3.2", "") in rows


def test_another_port_is_found_when_the_usual_one_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) not in (port, 0)
    assert free_port(port) == port


def test_pages_are_on_this_machine_only() -> None:
    pages = DagsterUi(3000, Path("home")).pages(Run("abc", "SUCCESS"))
    assert all(address.startswith("http://127.0.0.1:3000/") for address, _ in pages)
    assert pages[-1][0].endswith("/runs/abc")


class Stranger(BaseHTTPRequestHandler):
    """Another Dagster, or whatever else listens there."""

    answer = b""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200 if self.answer else 404)
        self.end_headers()
        self.wfile.write(self.answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_ui_is_up_when_it_answers_for_the_demos_own_instance(
    stranger: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    details = {"data": {"instance": {"info": f"base_dir: {tmp_path}/storage"}}}
    monkeypatch.setattr(Stranger, "answer", json.dumps(details).encode())
    assert DagsterUi(stranger, tmp_path).answers()
    assert not DagsterUi(1, tmp_path).answers()


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[]", b"{}", b'{"data": {"instance": {"info": "base_dir: other"}}}']
)
def test_another_ui_is_not_taken_for_that_of_the_demo(
    stranger: int, answer: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Stranger, "answer", answer)
    with pytest.raises(DemoError, match="taken by another program"):
        DagsterUi(stranger, tmp_path).answers()


@pytest.mark.parametrize(("status", "over"), [("SUCCESS", True), ("CANCELED", True), ("STARTED", False)])
def test_a_run_is_over_when_it_ended(status: str, over: bool) -> None:
    assert Run("abc", status).is_over is over


@pytest.fixture
def signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("signals")
def test_a_named_cluster_that_does_not_exist_is_reported_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUEUE_PIPELINE_SPARK", "sc://127.0.0.1:1/;token=hush")
    assert main(["--once", "--messages", "1", "--folder", str(tmp_path)]) == 1
    output = capsys.readouterr()
    assert "demo: Spark is sc://127.0.0.1:1/, as QUEUE_PIPELINE_SPARK says" in output.out
    assert "the Spark Connect server at 127.0.0.1:1 does not answer" in output.err
    assert "hush" not in output.out + output.err


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--once", "--trickle"], "leave it out with --once"),
        (["--messages", "0"], "not in the range"),
        (["--nonsense"], "no such option"),
    ],
)
@pytest.mark.usefixtures("signals")
def test_what_cannot_be_done_is_reported(
    arguments: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert reported in capsys.readouterr().err.lower()
