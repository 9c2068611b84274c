"""`move-due --watch` and `status --watch` as they are started: they go on until Ctrl-C."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import environment, program, start

pytestmark = pytest.mark.heavy


@contextmanager
def watching(folder: Path, *arguments: str, name: str = "move-due") -> Iterator[subprocess.Popen[str]]:
    command = [*program(), name, *arguments, "--watch"]
    command += ["0.2"] if name == "status" else []
    with subprocess.Popen(
        command, cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert start(tmp_path, "install", "orders", "returns").returncode == 0
    return tmp_path


def test_messages_are_moved_as_they_become_due_until_an_interrupt(folder: Path) -> None:
    start(folder, "send", "orders", "--body", "{}", "--count", 2, "--delay", 0)
    with watching(folder, "orders", "returns") as process:
        assert line(process) == "moved 2 messages of orders\n"
        start(folder, "send", "returns", "--body", "soon", "--delay", "0.3")
        assert line(process) == "moved 1 message of returns\n"
        assert interrupted(process) == (0, "")
    assert json.loads(start(folder, "peek", "returns", "--json").stdout)["queues"][0]["count"] == 1


def test_every_move_is_a_json_document_of_its_own(folder: Path) -> None:
    with watching(folder, "orders", "--json") as process:
        for count in (1, 3):
            start(folder, "send", "orders", "--body", "{}", "--count", count, "--delay", 0)
            assert json.loads(line(process)) == {"queue": "orders", "moved": count}
        assert interrupted(process) == (0, "")


def test_a_queue_that_does_not_exist_is_reported_at_once(folder: Path) -> None:
    refused = start(folder, "move-due", "missing", "--watch")
    assert refused.returncode == 3
    assert "missing.Delayed does not exist" in refused.stderr


def test_a_reader_that_goes_away_ends_the_watch(folder: Path) -> None:
    with watching(folder, "orders") as process:
        start(folder, "send", "orders", "--body", "{}", "--count", 1, "--delay", 0)
        assert line(process) == "moved 1 message of orders\n"
        assert process.stdout is not None
        process.stdout.close()
        start(folder, "send", "orders", "--body", "{}", "--count", 1, "--delay", 0)
        assert process.wait(timeout=60) == 141


def test_status_is_a_json_document_per_line_with_messages_in_and_out_per_second(folder: Path) -> None:
    with watching(folder, "orders", "--json", name="status") as process:
        (first,) = json.loads(line(process))["queues"]
        assert (first["queue"], first["pending"], first["in_per_second"]) == ("orders", 0, None)
        start(folder, "send", "orders", "--body", "{}", "--count", 500)
        assert rate(process, "in_per_second") > 0
        assert start(folder, "receive", "orders", "--max", 500).returncode == 0
        assert rate(process, "out_per_second") > 0
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def rate(process: subprocess.Popen[str], name: str) -> float:
    """The first rate above zero."""
    while True:
        (queue,) = json.loads(line(process))["queues"]
        if queue[name]:
            return float(queue[name])


def test_status_without_a_terminal_prints_its_table_repeatedly(folder: Path) -> None:
    with watching(folder, "orders", name="status") as process:
        for _ in range(2):
            assert line(process).split() == [
                "queue", "waiting", "in/s", "out/s", "oldest", "in", "work", "failed", "delayed",
            ]  # fmt: skip
            line(process)
            assert line(process).split()[:2] == ["orders", "0"]
        assert interrupted(process) == (0, "")
