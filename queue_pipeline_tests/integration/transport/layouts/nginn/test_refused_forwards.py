"""A queue that refuses a message fails that message alone: every reader of the other queue goes on."""

import pytest

from queue_pipeline.transport import TransactionMode
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, body_of, number_of

OBSTACLES = {
    "sqlite": [
        "CREATE TRIGGER refuse BEFORE INSERT ON {billing} WHEN NEW.label = 'bad' "
        "BEGIN SELECT RAISE(ABORT, 'not here'); END"
    ],
    "postgresql": ["ALTER TABLE {billing} ADD CONSTRAINT \"not here\" CHECK (label <> 'bad')"],
    "sqlserver": ["ALTER TABLE {billing} ADD CONSTRAINT [not here] CHECK (label <> 'bad')"],
}


@pytest.fixture(params=["claimed", *TransactionMode])
def numbers(request):
    """Takes what is there in some way; returns the numbers of the orders that were handed over."""

    def claimed(bus):
        claim = bus.transport.claim(ORDERS, "me", 100)
        messages = bus.transport.claims.messages(claim)[0]
        bus.transport.claims.give_back(claim)
        return [number_of(message.body) for message in messages]

    def received(bus):
        with bus.transport.receive(ORDERS, mode=request.param) as batch:
            return [number_of(message.body) for message in batch]

    return claimed if request.param == "claimed" else received


def refuse(bus, *statements):
    for statement in statements:
        bus.execute(statement.format(billing=bus.table(BILLING)))


def test_a_message_for_a_queue_that_refuses_it_fails_and_the_others_arrive(bus, numbers):
    refuse(bus, *OBSTACLES[bus.backend.name])
    good, bad = bus.insert(body_of(1), to_endpoint=BILLING), bus.insert(body_of(2), to_endpoint=BILLING, label="bad")
    bus.insert(body_of(3))
    assert numbers(bus) == [3]
    assert [number_of(row["msg_text"]) for row in bus.rows(BILLING)] == [1]
    assert (bus.row(good)["subqueue"], bus.row(bad)["subqueue"], bus.row(bad)["retry_count"]) == ("X", "F", 1)
    assert "not here" in bus.row(bad)["error_info"]


def test_a_table_that_is_no_queue_refuses_all_messages(bus, numbers):
    refuse(bus, "DROP TABLE {billing}", "CREATE TABLE {billing} (other int)")
    rows = [bus.insert(body_of(n), to_endpoint=BILLING) for n in (1, 2)]
    bus.insert(body_of(3))
    assert numbers(bus) == [3]
    assert [bus.row(row)["subqueue"] for row in rows] == ["F", "F"]
    assert all("Billing" in bus.row(row)["error_info"] for row in rows)


def test_an_answer_that_is_refused_fails_only_its_question(bus, numbers):
    """A ping is answered in the queue of its sender, where its reader has no say."""
    refuse(bus, "DROP TABLE {billing}", "CREATE TABLE {billing} (other int)")
    ping = bus.insert_control("Ping", sender=BILLING, Id="1")
    bus.insert(body_of(3))
    assert numbers(bus) == [3]
    assert bus.row(ping)["subqueue"] == "F"
    assert "Billing" in bus.row(ping)["error_info"]


def test_a_request_that_no_table_can_store_fails_without_affecting_others(bus, numbers):
    members = {"SubscriberEndpoint": BILLING, "SubscriptionTime": "00:00:00"}
    texts = ("\ud800", "x" * 10_000)
    requests = [bus.insert_control("SubscribeRequest", MessageType=text, **members) for text in texts]
    bus.insert(body_of(3))
    assert numbers(bus) == [3]
    assert {bus.row(row)["subqueue"] for row in requests} <= {"F", "X"}
