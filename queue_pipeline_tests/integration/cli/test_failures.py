"""What databases refuse: one clear line, the right exit code, nothing half done, and never a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from queue_pipeline.errors import DatabaseUnavailableError
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.command_line import CommandLine, run
from queue_pipeline_tests.support.databases.backends import PYODBC, Backend
from tools.postgres_cluster import PostgresCluster

WRONG = "wr0ng/p@ss:word"


def test_a_missing_queue_is_named_with_the_command_that_creates_it(backend: Backend) -> None:
    cli = CommandLine(backend)
    looking = ["peek", "show", "receive", "status", "purge", "move-due", "audit-indexes"]
    for verb, *options in [[verb] for verb in looking] + [["send", "--body", "{}", "--count", "2"]]:
        failed = cli(verb, "missing", *options)
        assert (failed.code, failed.out) == (3, ""), verb
        assert "missing" in failed.error
        assert "queue-pipeline install" in failed.error


@pytest.mark.parametrize("debug", [[], ["--debug"]], ids=["plain", "debug"])
def test_a_wrong_password_is_refused_without_being_shown(postgres: PostgresCluster, debug: list[str]) -> None:
    failed = run("--database", postgres.url(password=WRONG), *debug, "peek", "orders")
    assert failed.code == 5
    assert "refused the login" in failed.err
    for part in (WRONG, "wr0ng", postgres.url(password=WRONG), postgres.password):
        assert part not in failed.err
    assert ("Traceback" in failed.err) is bool(debug)


def test_a_driver_that_is_not_installed_is_named(postgres: PostgresCluster) -> None:
    failed = run("--database", f"{postgres.url(driver=PYODBC)}?driver=Nonesuch", "peek", "orders")
    assert failed.code == 4
    assert "'Nonesuch' is not installed" in failed.error
    assert postgres.password not in failed.err


def test_an_unavailable_database_is_reported_once() -> None:
    failed = run("--database", "postgresql://u:s3cret@127.0.0.1:1/db", "peek", "orders")
    assert failed.code == 4
    assert "cannot be reached" in failed.error
    assert "s3cret" not in failed.err


def test_a_name_that_is_too_long_creates_nothing(postgresql: Backend) -> None:
    cli = CommandLine(postgresql)
    failed = cli("install", "orders", "x" * 48)
    assert failed.code == 2
    assert "choose a shorter name" in failed.error
    assert cli("status", "--json").json["queues"] == []


@pytest.mark.parametrize("command", ["install", "peek"])
def test_a_dot_that_was_read_as_the_end_of_a_schema_gets_a_hint(postgresql: Backend, command: str) -> None:
    cli = CommandLine(postgresql)
    failed = cli(command, "Sales.Orders")
    assert failed.code == 3
    assert """write '"Sales.Orders"'""" in failed.error
    assert cli("install", '"Sales.Orders"').code == 0
    assert cli("peek", '"Sales.Orders"', "--json").json["queues"][0]["count"] == 0


def test_a_missing_schema_is_named_and_install_is_not_advised_again(postgresql: Backend) -> None:
    failed = run("--database", postgresql.url, "--schema", "nowhere", "install", "orders")
    assert failed.code == 3
    assert 'queue "nowhere"."orders": schema "nowhere" does not exist; create the schema first' in failed.error
    assert "queue-pipeline install" not in failed.error


@pytest.mark.parametrize(
    ("option", "words"),
    [(["--heap"], "leave --heap out"), (["--grant-to", "somebody"], "leave --grant-to out")],
)
def test_an_option_of_another_database_is_refused(sqlite: Backend, option: list[str], words: str) -> None:
    cli = CommandLine(sqlite)
    failed = cli("install", "orders", *option)
    assert failed.code == 2
    assert words in failed.error
    assert cli("status", "--json").json["queues"] == []


def test_a_failure_in_the_middle_of_a_file_leaves_nothing_behind(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = CommandLine(backend)
    cli("install", "orders")
    (tmp_path / "many.jsonl").write_text('{"body": "x"}\n' * 30)
    monkeypatch.setattr("queue_pipeline.cli.bulk.CHUNK_MESSAGES", 10)
    send, calls = QueueTransport.send, []

    def fail_on_the_third(self: QueueTransport, *arguments: object) -> int:
        calls.append(arguments)
        if len(calls) == 3:
            raise DatabaseUnavailableError("the server is gone")
        return send(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(QueueTransport, "send", fail_on_the_third)
    assert cli("send", "orders", "--jsonl", tmp_path / "many.jsonl").code == 4
    assert len(calls) == 3
    assert cli("peek", "orders", "--json").json["queues"][0]["count"] == 0


def test_a_defect_is_called_one_and_shows_its_traceback_on_demand(
    sqlite: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise KeyError("PWD=s3cret;SERVER=x")

    monkeypatch.setattr(QueueTransport, "status", defect)
    cli = CommandLine(sqlite)
    reported = cli("status")
    assert reported.code == 70
    assert "this is a bug" in reported.error
    shown = cli("status", "--debug")
    assert shown.code == 70
    assert "Traceback" in shown.err and "KeyError" in shown.err
    assert "s3cret" not in reported.err + shown.err


def test_an_interrupt_ends_with_130(sqlite: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(QueueTransport, "status", interrupt)
    ended = CommandLine(sqlite)("status")
    assert ended.code == 130
    assert "Traceback" not in ended.err
