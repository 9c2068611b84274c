"""Messages from bus to bus: every reader of a queue handles them, and hands over none of them."""

import json
from datetime import timedelta

import pytest

from queue_pipeline.transport.layouts.nginn.subscriptions import control_type
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, SENDER, body_of

TYPE = "Shop.OrderPlaced"
REQUEST = {"SubscriberEndpoint": BILLING, "MessageType": TYPE, "SubscriptionTime": "2.00:00:00"}


@pytest.fixture(params=["received", "claimed"])
def handle(request):
    """Take what is there; nothing of it may be handed over."""

    def received(bus, queue=ORDERS):
        with bus.transport.receive(queue) as batch:
            assert len(batch) == 0

    def claimed(bus, queue=ORDERS):
        assert bus.transport.claim(queue, "me", 100) is None

    return received if request.param == "received" else claimed


def expire(bus, seconds):
    table = bus.transport.nginn.subscriptions.table.qualified
    bus.execute(f"UPDATE {table} SET expiration_date = {bus.moment(seconds)}")


def one(bus, queue):
    (row,) = (row for row in bus.rows(queue) if row["subqueue"] in "IR")
    return row, json.loads(row["msg_text"])


def seconds(bus, moment):
    return (moment - bus.now()).total_seconds()


def test_a_request_is_kept_for_twice_its_time_and_a_minute(bus, handle):
    bus.insert_control("SubscribeRequest", **REQUEST)
    handle(bus)
    assert bus.subqueues()[0] == "X"
    (kept,) = bus.subscriptions()
    assert (kept["publisher_endpoint"], kept["subscriber_endpoint"], kept["message_type"]) == (ORDERS, BILLING, TYPE)
    expected = timedelta(hours=96, minutes=1).total_seconds()
    assert seconds(bus, kept["expiration_date"]) == pytest.approx(expected, abs=10)
    assert seconds(bus, kept["created_date"]) == pytest.approx(0, abs=10)


def test_a_request_schedules_its_renewal_at_the_subscriber_and_its_end_here(bus, handle):
    bus.insert_control("SubscribeRequest", **REQUEST)
    handle(bus)
    row, body = one(bus, BILLING)
    assert body == {"$type": control_type("SubscriptionExpiring"), "MessageType": TYPE}
    assert (row["subqueue"], row["from_endpoint"], row["to_endpoint"]) == ("R", ORDERS, BILLING)
    assert seconds(bus, row["retry_time"]) == pytest.approx(48 * 3600, abs=10)
    row, body = one(bus, ORDERS)
    assert (body["$type"], body["Subscriber"], body["MessageType"]) == (
        control_type("SubscriptionTimeout"),
        BILLING,
        TYPE,
    )
    assert (row["subqueue"], row["from_endpoint"]) == ("R", ORDERS)
    assert seconds(bus, row["retry_time"]) == pytest.approx(96 * 3600 + 60, abs=10)


def test_a_request_without_a_subscriber_subscribes_its_sender(bus, handle):
    bus.insert_control("SubscribeRequest", sender=BILLING, MessageType=TYPE, SubscriptionTime="00:01:00")
    handle(bus)
    assert bus.subscriptions()[0]["subscriber_endpoint"] == BILLING


@pytest.mark.parametrize("time", ["00:00:00", "-1.00:00:00", None])
def test_a_request_without_a_lifetime_never_expires(bus, handle, time):
    bus.insert_control("SubscribeRequest", **{**REQUEST, "SubscriptionTime": time})
    handle(bus)
    assert bus.subscriptions()[0]["expiration_date"] is None
    assert bus.subqueues() == "X"
    assert bus.rows(BILLING) == []


def test_a_second_request_holds_the_same_subscription_for_longer(bus, handle):
    bus.insert_control("SubscribeRequest", **REQUEST)
    handle(bus)
    (first,) = bus.subscriptions()
    expire(bus, 5)
    bus.insert_control("SubscribeRequest", **REQUEST)
    handle(bus)
    (second,) = bus.subscriptions()
    assert second["created_date"] == first["created_date"]
    assert seconds(bus, second["expiration_date"]) > 300_000


def test_a_subscription_takes_effect_once_the_publisher_has_processed_it(bus, handle):
    subscriptions = bus.transport.nginn.subscriptions
    assert subscriptions.subscribers(ORDERS, TYPE) == ()
    subscriptions.subscribe(ORDERS, BILLING, TYPE)
    handle(bus)
    assert subscriptions.subscribers(ORDERS, TYPE) == (BILLING,)


def test_a_renewal_is_asked_for_while_the_subscription_is_in_the_table(bus, handle):
    bus.insert_control("SubscribeRequest", **REQUEST)
    handle(bus)
    bus.insert_control("SubscriptionExpiring", queue=BILLING, sender=ORDERS, MessageType=TYPE)
    handle(bus, BILLING)
    row = next(row for row in bus.rows() if row["subqueue"] == "I")
    assert json.loads(row["msg_text"]) == {"$type": control_type("SubscribeRequest"), **REQUEST}
    assert (row["from_endpoint"], row["to_endpoint"]) == (BILLING, ORDERS)


def test_a_renewal_is_not_asked_for_after_unsubscribing(bus, handle):
    bus.insert_control("SubscriptionExpiring", queue=BILLING, sender=ORDERS, MessageType=TYPE)
    handle(bus, BILLING)
    assert bus.subqueues(BILLING) == "X"
    assert bus.rows() == []


def test_a_renewal_at_a_publisher_that_is_out_of_reach_is_only_logged(bus, handle, caplog):
    bus.insert_control("SubscriptionExpiring", queue=BILLING, sender="sql://far/Away", MessageType=TYPE)
    handle(bus, BILLING)
    assert bus.subqueues(BILLING) == "X"
    assert "sql://far/Away cannot be reached" in caplog.text


@pytest.mark.parametrize(("left", "remaining"), [(-1, 0), (100, 1)])
def test_a_timeout_ends_a_subscription_only_when_it_has_expired(bus, handle, left, remaining):
    bus.insert_control("SubscribeRequest", **REQUEST)
    handle(bus)
    expire(bus, left)
    moment = "2015-01-01T10:00:00Z"
    bus.insert_control("SubscriptionTimeout", Subscriber=BILLING, MessageType=TYPE, Expiration=moment)
    handle(bus)
    assert len(bus.subscriptions()) == remaining
    assert bus.transport.nginn.subscriptions.subscribers(ORDERS, TYPE) == (BILLING,) * remaining


def test_a_timeout_does_not_end_a_subscription_that_never_expires(bus, handle):
    bus.insert_control("SubscribeRequest", **{**REQUEST, "SubscriptionTime": "00:00:00"})
    bus.insert_control("SubscriptionTimeout", Subscriber=BILLING, MessageType=TYPE)
    handle(bus)
    assert len(bus.subscriptions()) == 1


def test_a_request_to_unsubscribe_ends_a_subscription(bus, handle):
    bus.insert_control("SubscribeRequest", **{**REQUEST, "SubscriptionTime": "00:00:00"})
    handle(bus)
    bus.insert_control("UnsubscribeRequest", SubscriberEndpoint=BILLING, MessageType=TYPE)
    handle(bus)
    assert bus.subscriptions() == []
    assert bus.subqueues() == "XX"


def test_a_ping_is_answered(bus, handle):
    bus.insert_control("Ping", sender=BILLING, Id="p-1", SentDate="2015-01-01T10:00:00.5+01:00")
    handle(bus)
    row, body = one(bus, BILLING)
    assert (body["$type"], body["Id"], body["PingSentDate"]) == (
        control_type("Pong"),
        "p-1",
        "2015-01-01T10:00:00.5+01:00",
    )
    assert (row["subqueue"], row["from_endpoint"]) == ("I", ORDERS)


@pytest.mark.parametrize("sender", ["sql://db/Nowhere", "sql://far/Away", "http://server/bus", "nobody"])
def test_a_ping_that_cannot_be_answered_blocks_no_other_message(bus, sender, caplog):
    bus.insert_control("Ping", sender=sender, Id="p-1")
    bus.insert(body_of(1))
    assert bus.transport.claim(ORDERS, "me", 10).messages == 1
    assert bus.subqueues() == "XR"
    assert f"{sender} cannot be reached" in caplog.text


@pytest.mark.parametrize("time", ["2.00:00:00", "00:00:00"])
@pytest.mark.parametrize("subscriber", ["sql://db/Nowhere", "sql://far/Away", "http://server/bus", "nobody"])
def test_a_subscriber_that_could_not_be_sent_anything_is_refused(bus, subscriber, time):
    bus.insert_control("SubscribeRequest", SubscriberEndpoint=subscriber, MessageType=TYPE, SubscriptionTime=time)
    bus.insert(body_of(1))
    assert bus.transport.claim(ORDERS, "me", 10).messages == 1
    assert bus.subqueues() == "FR"
    assert subscriber in bus.rows()[0]["error_info"]
    assert bus.subscriptions() == []


@pytest.mark.parametrize(
    "text",
    [
        '{"$type":"%s"}',
        '{"$type":"%s","MessageType":"T","SubscriptionTime":"two days"}',
        '{"$type":"%s","MessageType":"T","SubscriptionTime":"10675199.02:48:05.4775807"}',
        '{"$type":"%s","MessageType":"T","SubscriptionTime":"9999999999.00:00:00"}',
        '{"$type":"%s","MessageType":"T","SubscriberEndpoint":5}',
        '{"$type":"%s","MessageType":"",',
        '{"$type":"%s","a":' + "[" * 100_000,
        '{"$type":"%s","MessageType":"' + "t" * 301 + '"}',
    ],
    ids=[
        "no type",
        "no time",
        "the longest time",
        "an endless time",
        "no text",
        "no json",
        "nested too deeply",
        "too long",
    ],
)
def test_an_invalid_request_fails_and_the_others_continue(bus, text):
    row_id = bus.insert(text % control_type("SubscribeRequest"))
    bus.insert(body_of(1))
    assert bus.transport.claim(ORDERS, "me", 10).messages == 1
    assert bus.subqueues() == "FR"
    assert bus.row(row_id)["error_info"]
    assert bus.subscriptions() == []


def test_a_type_that_only_looks_like_one_from_bus_to_bus_is_handed_over(bus):
    bus.insert('{"$type":"NGinnBPM.MessageBus.Messages.Pong, NGinnBPM.MessageBus","Id":"1"}')
    bus.insert('{"$type":"My.Messages.Ping, My"}')
    assert bus.transport.claim(ORDERS, "me", 10).messages == 2
    assert bus.rows(SENDER) == []


def test_the_answer_to_a_ping_is_undone_with_the_receive_that_fails(bus):
    bus.insert_control("Ping", sender=BILLING, Id="p-1")
    bus.insert(body_of(1))
    with pytest.raises(ZeroDivisionError), bus.transport.receive(ORDERS):
        raise ZeroDivisionError
    assert bus.rows(BILLING) == []
    assert bus.subqueues() == "IR"
