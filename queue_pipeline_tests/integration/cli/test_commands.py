"""Every command on every database."""

from __future__ import annotations

import json
import uuid

import pytest

from queue_pipeline.transport import QueueTransport, TransactionMode
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.databases.backends import Backend

pytestmark = pytest.mark.both_drivers

JSONL = b"""\
{"body": {"number": 1, "name": "Zo\xc3\xab"}, "type": "Sales.OrderPlaced", "headers": {"tenant": "north"}}
{"body": "as it is", "content_type": "text/plain", "message_id": "my-own-id"}

{"body_base64": "AAEC/w=="}
"""


@pytest.fixture
def cli(backend: Backend) -> CommandLine:
    """The command line with the queue `orders` installed."""
    cli = CommandLine(backend)
    assert cli("install", "orders").code == 0
    return cli


def test_install_reports_what_it_created_and_what_existed(backend: Backend) -> None:
    cli = CommandLine(backend)
    first = cli("install", "orders", "--json").json["tables"]
    assert len(first) == 10
    assert all(table["created"] for table in first)
    assert cli("audit-indexes").out == "no findings\n"
    again = cli("install", "orders", "orders")
    assert again.code == 0
    assert again.out.count("already there") == len(first)
    assert " created" not in again.out


def test_install_plain_makes_a_queue_without_delayed_and_claimed_tables(backend: Backend) -> None:
    cli = CommandLine(backend)
    names = [table["table"] for table in cli("install", "audit", "--plain", "--json").json["tables"]]
    assert sum("audit" in name for name in names) == 1
    assert not any("Delayed" in name or "Claimed" in name for name in names)
    (status,) = cli("status", "audit", "--json").json["queues"]
    assert status["delayed"] is None


def test_messages_are_counted_received_in_order_and_gone(cli: CommandLine) -> None:
    lines = "".join(f'{{"body": {{"number": {number}}}, "type": "Shop.OrderPlaced"}}\n' for number in range(1, 31))
    assert cli("send", "orders", "--jsonl", "-", "--json", stdin=lines.encode()).json["sent"] == 30
    (found,) = cli("peek", "orders", "--json").json["queues"]
    assert (found["count"], found["capped"]) == (30, False)
    (found,) = cli("peek", "orders", "--max-records-to-peek", 7, "--json").json["queues"]
    assert (found["count"], found["capped"]) == (7, True)
    received = cli("receive", "orders", "--max", 20, "--json").json
    assert received["received"] == 20
    numbers = [json.loads(message["body"])["number"] for message in received["messages"]]
    assert numbers == list(range(1, 21))
    assert received["messages"][0]["headers"]["NServiceBus.EnclosedMessageTypes"] == "Shop.OrderPlaced"
    assert cli("peek", "orders", "--json").json["queues"][0]["count"] == 10


def test_a_message_carries_what_was_typed(cli: CommandLine) -> None:
    options = ("--type", "Sales.OrderPlaced", "--header", "tenant=north=1", "--header", "empty=")
    more = ("--ttl", "3600", "--reply-to", "answers", "--content-type", "text/plain")
    sent = cli("send", "orders", "--body", "Zoë ☃ 🎈", *options, *more, "--json").json
    shown = cli("show", "orders", "--json").json["messages"]
    (message,) = cli("receive", "orders", "--json").json["messages"]
    assert message["body"] == "Zoë ☃ 🎈"
    assert message["message_id"] == sent["message_id"] == message["headers"]["NServiceBus.MessageId"]
    assert (
        message["headers"]
        | {
            "tenant": "north=1",
            "empty": "",
            "NServiceBus.EnclosedMessageTypes": "Sales.OrderPlaced",
            "NServiceBus.TimeToBeReceived": "01:00:00",
            "NServiceBus.ReplyToAddress": "answers",
            "NServiceBus.ContentType": "text/plain",
        }
        == message["headers"]
    )
    (looked_at,) = shown
    assert not looked_at.pop("expired")
    assert looked_at == message


def test_all_lines_of_a_file_are_sent(cli: CommandLine) -> None:
    assert cli("send", "orders", "--jsonl", "-", "--json", stdin=JSONL).json["sent"] == 3
    first, second, third = cli("receive", "orders", "--max", 5, "--json").json["messages"]
    assert first["body"] == '{"number":1,"name":"Zoë"}'
    assert first["headers"]["tenant"] == "north"
    assert first["headers"]["NServiceBus.EnclosedMessageTypes"] == "Sales.OrderPlaced"
    assert (second["body"], second["message_id"]) == ("as it is", "my-own-id")
    assert second["headers"]["NServiceBus.CorrelationId"] == "my-own-id"
    assert third["body_base64"] == "AAEC/w=="
    assert "body" not in third


def test_nothing_of_a_file_with_a_bad_line_is_sent_unless_bad_lines_are_skipped(cli: CommandLine) -> None:
    lines = JSONL + b'{"body": "x", "headers": {"n": 1}}\n'
    refused = cli("send", "orders", "--jsonl", "-", stdin=lines)
    assert refused.code == 2
    assert "standard input, line 5: headers.n" in refused.error
    assert "nothing was sent" in refused.error
    assert cli("peek", "orders", "--json").json["queues"][0]["count"] == 0
    skipped = cli("send", "orders", "--jsonl", "-", "--skip-bad", "--json", stdin=lines)
    assert skipped.code == 0
    assert json.loads(skipped.out) | {"sent": 3, "skipped": 1} == json.loads(skipped.out)
    assert skipped.err.startswith("queue-pipeline: warning: standard input, line 5 skipped: headers.n")
    assert cli("peek", "orders", "--json").json["queues"][0]["count"] == 3


def test_lines_with_the_same_message_id_are_all_sent(cli: CommandLine) -> None:
    lines = b'{"body": "a", "message_id": "same"}\n' * 3
    assert cli("send", "orders", "--jsonl", "-", "--json", stdin=lines).json["sent"] == 3
    assert cli("peek", "orders", "--json").json["queues"][0]["count"] == 3


@pytest.mark.parametrize("mode", [mode.value for mode in TransactionMode])
def test_messages_are_received_in_every_mode(cli: CommandLine, mode: str) -> None:
    cli("send", "orders", "--body", "{}", "--count", 3)
    received = cli("receive", "orders", "--max", 2, "--mode", mode, "--json").json
    assert (received["mode"], received["received"]) == (mode, 2)
    (status,) = cli("status", "orders", "--json").json["queues"]
    assert (status["pending"], status["claimed"]) == (1, 0)


def test_due_messages_are_moved_and_expired_ones_purged(cli: CommandLine) -> None:
    cli("send", "orders", "--body", "now", "--delay", 0)
    cli("send", "orders", "--body", "later", "--delay", 3600)
    cli("send", "orders", "--body", "short-lived", "--ttl", "0.001")
    (status,) = cli("status", "orders", "--json").json["queues"]
    assert (status["pending"], status["delayed"], status["expired"]) == (1, 2, 1)
    (purged,) = cli("purge", "orders", "--json").json["queues"]
    assert purged["deleted"] == 1
    (moved,) = cli("move-due", "orders", "--batch", 1, "--json").json["queues"]
    assert moved["moved"] == 1
    (message,) = cli("receive", "orders", "--max", 9, "--json").json["messages"]
    assert message["body"] == "now"
    (status,) = cli("status", "orders", "--json").json["queues"]
    assert (status["pending"], status["delayed"]) == (0, 1)
    assert 3500 < status["next_due_seconds"] <= 3600


def test_claims_are_listed_and_released_as_they_were_listed(cli: CommandLine, backend: Backend) -> None:
    transport = backend.transport()
    cli("send", "orders", "--body", "{}", "--count", 5)
    orders = transport.resolve("orders")
    claim = transport.claims.claim(orders, "run-1", 4)
    assert claim is not None
    (listed,) = cli("claims", "list", "orders", "--json").json["claims"]
    assert (listed["claim_id"], listed["owner"], listed["messages"], listed["state"]) == (
        claim.claim_id,
        "run-1",
        4,
        "held",
    )
    unknown = cli("claims", "release", listed["claim"], f"{uuid.uuid4()}@1")
    assert unknown.code == 3
    assert "no process holds claim" in unknown.error
    assert cli("claims", "list", "--json").json["claims"][0]["state"] == "held", "one unknown id releases none"
    released = cli("claims", "release", listed["claim"].upper(), "--json").json["released"]
    assert [entry["claim_id"] for entry in released] == [claim.claim_id]
    assert cli("claims", "list", "--json").json["claims"][0]["state"] == "released"
    assert cli("claims", "release", listed["claim"]).code == 3
    taken_over = transport.claims.claim(orders, "run-2", 10)
    assert taken_over is not None and taken_over.claim_id == claim.claim_id
    left_alone = cli("claims", "release", listed["claim"])
    assert (left_alone.code, "taken over by another" in left_alone.error) == (3, True)
    assert transport.claims.held_by("run-2") == [taken_over]


def test_a_missing_index_is_a_finding_with_its_cost_and_its_fix(cli: CommandLine, backend: Backend) -> None:
    transport = backend.transport()
    _drop_expiry_index(backend, transport)
    found = cli("audit-indexes", "orders", "--json")
    assert (found.code, found.err) == (1, "")
    (finding,) = json.loads(found.out)["findings"]
    assert all(finding[field] for field in ("queue", "code", "severity", "message", "cost", "fix", "section"))
    reported = cli("audit-indexes")
    assert reported.code == 1
    assert finding["message"] in reported.out and finding["cost"] in reported.out
    backend.sql(transport, finding["fix"])
    assert cli("audit-indexes").code == 0


def test_a_message_with_unreadable_headers_is_shown_and_moved_to_the_error_queue(
    cli: CommandLine, backend: Backend
) -> None:
    transport = backend.transport()
    cli("send", "orders", "--body", "{}", "--count", 2)
    names = {"postgresql": ("headers", "seq")}.get(backend.name, ("Headers", "RowVersion"))
    table = transport.resolve("orders").qualified
    backend.sql(transport, f"UPDATE {table} SET {names[0]} = 'no json' WHERE {names[1]} = 1")
    bad, good = cli("show", "orders", "--json").json["messages"]
    assert (bad["headers"], bad["raw_headers"]) == (None, "no json")
    assert good["headers"]
    received = cli("receive", "orders", "--max", 5, "--json")
    assert received.code == 0
    assert json.loads(received.out)["poisoned"] == 1
    assert received.err.startswith("queue-pipeline: warning: queue ")
    assert "moved to the error queue" in received.err
    (dead,) = cli("show", "error", "--json").json["messages"]
    assert dead["raw_headers"] == "no json"


def _drop_expiry_index(backend: Backend, transport: QueueTransport) -> None:
    table = transport.resolve("orders")
    if backend.name == "sqlserver":
        # Babelfish takes the database's name in this statement for another database.
        backend.sql(transport, f"DROP INDEX [Index_Expires] ON [{table.schema}].[{table.table}]")
    else:
        schema = f'"{table.schema}".' if table.schema else ""
        backend.sql(transport, f'DROP INDEX {schema}"orders_Expires"')
