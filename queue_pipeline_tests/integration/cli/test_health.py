"""`queue-pipeline health`: what it finds in the database, and that it always answers."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import CommandLine, environment, problems, start
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def queues(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["error"])
    return transport


@pytest.fixture
def command(backend, queues):
    return CommandLine(backend)


def test_queues_in_which_nothing_waits_are_healthy(command):
    ran = command("health", "--database-only")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "healthy; 1 queue checked"


def test_a_message_that_waits_for_too_long_is_a_problem(command, queues):
    assert command("send", "orders", "--body", "{}").code == 0
    assert problems(command("health", "--json", "orders")) == {}
    found = eventually(lambda: problems(command("health", "--json", "orders", "--oldest-seconds", 0.1)))
    assert "the oldest message of orders has waited" in found["oldest_message"]


def test_messages_in_the_error_queue_are_no_problem_of_age(command, queues):
    assert command("send", "error", "--body", "{}").code == 0
    assert problems(command("health", "--json", "--oldest-seconds", 0.1)) == {}


def test_attempts_that_fail_are_a_note_first_and_then_a_problem(command, queues):
    queues.failures.add(queues.resolve("orders").canonical, "the stock is away")
    (note,) = [one for one in command("health", "--json").json["notes"] if one["check"] == "failing"]
    assert "the stock is away" in note["description"]
    assert "failing" in eventually(lambda: problems(command("health", "--json", "--failing-seconds", 0.1)))


def test_an_overdue_message_is_a_problem(command, queues):
    assert command("send", "orders", "--body", "{}", "--delay", 0.01).code == 0
    found = eventually(lambda: problems(command("health", "--json", "--overdue-seconds", 0.1)))
    assert "overdue" in found


def test_a_batch_that_no_process_holds_is_a_problem(command, queues):
    assert command("send", "orders", "--body", "{}").code == 0
    claim = queues.claim("orders", "tester", 10, 1_000_000, 60)
    assert problems(command("health", "--json", "--abandoned-seconds", 0.1)) == {}
    queues.claims.release(claim)
    assert "abandoned" in eventually(lambda: problems(command("health", "--json", "--abandoned-seconds", 0.1)))


def test_an_unavailable_database_is_a_problem_and_no_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    ran = start(tmp_path, "--database", f"postgresql://u:secret@127.0.0.1:{port}/shop", "health", "--json")
    assert "database" in {one["check"] for one in json.loads(ran.stdout)["problems"]}
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "secret" not in ran.stdout


def test_a_database_that_does_not_answer_does_not_make_it_hang(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"postgresql://u@127.0.0.1:{server.getsockname()[1]}/shop"
        ran = start(tmp_path, "--database", url, "health", "--timeout-seconds", "0.5", env=environment())
    assert ran.returncode == 1, ran.stderr
    assert "the database did not answer in 0.5 s" in ran.stdout


def test_a_setting_that_cannot_be_used_is_an_error_of_usage(tmp_path: Path) -> None:
    assert start(tmp_path, "--database", "nowhere://", "health").returncode == 2
    assert start(tmp_path, "health", "--tick-seconds", "-1").returncode == 2
