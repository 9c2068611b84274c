"""Requests, replies and settings as values."""

from datetime import date
from decimal import Decimal
from uuid import UUID

import pytest
from pydantic import BaseModel

from queue_pipeline.client import CallbackSettings, Reply
from queue_pipeline.client.callback_receiver import LATE, UNMATCHED, why_unmatched
from queue_pipeline.client.pending import Ending
from queue_pipeline.errors import AddressError, ConfigurationError, InvalidMessageError
from queue_pipeline.transport import ReceivedMessage
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import instance_address
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.bodies import encoded


class Order(BaseModel):
    id: int
    name: str


@pytest.mark.parametrize(
    ("body", "bytes_"),
    [
        (b"\x00\xff", b"\x00\xff"),
        ("Zoë", "Zoë".encode()),
        ({"a": [1, None], "name": "Zoë"}, '{"a":[1,null],"name":"Zoë"}'.encode()),
        ([1, 2], b"[1,2]"),
        ({"due": date(2026, 5, 31), "total": Decimal("1.10")}, b'{"due":"2026-05-31","total":"1.10"}'),
        ([UUID(int=1), Order(id=1, name="x")], b'["00000000-0000-0000-0000-000000000001",{"id":1,"name":"x"}]'),
        ({"title": "NaN and Infinity"}, b'{"title":"NaN and Infinity"}'),
        (Order(id=1, name="Zoë"), '{"id":1,"name":"Zoë"}'.encode()),
    ],
)
def test_a_body_is_sent_as_it_is_or_as_json(body, bytes_):
    assert encoded(body) == bytes_


@pytest.mark.parametrize("body", [1, None, {"a": object()}, {"a": float("nan")}])
def test_a_body_of_another_type_is_refused(body):
    with pytest.raises(InvalidMessageError, match="the body"):
        encoded(body)


def test_only_a_control_message_has_a_return_code():
    def code(**headers):
        return Reply(b"", {getattr(wire, name): value for name, value in headers.items()}).code

    assert code(CONTROL_MESSAGE="True", RETURN_CODE="5") == 5
    assert code(CONTROL_MESSAGE="true", RETURN_CODE="-1") == -1
    assert code(RETURN_CODE="5") is None
    assert code(CONTROL_MESSAGE="True", RETURN_CODE="five") is None
    assert code(CONTROL_MESSAGE="True") is None
    assert code(CONTROL_MESSAGE="False", RETURN_CODE="5") is None


def test_a_reply_has_its_type_and_its_json():
    reply = Reply('\ufeff{"name":"Zoë"}'.encode(), {wire.ENCLOSED_MESSAGE_TYPES: "Shop.Answer"})
    assert (reply.message_type, reply.json(), reply.code) == ("Shop.Answer", {"name": "Zoë"}, None)
    number = Reply(b"", {wire.MESSAGE_ID: "r1", wire.CONTROL_MESSAGE: "True", wire.RETURN_CODE: "3"})
    with pytest.raises(InvalidMessageError, match="reply r1: it has no body, only the code 3"):
        number.json()
    for body, reported in ((b"\xff", "not UTF-8"), (b"{", "not JSON")):
        with pytest.raises(InvalidMessageError, match=reported):
            Reply(body, {}).json()


def test_an_unmatched_reply_says_why():
    def failure_of(ending, correlation_id="q1"):
        headers = {wire.MESSAGE_ID: "r1", **({wire.CORRELATION_ID: correlation_id} if correlation_id else {})}
        return why_unmatched(ReceivedMessage("row", 1, headers, b""), "shop.web1", ending)

    assert failure_of(Ending.TIMED_OUT).error_type == LATE
    assert {failure_of(ending).error_type for ending in (None, Ending.ANSWERED, Ending.CLOSED)} == {UNMATCHED}
    assert failure_of(Ending.ANSWERED).message == "reply r1 in shop.web1 answers request q1, which was answered already"
    assert "give each a discriminator of its own" in failure_of(None).message
    assert "no correlation id" in failure_of(None, None).message


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"batch": 0}, "batch: "),
        ({"unmatched": "keep"}, "unmatched: "),
        ({"threads": 2}, "threads: "),
        ({"first_delay": 2, "peek_delay": 1}, "first_delay, 2 s, is longer than peek_delay, 1 s"),
    ],
)
def test_invalid_settings_are_refused_by_name(given, reported):
    with pytest.raises(ConfigurationError, match=reported):
        CallbackSettings(**given)


def test_the_queue_of_an_instance_is_named_after_endpoint_and_discriminator():
    assert instance_address("My.Shop", "web1") == QueueAddress("My.Shop.web1")
    assert instance_address("shop") == QueueAddress(f"shop.{wire.machine_name()}")
    for endpoint, discriminator in (("", "a"), ("shop", ""), ("shop", "delayed"), ("a\0", "b"), ("a", "b\n")):
        with pytest.raises(AddressError):
            instance_address(endpoint, discriminator)
