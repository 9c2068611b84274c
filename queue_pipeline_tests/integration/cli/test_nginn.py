"""`queue-pipeline` over queues of NGinn.MessageBus, on every database."""

from __future__ import annotations

import json

import pytest

from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.databases.backends import Backend

QUEUE, OTHER = "sql://db/Orders", "sql://db/Other"
SETTINGS = {"aliases": ["db"], "endpoint": OTHER, "types": {"Shop.Order, Shop": "Shop.Order"}}


@pytest.fixture
def cli(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("QUEUE_PIPELINE_NGINN", json.dumps(SETTINGS))
    cli = CommandLine(backend)
    assert cli("install", QUEUE, OTHER).code == 0
    return cli


def send(cli: CommandLine, number: int = 1) -> None:
    assert cli("send", QUEUE, "--type", "Shop.Order", "--body", json.dumps({"n": number})).code == 0


def test_install_makes_the_table_of_nginn_and_the_one_for_claims(cli: CommandLine) -> None:
    tables = [table["table"] for table in cli("install", QUEUE, "--json").json["tables"]]
    assert QUEUE in tables
    assert any("Orders.Claimed" in table for table in tables)
    assert any("NGMB_Subscriptions" in table for table in tables)
    assert not any("Orders.Delayed" in table for table in tables)
    assert cli("audit-indexes", QUEUE).out == "no findings\n"


@pytest.mark.parametrize("dialect", ["sqlserver", "postgresql", "sqlite"])
def test_the_script_command_prints_the_tables_of_nginn(cli: CommandLine, dialect: str) -> None:
    text = cli("script", QUEUE, "--dialect", dialect).out
    assert all(name in text for name in ("from_endpoint", "msg_headers", "Orders.Claimed", "NGMB_Subscriptions"))


def test_messages_are_sent_shown_counted_and_received(cli: CommandLine) -> None:
    send(cli)
    assert cli("peek", QUEUE, "--json").json["queues"] == [{"queue": QUEUE, "count": 1, "capped": False}]
    (message,) = cli("show", QUEUE, "--json").json["messages"]
    assert json.loads(message["body"]) == {"$type": "Shop.Order, Shop", "n": 1}
    assert cli("receive", QUEUE, "--json").json["received"] == 1
    figures = cli("nginn", "figures", QUEUE, "--minutes", "60", "--json").json
    assert (figures["ready"], figures["processed"], figures["minutes"]) == (0, 1, 60)
    assert figures["latency_milliseconds"] >= 0
    (status,) = cli("status", QUEUE, "--json").json["queues"]
    assert (status["pending"], status["processed"], status["failed"]) == (0, 1, 0)
    assert "latency" in cli("status", QUEUE).out
    assert "processed (X)" in cli("nginn", "figures", QUEUE).out


def test_failed_messages_are_listed_retried_and_discarded(cli: CommandLine, backend: Backend) -> None:
    transport = backend.transport()
    table = transport.resolve(QUEUE)
    for number in range(3):
        send(cli, number)
    failing = f"UPDATE {table.qualified} SET subqueue = 'F', error_info = 'first line' WHERE id < 3"
    backend.sql(transport, failing)
    failed = cli("nginn", "failed", QUEUE, "--json").json["failed"]
    assert [(one["id"], one["label"], one["error"]) for one in failed] == [
        (1, "Shop.Order", "first line"),
        (2, "Shop.Order", "first line"),
    ]
    assert "first line" in cli("nginn", "failed", QUEUE, "--after", "1").out
    assert cli("nginn", "retry", QUEUE, "1").out == f"retried 1 message of {QUEUE}\n"
    assert cli("nginn", "discard", QUEUE, "2", "--json").json == {"queue": QUEUE, "discarded": 1}
    assert cli("nginn", "failed", QUEUE).out == f"nothing in {QUEUE} has failed\n"
    assert cli("peek", QUEUE, "--json").json["queues"][0]["count"] == 2
    assert cli("nginn", "retry", QUEUE, "--all", "--json").json == {"queue": QUEUE, "retried": 0}


@pytest.mark.parametrize(
    "error",
    [
        "System.Exception: no stock\r\n   at Shop.Handler.Handle() in Handler.cs:line 7\r\n",
        'Traceback (most recent call last):\n  File "shop.py", line 7, in handle\nSystem.Exception: no stock\n',
    ],
)
def test_the_list_of_failed_messages_shows_what_an_error_says_and_no_frame(
    cli: CommandLine, backend: Backend, error: str
) -> None:
    send(cli)
    transport = backend.transport()
    backend.sql(transport, f"UPDATE {transport.resolve(QUEUE).qualified} SET subqueue = 'F', error_info = '{error}'")
    listed = cli("nginn", "failed", QUEUE).out
    assert "System.Exception: no stock" in listed
    assert "line 7" not in listed


def test_subscriptions_are_asked_for_listed_and_ended(cli: CommandLine) -> None:
    assert cli("nginn", "subscriptions").out == "there are no subscribers\n"
    asked = cli("nginn", "subscribe", QUEUE, OTHER, "Shop.Order")
    assert asked.out == f"asked {QUEUE} to send Shop.Order to {OTHER}\n"
    assert cli("receive", QUEUE, "--json").json["received"] == 0
    (found,) = cli("nginn", "subscriptions", QUEUE, "--json").json["subscriptions"]
    assert (found["publisher"], found["subscriber"], found["message_type"]) == (QUEUE, OTHER, "Shop.Order")
    assert 95 * 3600 < found["expires_seconds"] < 97 * 3600
    assert "4.0 d" in cli("nginn", "subscriptions").out
    assert cli("nginn", "unsubscribe", QUEUE, OTHER, "Shop.Order", "--json").json["changed"]
    again = cli("nginn", "unsubscribe", QUEUE, OTHER, "Shop.Order")
    assert again.out == f"{OTHER} has no subscription to Shop.Order at {QUEUE}\n"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["peek", "sql://elsewhere/Orders"], "the alias 'elsewhere' is not known to mean this database (known: db)"),
        (["peek", "sql://db/Orders; DROP"], "choose another name"),
        (["peek", "sql://db"], "write sql://alias/Queue"),
        (["send", QUEUE, "--body", "{}"], "NGinn needs the type of a message"),
        (["send", QUEUE, "--type", "A.B, C", "--body", "not json"], "NGinn bodies are JSON"),
        (["nginn", "figures", "orders"], "is no NGinn queue"),
        (["--error-queue", QUEUE, "errors", "list"], f"queue-pipeline nginn failed {QUEUE}"),
        (["--nginn", "{", "peek", QUEUE], "QUEUE_PIPELINE_NGINN is no JSON"),
        (["--nginn", '{"aliass": []}', "peek", QUEUE], "aliass: Extra inputs are not permitted"),
        (["--nginn", "missing.json", "peek", QUEUE], "missing.json cannot be read"),
        (["nginn", "subscribe", "orders", OTHER, "A.B"], "is no endpoint"),
        (["subscribe", "Shop", "Shop.Sold", "--queue", QUEUE], "queue-pipeline nginn subscribe"),
        (["request", QUEUE, "--body", "{}", "--create"], "cannot answer to"),
    ],
)
def test_what_cannot_be_done_is_reported_in_one_line(cli: CommandLine, arguments: list[str], reported: str) -> None:
    ran = cli(*arguments)
    assert reported in ran.error
    assert ran.code == 2
