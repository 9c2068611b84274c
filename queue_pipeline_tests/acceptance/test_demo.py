"""`scripts/demo` as a person starts it: what it says, what it leaves, and that Ctrl-C ends all of it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.waiting import eventually

ROOT = Path(__file__).resolve().parents[2]
DEMO = [str(ROOT / "scripts" / "demo")]

pytestmark = [pytest.mark.timeout(600)]


def left(folder: Path) -> list[str]:
    """The command lines of processes that work for the demo of this folder, Spark included."""
    home = f"DAGSTER_HOME={folder / 'dagster'}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and home in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()[:200])
    return found


@contextmanager
def running(folder: Path, *options: str, **environment: str | None) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A demo in a process group of its own, and the file with what it says; both ended, whatever happens."""
    given = {name: value for name, value in {**os.environ, **environment}.items() if value is not None}
    output = folder.with_suffix(".out")
    with open(output, "w") as out:
        demo = subprocess.Popen(
            [*DEMO, "--folder", str(folder), *options],
            env=given, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, text=True,
        )  # fmt: skip
    try:
        yield demo, output
    finally:
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGTERM)
            demo.wait(60)


def said(demo: subprocess.Popen[str], output: Path, words: str) -> bool:
    text = output.read_text()
    assert words in text or demo.poll() is None, text
    return words in text


def test_once_processes_every_order_and_leaves_nothing_running(tmp_path: Path, spark: SparkSession) -> None:
    folder = tmp_path / "demo"
    ran = subprocess.run(
        [*DEMO, "--once", "--messages", "200", "--folder", str(folder)], capture_output=True, text=True, timeout=500
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout + ran.stderr
    assert left(folder) == []
    assert "Every order became exactly one result." in ran.stdout
    figures = {words[0]: words[1:] for words in (re.split(r"\s{2,}", line.strip()) for line in ran.stdout.splitlines())}
    assert figures["invoices in billing"] == figures["parcels in shipping"] == ["198", "198"]
    assert figures["bad orders in error"] == ["2", "2"]
    assert "Warning" not in ran.stdout
    with QueueTransport(f"sqlite:///{folder}/queues.db") as transport:
        assert [transport.peek(queue) for queue in ("orders", "billing", "shipping", "error")] == [0, 198, 198, 2]


@pytest.mark.slow
def test_an_interrupt_while_spark_starts_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    alone = {"SPARK_LOCAL_CONNECT_DISCOVERY": None, "QUEUE_PIPELINE_SPARK": "warm:local[1]", "SPARK_TESTING": "1"}
    with running(folder, "--messages", "10", **alone) as (demo, output):
        # The JVM is running, and its address is not written down yet.
        eventually(
            lambda: said(demo, output, "demo: sent") and any("java" in each for each in left(folder)), seconds=120
        )
        assert not (folder / "spark" / "connect.json").exists()
        os.killpg(demo.pid, signal.SIGINT)
        assert demo.wait(60) == 130, output.read_text()
        assert left(folder) == []


@pytest.mark.slow
def test_ctrl_c_ends_dagster_and_all_that_it_started(tmp_path: Path, spark: SparkSession) -> None:
    folder = tmp_path / "demo"
    with running(folder, "--messages", "50") as (demo, output):
        eventually(lambda: said(demo, output, "Ctrl-C ends the demo"), seconds=400)
        text = output.read_text()
        assert "Every order became exactly one result." in text
        address = re.search(r"http://127\.0\.0\.1:\d+", text)
        assert address is not None
        with urllib.request.urlopen(f"{address[0]}/server_info", timeout=20) as answer:
            assert answer.status == 200
        assert len(left(folder)) >= 4, "dagster dev, its code server, daemon and webserver"
        os.killpg(demo.pid, signal.SIGINT)
        assert demo.wait(60) == 0, output.read_text()
        assert left(folder) == []
