"""`queue-pipeline errors` on every database."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from typing import Any

import pytest

from queue_pipeline.cli.commands import errors
from queue_pipeline.transport import OutgoingMessage, QueueTransport
from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.databases.backends import Backend

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TRACE = "Shop.NoStockError: nothing left\n   at Shop.Handler.Handle() in /src/handler.py:line 42"


@pytest.fixture
def cli(backend: Backend) -> CommandLine:
    cli = CommandLine(backend)
    assert cli("install", "orders").code == 0
    return cli


@pytest.fixture
def failed(cli: CommandLine, backend: Backend) -> QueueTransport:
    """Three messages that failed in `orders`, one of them for a reason of its own."""
    transport = backend.transport()
    for name, kind in (("a", "Shop.NoStockError"), ("b", "Shop.NoStockError"), ("c", "Shop.Timeout")):
        transport.send("error", failure(transport, name, kind=kind))
    return transport


def failure(
    transport: QueueTransport,
    message_id: str,
    queue: str = "orders",
    kind: str = "Shop.NoStockError",
    body: bytes = b"{}",
) -> OutgoingMessage:
    headers = {
        **wire.standard_headers(message_type="Shop.OrderPlaced, Shop, Version=1.0.0.0"),
        wire.MESSAGE_ID: message_id,
        "tenant": "north",
    }
    address = transport.resolve(queue).canonical
    return error_message(headers, body, Failure(kind, "nothing left", TRACE), address, "Shop", NOON)


def ids(cli: CommandLine, queue: str) -> list[str]:
    return [message["message_id"] for message in cli("show", queue, "--json").json["messages"]]


def shown_command(line: str) -> list[str]:
    """The words of the command at the end of a line; a password is not among them."""
    words = shlex.split(line.partition("queue-pipeline ")[2])
    assert words[0] == "--database"
    assert words[1].startswith(("sqlite:", "$QUEUE_PIPELINE_DATABASE"))
    return words


def test_failed_messages_are_listed_with_counts_and_the_command_that_retries_them(
    cli: CommandLine, failed: QueueTransport
) -> None:
    listed = cli("errors", "list")
    assert (listed.code, listed.err) == (0, "")
    heading, _, first, *_ = listed.out.splitlines()
    assert heading.split() == ["message", "type", "failed", "in", "when", "error"]
    assert first.split()[:2] == ["a", "Shop.OrderPlaced"]
    assert "2026-03-04 12:00:00 UTC" in first
    assert first.rstrip().endswith("NoStockError: nothing left")
    assert "       2  Shop.OrderPlaced  Shop.NoStockError" in listed.out
    last = listed.out.splitlines()[-1]
    assert last.startswith(f"3 messages in {failed.resolve('error')}, 3 listed; retry with: queue-pipeline ")
    command = shown_command(last)
    assert command[-3:] == ["errors", "retry", "--all"]
    assert cli.pasted(command).code == 0, "the command that is shown can be typed"
    assert ids(cli, "orders") == ["a", "b", "c"]


def test_a_list_can_be_filtered_and_its_command_has_the_same_filter(cli: CommandLine, failed: QueueTransport) -> None:
    listed = cli("errors", "list", "--exception", "NoStockError", "--type", "Shop.OrderPlaced", "--limit", 1)
    assert "2 messages in " in listed.out
    assert ", 1 listed" in listed.out
    command = shown_command(listed.out.splitlines()[-1])
    assert command[-4:] == ["--type", "Shop.OrderPlaced", "--exception", "NoStockError"]
    assert cli.pasted(command).code == 0
    assert (ids(cli, "orders"), ids(cli, "error")) == (["a", "b"], ["c"])
    assert cli("errors", "list", "--from", "elsewhere").out == f"no such message is in {failed.resolve('error')}\n"
    document = cli("errors", "list", "--from", "orders", "--json").json
    (message,) = document["messages"]
    assert (message["message_id"], message["exception_type"], message["problem"]) == ("c", "Shop.Timeout", None)
    assert message["time_of_failure"] == "2026-03-04T12:00:00+00:00"
    assert message["headers"]["tenant"] == "north"
    assert (document["count"], document["capped"]) == (1, False)
    assert document["groups"][0]["messages"] == 1


def test_an_empty_error_queue_is_reported(cli: CommandLine, backend: Backend) -> None:
    queue = backend.transport().resolve("error").canonical
    assert cli("errors", "list").out == f"no message is in {queue}\n"
    assert cli("errors", "retry", "--all").out == f"none of these messages is in {queue}\n"
    assert cli("errors", "retry", "--all").code == 0
    assert cli("errors", "discard", "--all", "--yes").out == f"discarded 0 messages of {queue}\n"


def test_one_message_is_shown_completely(cli: CommandLine, failed: QueueTransport) -> None:
    failed.send("error", failure(failed, "d", body=b'{"Sku": "Zo\xc3\xab"}'))
    shown = cli("errors", "show", "d")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("message d · row 4 · Shop.OrderPlaced · sent ")
    assert "failed 2026-03-04 12:00:00 UTC" in shown.out
    assert "\ntenant: north\n" in shown.out
    assert '\n{"Sku": "Zoë"}\n' in shown.out
    assert f"\nstack trace:\n{TRACE}\n" in shown.out
    assert shown.out.splitlines()[-1].endswith("errors retry d")
    document = cli("errors", "show", "d", "--json").json["message"]
    assert (document["body"], document["size"]) == ('{"Sku": "Zoë"}', 15)
    assert document["headers"][wire.EXCEPTION_STACK_TRACE] == TRACE
    assert cli("errors", "show", document["id"].upper(), "--json").json["message"] == document


def test_what_is_not_there_is_named(cli: CommandLine, failed: QueueTransport) -> None:
    for words in ("show nobody", "retry a nobody", "discard nobody a --yes"):
        refused = cli("errors", *words.split())
        assert refused.code == 3
        assert f"no message nobody is in {failed.resolve('error')}" in refused.error
    assert ids(cli, "error") == ["a", "b", "c"]
    missing = cli("--error-queue", "nowhere", "errors", "list")
    assert missing.code == 3
    assert "queue-pipeline install" in missing.error


def test_messages_are_retried_by_their_ids(cli: CommandLine, failed: QueueTransport) -> None:
    (reported,) = cli("errors", "retry", "a", "c", "--json").json["queues"]
    assert reported == {"queue": failed.resolve("orders").canonical, "returned": 2}
    assert (ids(cli, "orders"), ids(cli, "error")) == (["a", "c"], ["b"])
    (first, _) = cli("show", "orders", "--json").json["messages"]
    assert wire.FAILED_QUEUE not in first["headers"]
    assert first["headers"]["tenant"] == "north"


def test_messages_are_retried_to_another_queue_of_another_error_queue(cli: CommandLine, backend: Backend) -> None:
    transport = backend.transport()
    transport.install("repair", plain_queues=["my errors"])
    transport.send("my errors", [failure(transport, "x"), failure(transport, "y", "gone")])
    listed = cli("--error-queue", "my errors", "errors", "list").out
    assert "--error-queue 'my errors' errors retry --all" in listed
    retried = cli("--error-queue", "my errors", "errors", "retry", "--all", "--to", "repair", "--batch", 1)
    assert (retried.code, retried.err) == (0, "")
    assert retried.out.splitlines()[-1].split() == [*transport.resolve("repair").canonical.split(), "2"]
    assert ids(cli, "repair") == ["x", "y"]


def test_what_cannot_go_back_is_reported_and_the_exit_code_shows_it(cli: CommandLine, failed: QueueTransport) -> None:
    hostile = "x]; DROP TABLE orders;--"
    failed.send("error", [failure(failed, "gone", hostile), OutgoingMessage(b"", {wire.MESSAGE_ID: "lost"})])
    retried = cli("errors", "retry", "--all")
    assert (retried.code, retried.err) == (1, "")
    assert ids(cli, "orders") == ["a", "b", "c"]
    gone, lost = retried.out.splitlines()[-2:]
    assert gone.startswith("gone") and "does not exist; create it with: queue-pipeline install '" in gone
    assert lost.startswith("lost") and "name a destination with --to" in lost
    again = cli("errors", "retry", "lost", "--json")
    assert again.code == 1
    document: dict[str, Any] = json.loads(again.out)
    assert (document["returned"], document["stayed"], document["held"]) == (0, 1, 0)
    assert document["reasons"][0]["message_id"] == "lost"


def test_rows_that_cannot_be_read_are_listed_shown_and_retried_to_a_queue_that_is_named(
    cli: CommandLine, backend: Backend
) -> None:
    transport = backend.transport()
    transport.send("orders", OutgoingMessage(b"\x00", {wire.MESSAGE_ID: "m"}))
    column = "headers" if backend.name == "postgresql" else "Headers"
    backend.sql(transport, f"UPDATE {transport.resolve('orders').qualified} SET {column} = 'no JSON'")
    with transport.receive("orders") as batch:
        assert batch.poisoned == 1
    listed = cli("errors", "list").out
    assert "headers cannot be read: Expecting value" in listed
    row_id = listed.splitlines()[2].split()[0]
    shown = cli("errors", "show", row_id).out
    assert "headers cannot be read" in shown and "'no JSON'" in shown
    assert shown.splitlines()[-1].endswith(f"errors retry {row_id} --to QUEUE")
    assert cli("errors", "retry", row_id).code == 1
    cli("install", "repair", "--plain")
    assert cli("errors", "retry", row_id, "--to", "repair").code == 0
    (moved,) = cli("show", "repair", "--json").json["messages"]
    assert (moved["id"], moved["raw_headers"], moved["body_base64"]) == (row_id, "no JSON", "AA==")


def test_messages_are_discarded_with_yes(cli: CommandLine, failed: QueueTransport) -> None:
    assert cli("errors", "discard", "--exception", "NoStockError", "--yes", "--json").json["discarded"] == 2
    assert ids(cli, "error") == ["c"]


@pytest.mark.parametrize(("answer", "left"), [(b"y\n", ["c"]), (b"n\n", ["a", "b", "c"]), (b"\n", ["a", "b", "c"])])
def test_a_person_is_asked_before_messages_are_discarded(
    cli: CommandLine, failed: QueueTransport, monkeypatch: pytest.MonkeyPatch, answer: bytes, left: list[str]
) -> None:
    monkeypatch.setattr(errors, "_is_interactive", lambda: True)
    asked = cli("errors", "discard", "a", "b", stdin=answer)
    assert asked.code == 0
    assert f"discard 2 messages of {failed.resolve('error')} for good? [y/N]" in asked.err
    # click before 8.4 writes the space behind the prompt to stdout.
    assert asked.out.lstrip(" ") == f"discarded {3 - len(left)} messages of {failed.resolve('error')}\n"
    assert ids(cli, "error") == left


def test_what_fails_while_the_user_is_asked_is_not_discarded(
    cli: CommandLine, failed: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def think(number: int, queue: object) -> bool:
        failed.send("error", failure(failed, "later"))
        return number == 3

    monkeypatch.setattr(errors, "_is_interactive", lambda: True)
    monkeypatch.setattr(errors, "_is_meant", think)
    assert "discarded 3 messages" in cli("errors", "discard", "--all").out
    assert ids(cli, "error") == ["later"]


def test_no_message_can_control_a_terminal_or_a_shell(cli: CommandLine, backend: Backend) -> None:
    transport = backend.transport()
    bad = failure(transport, "$(reboot) \x1b[2J", kind="E\x1b]0;title\x07")
    transport.send("error", bad)
    shown = [cli("errors", "list").out, cli("errors", "show", transport.failed.list("error")[0].id).out]
    assert all("\x1b" not in text and "\x07" not in text for text in shown)
    assert "errors retry $(" not in shown[1]
    transport.send(
        "error", OutgoingMessage(b"", {wire.FAILED_QUEUE: "a;reboot", wire.EXCEPTION_MESSAGE: "e\n" * 9_999})
    )
    assert "install a;reboot" not in cli("errors", "retry", "--all").out
    assert max(map(len, cli("errors", "list").out.splitlines())) < 400


def test_a_retry_lists_which_receivers_may_take_the_messages(cli: CommandLine, failed: QueueTransport) -> None:
    for queue, owner in (("orders", "run old"), ("orders", "run new"), ("error", "run elsewhere")):
        failed.slots.take(failed.resolve(queue), owner, 1, 3, 300)
    failed.slots.end(failed.resolve("orders"), "run old", "the code changed: shop.prices")
    lines = cli("errors", "retry", "a").out.splitlines()
    assert [line.split()[:2] for line in lines[-2:]] == [["run", "new"], ["run", "old"]]
    assert lines[-2].split()[-1] == "yes"
    assert lines[-1].endswith("no: the code changed: shop.prices")
    document = cli("errors", "retry", "b", "--json").json["receivers"]
    assert [(each["owner"], each["ending"]) for each in document] == [
        ("run new", None),
        ("run old", "the code changed: shop.prices"),
    ]


def test_a_retry_without_receivers_says_nothing_of_them(cli: CommandLine, failed: QueueTransport) -> None:
    assert "at work" not in cli("errors", "retry", "a").out
    assert cli("errors", "retry", "b", "--json").json["receivers"] == []
