"""`move-due --watch` as it is started: it goes on until somebody interrupts it."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import environment, program, start


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [*program(), "move-due", *arguments, "--watch"]
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
    start(folder, "send", "orders", "--count", 2, "--delay", 0)
    with watching(folder, "orders", "returns") as process:
        assert line(process) == "moved 2 messages of orders\n"
        start(folder, "send", "returns", "--body", "soon", "--delay", "0.3")
        assert line(process) == "moved 1 message of returns\n"
        assert interrupted(process) == (0, "")
    assert json.loads(start(folder, "peek", "returns", "--json").stdout)["queues"][0]["count"] == 1


def test_every_move_is_a_json_document_of_its_own(folder: Path) -> None:
    with watching(folder, "orders", "--json") as process:
        for count in (1, 3):
            start(folder, "send", "orders", "--count", count, "--delay", 0)
            assert json.loads(line(process)) == {"queue": "orders", "moved": count}
        assert interrupted(process) == (0, "")


def test_a_queue_that_does_not_exist_is_told_at_once(folder: Path) -> None:
    refused = start(folder, "move-due", "missing", "--watch")
    assert refused.returncode == 3
    assert "missing.Delayed does not exist" in refused.stderr


def test_a_reader_that_goes_away_ends_the_watch(folder: Path) -> None:
    with watching(folder, "orders") as process:
        start(folder, "send", "orders", "--count", 1, "--delay", 0)
        assert line(process) == "moved 1 message of orders\n"
        assert process.stdout is not None
        process.stdout.close()
        start(folder, "send", "orders", "--count", 1, "--delay", 0)
        assert process.wait(timeout=60) == 141
