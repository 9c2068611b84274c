"""Whatever text a program or a person gives is stored, made storable, or refused by name; no driver's error leaks."""

import pytest

from queue_pipeline.errors import ConfigurationError, DatabaseError
from queue_pipeline.transport import new_message
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.messages import headers as wire

UNSTORABLE = {
    "NUL": "or\0ders",
    "half a surrogate pair": "or\ud83dders",
    "bytes": b"or\xff".decode(errors="surrogateescape"),
}
texts = pytest.mark.parametrize("text", UNSTORABLE.values(), ids=UNSTORABLE)


@texts
def test_the_reason_of_a_pause_is_made_storable(transport, text):
    assert transport.pauses.pause("orders", text, text)
    pause = transport.pauses.list()["orders"]
    assert pause.by == pause.reason == text.replace("\0", "").replace("\ud83d", "\ufffd").replace("\udcff", "\ufffd")


@texts
def test_a_pause_name_that_cannot_be_stored_is_refused(transport, text):
    with pytest.raises(ConfigurationError, match="Unicode"):
        transport.pauses.pause(text, "me")


@texts
def test_an_owner_that_cannot_be_stored_is_refused(transport, text):
    transport.send("orders", new_message("{}"))
    with pytest.raises(ConfigurationError, match="Unicode"):
        transport.claim("orders", text, 10)


@texts
def test_an_endpoint_or_topic_that_cannot_be_stored_is_refused(transport, text):
    for endpoint, topic in ((text, "Shop.Order"), ("orders", f"Shop.{text}")):
        with pytest.raises(ConfigurationError):
            transport.subscriptions.subscribe(endpoint, topic, "orders")


@texts
def test_headers_keep_every_character(transport, text):
    transport.send("orders", new_message("{}", headers={"own": text, text: "own"}))
    with transport.receive("orders") as batch:
        (message,) = batch
        assert (message.headers["own"], message.headers[text]) == (text, "own")


def test_a_text_that_a_driver_does_not_write_is_our_error(transport):
    (half,) = [text for name, text in UNSTORABLE.items() if name == "half a surrogate pair"]
    with pytest.raises(DatabaseError, match="not Unicode"), transport.database.transaction() as transaction:
        transaction.rows(Command("SELECT CAST(:text AS text)", "orders"), text=half)


def test_a_forward_that_fails_is_grouped_by_its_place(transport):
    transport.send("orders", new_message("{}", headers={wire.FORWARD_DESTINATION: "nowhere"}))
    with transport.receive("orders") as batch:
        assert (list(batch), batch.forwarded) == ([], 1)
    (shown,) = transport.show("error")
    lines = shown.headers[wire.EXCEPTION_STACK_TRACE].splitlines()
    forwarder = "queue_pipeline.transport.layouts.nservicebus.forwarding.Forwarder"
    assert lines[1].startswith(f"   at {forwarder}.forward_all() in /")
