"""`request` and the instances of `install` on every database."""

from __future__ import annotations

import pytest

from queue_pipeline.transport import QueueAddress, QueueTransport, ReceivedMessage
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.responder import Responder, reply_to


@pytest.fixture
def cli(backend: Backend, transport: QueueTransport) -> CommandLine:
    return CommandLine(backend)


def test_a_request_prints_the_body_of_its_reply(cli: CommandLine, transport: QueueTransport) -> None:
    with Responder(transport, "orders"):
        asked = cli("request", "orders", "--body", '{"id": 1}', "--create", "--timeout", 20)
    assert (asked.code, asked.out, asked.err) == (0, 're: {"id": 1}\n', "")


def test_a_request_prints_the_code_of_its_reply(cli: CommandLine, transport: QueueTransport) -> None:
    options = ("--endpoint", "shop", "--discriminator", "web1", "--type", "Shop.Ask", "--header", "tenant=north")
    seen: list[ReceivedMessage] = []

    def answer(request: ReceivedMessage):
        seen.append(request)
        return [reply_to(request, code=42)]

    assert cli("install", "shop", "--instance", "web1", "--plain").code == 0
    with Responder(transport, "orders", answer):
        asked = cli("request", "orders", "--body-file", "-", *options, stdin=b"\x00\xff")
        document = cli("request", "orders", "--body", "x", *options, "--json").json
    assert (asked.code, asked.out) == (0, "code 42\n")
    assert (document["code"], document["body"], document["type"]) == (42, "", None)
    assert document["headers"][wire.RETURN_CODE] == "42"
    first = seen[0]
    assert (first.body, first.headers["tenant"]) == (b"\x00\xff", "north")
    assert first.headers[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.Ask"
    assert first.headers[wire.REPLY_TO_ADDRESS] == transport.resolve(QueueAddress("shop.web1")).canonical


def test_without_a_reply_in_time_the_exit_code_is_seven(cli: CommandLine, transport: QueueTransport) -> None:
    asked = cli("request", "orders", "--body", "x", "--create", "--timeout", 0.05)
    assert asked.code == 7
    assert "no reply to request" in asked.error
    assert str(transport.resolve("orders")) in asked.error


def test_without_a_callback_queue_the_command_that_creates_it_is_named(cli: CommandLine) -> None:
    asked = cli("request", "orders", "--body", "x", "--discriminator", "web1")
    assert asked.code == 3
    assert "create it with: queue-pipeline install" in asked.error
    assert "--create" in asked.error


def test_install_creates_the_queues_of_instances_and_not_that_of_the_endpoint(
    cli: CommandLine, transport: QueueTransport
) -> None:
    made = cli("install", "My.Shop", "--instance", "a", "--instance", "b", "--json").json["tables"]
    created = {table["table"] for table in made if table["created"]}
    for name in ("My.Shop.a", "My.Shop.b", "My.Shop.a.Delayed", "My.Shop.b.Claimed"):
        assert transport.resolve(QueueAddress(name)).canonical in created
    assert len(created) == 6
    assert cli("install", "shop", "--instance", "Delayed").code == 2
