"""The program as it is started: nothing configured, real pipes, real exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import environment, program, start

pytestmark = pytest.mark.heavy


def waiting(folder: Path) -> int:
    peeked = start(folder, "peek", "orders", "--max-records-to-peek", 100_000, "--json")
    return int(json.loads(peeked.stdout)["queues"][0]["count"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert start(tmp_path, "install", "orders").returncode == 0
    return tmp_path


def test_install_send_peek_and_receive_work_with_nothing_configured(tmp_path: Path) -> None:
    name = program()[0]
    line = (
        f"{name} install orders && {name} send orders --body '{{}}' --count 1000 && {name} peek orders --json "
        f"&& {name} receive orders --max 10 --json"
    )
    ran = subprocess.run(["sh", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    *_, peeked, received = ran.stdout.split("\n{")
    assert json.loads("{" + peeked)["queues"][0]["count"] == 1000
    assert json.loads("{" + received)["received"] == 10
    assert (tmp_path / ".queue_pipeline" / "queues.db").is_file()
    assert waiting(tmp_path) == 990


def test_the_environment_names_the_database(tmp_path: Path) -> None:
    ran = start(tmp_path, "install", "orders", env=environment(QUEUE_PIPELINE_DATABASE="sqlite:///elsewhere.db"))
    assert ran.returncode == 0
    assert (tmp_path / "elsewhere.db").is_file()
    assert not (tmp_path / ".queue_pipeline").exists()


def test_the_module_can_be_run_as_the_program(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "queue_pipeline.cli", "--version"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ran.returncode == 0
    assert ran.stdout.startswith("queue-pipeline ")


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_goes_away_leaves_the_messages_in_the_queue(folder: Path, options: list[str]) -> None:
    start(folder, "send", "orders", "--body", "{}", "--count", 2000)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = start(folder, "receive", "orders", "--max", 2000, *options, stdout=writing)
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")
    assert waiting(folder) == 2000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("count", [1, 500])
def test_an_output_without_room_leaves_the_messages_in_the_queue(folder: Path, count: int) -> None:
    start(folder, "send", "orders", "--body", "{}", "--count", count)
    with open("/dev/full", "w") as full:
        ran = start(folder, "receive", "orders", "--max", count, "--json", stdout=full)
    assert ran.returncode == 74
    assert ran.stderr == "queue-pipeline: error: No space left on device\n"
    assert waiting(folder) == count


def test_a_closed_output_leaves_the_messages_in_the_queue(folder: Path) -> None:
    start(folder, "send", "orders", "--body", "{}", "--count", 1)
    line = f"{program()[0]} receive orders >&-"
    ran = subprocess.run(["sh", "-c", line], cwd=folder, env=environment(), capture_output=True, text=True)
    assert ran.returncode == 1
    assert "standard output is closed" in ran.stderr
    assert waiting(folder) == 1


def test_what_was_received_can_be_sent_again(folder: Path) -> None:
    start(folder, "send", "orders", "--body", "Zoë", "--header", "tenant=north")
    received = json.loads(start(folder, "receive", "orders", "--json").stdout)["messages"]
    lines = "".join(json.dumps({key: message[key] for key in ("body", "headers")}) + "\n" for message in received)
    sent = start(folder, "send", "orders", "--jsonl", "-", input=lines)
    assert (sent.returncode, sent.stderr) == (0, "")
    (again,) = json.loads(start(folder, "receive", "orders", "--json").stdout)["messages"]
    assert (again["body"], again["headers"]) == ("Zoë", received[0]["headers"])


def test_a_pipe_is_read_completely_before_anything_is_sent(folder: Path) -> None:
    lines = '{"body": "x"}\n' * 20_000 + "{\n"
    refused = start(folder, "send", "orders", "--jsonl", "-", input=lines)
    assert refused.returncode == 2
    assert "standard input, line 20001: Invalid JSON" in refused.stderr
    assert waiting(folder) == 0


def test_only_the_unread_rest_of_a_redirected_file_is_sent(folder: Path) -> None:
    (folder / "lines.jsonl").write_text("a heading\n" + '{"body": "x"}\n' * 3)
    line = f"{{ read -r heading; {program()[0]} send orders --jsonl - --json; }} < lines.jsonl"
    ran = subprocess.run(["sh", "-c", line], cwd=folder, env=environment(), capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["sent"] == 3


def test_a_terminal_that_cannot_show_a_character_gets_its_code(folder: Path) -> None:
    start(folder, "send", "orders", "--body", "Zoë")
    ascii_only = environment(PYTHONIOENCODING="ascii")
    shown = start(folder, "show", "orders", env=ascii_only)
    assert shown.returncode == 0
    assert "Zo\\xeb" in shown.stdout
    received = start(folder, "receive", "orders", "--json", env=ascii_only)
    assert json.loads(received.stdout)["messages"][0]["body"] == "Zoë"


def test_the_exit_code_shows_the_result(folder: Path) -> None:
    codes = {
        ("status",): 0,
        ("nonsense",): 2,
        ("peek", "missing"): 3,
        ("--database", "postgresql://u:p@127.0.0.1:1/db", "status"): 4,
    }
    assert {words: start(folder, *words).returncode for words in codes} == codes
