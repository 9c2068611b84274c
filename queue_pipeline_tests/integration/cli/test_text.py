"""What people see: the same commands without --json."""

from __future__ import annotations

from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import CommandLine, run
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def cli(sqlite: Backend) -> CommandLine:
    cli = CommandLine(sqlite)
    assert cli("install", "orders").code == 0
    return cli


def test_figures_stand_in_a_table_that_no_pipe_cuts(cli: CommandLine) -> None:
    name = "a.queue.with.quite.a.long.name." + "x" * 150
    cli("install", name)
    cli("send", name, "--body", "{}", "--count", 1234)
    heading, _, *rows = cli("status").out.splitlines()
    assert heading.startswith("queue ") and heading.endswith("  claimed  claims  abandoned")
    assert [row.split()[0] for row in rows] == [name, "error", "orders"]
    assert rows[0].split()[1] == "1,234"
    assert rows[1].split()[4] == "-", "the error queue has no delayed messages to count"


def test_a_count_that_reached_its_limit_says_so(cli: CommandLine) -> None:
    cli("send", "orders", "--body", "{}", "--count", 3)
    assert cli("peek", "orders", "error").out.splitlines()[2:] == ["orders        3", "error         0"]
    assert cli("peek", "orders", "--max-records-to-peek", 3).out.splitlines()[2].split(maxsplit=1) == [
        "orders",
        "3 or more",
    ]


def test_show_prints_text_as_text_and_leaves_it_there(cli: CommandLine) -> None:
    cli(
        "send",
        "orders",
        "--body",
        "Zoë\nsecond line",
        "--type",
        "Sales.OrderPlaced",
        "--header",
        "tenant=north",
    )
    shown = cli("show", "orders").out
    assert "Sales.OrderPlaced" in shown
    assert "Zoë\nsecond line\n" in shown
    assert "tenant" not in shown
    assert "tenant: north\n" in cli("show", "orders", "--headers").out
    assert cli("peek", "orders", "--json").json["queues"][0]["count"] == 1


def test_show_prints_other_bodies_in_base64_with_their_size(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "body").write_bytes(b"\x00\x01\xff" * 1000)
    cli("send", "orders", "--body-file", tmp_path / "body")
    shown = cli("show", "orders").out
    assert "2.9 KiB" in shown
    assert "(binary, base64) AAH/AAH/" in shown


def test_no_message_can_send_a_command_to_the_terminal(cli: CommandLine) -> None:
    cli("send", "orders", "--body", "\x1b[2J", "--header", "sneaky=\x1b[2J\x07", "--type", "[red]x[/red]")
    for command in ("show", "receive"):
        printed = cli(command, "orders", *(["--headers"] if command == "show" else [])).out
        assert "\x1b" not in printed and "\x07" not in printed
        assert "sneaky: \\x1b[2J\\x07\n" in printed
        assert "[red]x[/red]" in printed


def test_receive_prints_headers_and_the_complete_body(cli: CommandLine) -> None:
    cli("send", "orders", "--body", "x" * 100_000, "--header", "tenant=north")
    printed = cli("receive", "orders").out
    assert "tenant: north\n" in printed
    assert "x" * 100_000 + "\n" in printed
    assert printed.endswith("received 1 message from orders\n")
    assert cli("receive", "orders").out == "received 0 messages from orders\n"


def test_held_and_expired_claims_are_distinguished(cli: CommandLine, sqlite: Backend) -> None:
    assert cli("claims", "list").out == "no claims\n"
    cli("send", "orders", "--body", "{}", "--count", 5)
    transport = sqlite.transport()
    held = transport.claims.claim(transport.resolve("orders"), "run-1", 2)
    late = transport.claims.claim(transport.resolve("orders"), "run-2", 2, lease_seconds=0.001)
    assert held is not None and late is not None
    eventually(lambda: any(status.lease_seconds < 0 for status in transport.claims.list()))
    rows = {row.split()[0]: row for row in cli("claims", "list").out.splitlines()[2:]}
    transport.claims.fail(held, "ValueError: " + "no " * 100)
    failed = cli("claims", "list").out
    assert "ValueError: no no no" in failed and "no " * 60 not in failed
    assert "held" in rows[f"{held.claim_id}@1"] and "run-1" in rows[f"{held.claim_id}@1"]
    assert "lease ran out" in rows[f"{late.claim_id}@1"]
    assert held.claim_id in cli("claims", "release", f"{held.claim_id}@1").out


def test_an_empty_database_says_how_to_begin(tmp_path: Path) -> None:
    empty = run("--database", f"sqlite:///{tmp_path}/new.db", "status")
    assert (empty.code, empty.err) == (0, "")
    assert "queue-pipeline install QUEUE" in empty.out


def test_json_is_understood_before_and_after_the_command(cli: CommandLine) -> None:
    assert cli("--json", "peek", "orders").json == cli("peek", "orders", "--json").json
    assert cli("claims", "--json", "list").json == cli("claims", "list", "--json").json
