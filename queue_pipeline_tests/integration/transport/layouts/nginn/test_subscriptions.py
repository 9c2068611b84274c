"""Publishing, and subscribing at a publisher by its table."""

import pytest

from queue_pipeline.errors import ConfigurationError, SubscriberError
from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nginn.subscriptions import EVERYTHING
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.nginn.nginn_bus import (
    BILLING,
    ORDERS,
    PLACED,
    SENDER,
    Bus,
    number_of,
    placed,
    settings,
)

TYPE = "Shop.OrderPlaced"


@pytest.fixture
def subscriptions(transport):
    return transport.nginn.subscriptions


def add(bus, subscriber, message_type=TYPE, seconds=None, publisher=ORDERS):
    table = bus.transport.nginn.subscriptions.table.qualified
    expires = "NULL" if seconds is None else bus.moment(seconds)
    columns = "publisher_endpoint, subscriber_endpoint, message_type, created_date, expiration_date"
    values = f"VALUES (?, ?, ?, {bus.moment()}, {expires})"
    bus.execute(f"INSERT INTO {table} ({columns}) {values}", (publisher, subscriber, message_type))


@pytest.mark.parametrize("name", ["NGMB_Subscriptions", "NGinnMessageBus_Subscriptions"])
def test_the_table_has_the_name_of_the_setting(backend, name):
    transport = backend.transport(nginn=settings(subscriptions_table=name))
    assert any(name in made.table for made in transport.install(ORDERS))
    bus = Bus(backend, transport)
    add(bus, BILLING)
    assert [one.subscriber for one in transport.nginn.subscriptions.all()] == [BILLING]
    assert bus.sql(f"SELECT count(*) FROM {transport.book.own(name).qualified}")[0][0] == 1


def test_subscribing_sends_a_request_to_the_publisher_and_writes_no_table(bus, subscriptions):
    subscriptions.subscribe(ORDERS, BILLING, TYPE)
    (row,) = bus.rows()
    assert row["msg_text"] == (
        '{"$type":"NGinnBPM.MessageBus.Messages.SubscribeRequest, NGinnBPM.MessageBus",'
        f'"SubscriberEndpoint":"{BILLING}","MessageType":"{TYPE}","SubscriptionTime":"2.00:00:00"}}'
    )
    assert (row["from_endpoint"], row["to_endpoint"]) == (BILLING, ORDERS)
    assert bus.subscriptions() == []


def test_the_lifetime_that_is_asked_for_is_a_setting(bus):
    other = bus.other(subscription_seconds=90)
    other.transport.nginn.subscriptions.subscribe(ORDERS, BILLING, TYPE)
    assert '"SubscriptionTime":"00:01:30"' in other.rows()[0]["msg_text"]


def test_unsubscribing_deletes_the_row_at_once(bus, subscriptions):
    add(bus, BILLING)
    add(bus, SENDER)
    assert subscriptions.unsubscribe(ORDERS, BILLING, TYPE) is True
    assert subscriptions.unsubscribe(ORDERS, BILLING, TYPE) is False
    assert [one.subscriber for one in subscriptions.all()] == [SENDER]


def test_all_subscriptions_are_listed_with_the_time_that_is_left(bus, subscriptions):
    add(bus, BILLING, seconds=100)
    add(bus, SENDER)
    add(bus, SENDER, publisher=BILLING, seconds=-100)
    at_orders = {one.subscriber: one.expires_seconds for one in subscriptions.all(ORDERS)}
    assert at_orders == {BILLING: pytest.approx(100, abs=5), SENDER: None}
    (other,) = subscriptions.all(BILLING)
    assert other.expires_seconds == pytest.approx(-100, abs=5)
    assert len(subscriptions.all()) == 3


def test_a_published_message_goes_to_every_subscriber_with_an_id_of_its_own(bus, subscriptions):
    add(bus, BILLING)
    add(bus, SENDER)
    assert subscriptions.publish(ORDERS, PLACED, placed(1)) == 2
    (first,), (second,) = bus.rows(BILLING), bus.rows(SENDER)
    assert number_of(first["msg_text"]) == number_of(second["msg_text"]) == 1
    assert first["msg_text"] == second["msg_text"]
    assert first["unique_id"] != second["unique_id"]
    assert (first["from_endpoint"], first["to_endpoint"]) == (ORDERS, BILLING)
    assert bus.rows() == []


def test_several_messages_are_published_in_one_transaction(bus, subscriptions):
    add(bus, BILLING)
    assert subscriptions.publish(ORDERS, TYPE, [placed(n) for n in range(3)]) == 3
    with pytest.raises(ZeroDivisionError), bus.transport.database.transaction() as transaction:
        subscriptions.publish(ORDERS, TYPE, placed(9), transaction=transaction)
        raise ZeroDivisionError
    assert [number_of(row["msg_text"]) for row in bus.rows(BILLING)] == [0, 1, 2]


def test_a_message_without_a_subscriber_is_sent_to_no_queue(bus, subscriptions):
    add(bus, BILLING, "Shop.Other")
    add(bus, BILLING, TYPE.lower())
    add(bus, BILLING, publisher=SENDER)
    assert subscriptions.publish(ORDERS, PLACED, placed(1)) == 0
    assert bus.rows(BILLING) == []


def test_a_subscriber_to_a_base_type_or_to_everything_gets_each_message_once(bus, subscriptions):
    for message_type in (TYPE, "Shop.Event", EVERYTHING):
        add(bus, BILLING, message_type)
    add(bus, SENDER, EVERYTHING)
    assert subscriptions.subscribers(ORDERS, TYPE, ["Shop.Event"]) == (BILLING, SENDER)
    assert subscriptions.publish(ORDERS, PLACED, placed(1), parents=["Shop.Event"]) == 2
    assert (len(bus.rows(BILLING)), len(bus.rows(SENDER))) == (1, 1)


def test_a_base_type_counts_only_when_it_is_named(bus, subscriptions):
    add(bus, BILLING, "Shop.Event")
    assert subscriptions.subscribers(ORDERS, TYPE) == ()
    assert subscriptions.subscribers(ORDERS, TYPE, ["Shop.Event"]) == (BILLING,)


def test_an_expired_subscription_gets_nothing(bus, subscriptions):
    add(bus, BILLING, seconds=-1)
    add(bus, SENDER, seconds=100)
    assert subscriptions.subscribers(ORDERS, TYPE) == (SENDER,)


def test_a_subscription_inserted_by_hand_is_noticed_after_the_cache_is_cleared(bus, subscriptions):
    assert subscriptions.subscribers(ORDERS, TYPE) == ()
    add(bus, BILLING)
    assert subscriptions.subscribers(ORDERS, TYPE) == ()
    subscriptions.forget(ORDERS)
    assert subscriptions.subscribers(ORDERS, TYPE) == (BILLING,)


def test_a_subscriber_that_is_gone_is_named(bus, subscriptions):
    add(bus, BILLING)
    add(bus, "sql://db/Nowhere")
    with pytest.raises(SubscriberError, match=rf"queue-pipeline nginn unsubscribe {ORDERS} sql://db/Nowhere"):
        subscriptions.publish(ORDERS, PLACED, placed(1))
    assert bus.rows(BILLING) == []


def test_a_subscriber_in_another_database_is_named(bus, subscriptions):
    """Left out without a word, it would miss what it asked for."""
    add(bus, BILLING)
    add(bus, "sql://elsewhere/Billing")
    with pytest.raises(SubscriberError, match=r"alias 'elsewhere' is not known.*nginn unsubscribe"):
        subscriptions.publish(ORDERS, PLACED, placed(1))
    assert bus.rows(BILLING) == []


def test_a_published_message_can_answer_another(bus, subscriptions):
    add(bus, BILLING)
    message = new_message('{"n":1}', message_type=PLACED, headers={wire.NGINN_CORRELATION_ID: "c-1"})
    subscriptions.publish(ORDERS, PLACED, message)
    assert bus.rows(BILLING)[0]["correlation_id"] == "c-1"


@pytest.mark.parametrize(
    ("publisher", "subscriber", "message_type", "problem"),
    [
        ("orders", BILLING, TYPE, "publisher 'orders' is no endpoint"),
        (ORDERS, "http://server/", TYPE, "subscriber 'http://server/' is no endpoint"),
        (ORDERS, BILLING, "", "message type has 0 characters"),
        (ORDERS, BILLING, "t" * 301, "message type has 301 characters"),
        (f"sql://db/{'a' * 200}", BILLING, TYPE, "publisher has 209 characters"),
    ],
)
def test_an_invalid_subscription_is_refused(bus, subscriptions, publisher, subscriber, message_type, problem):
    for act in (subscriptions.subscribe, subscriptions.unsubscribe):
        with pytest.raises(ConfigurationError, match=problem):
            act(publisher, subscriber, message_type)
    assert (bus.rows(), bus.subscriptions()) == ([], [])


def test_hostile_text_in_a_subscription_is_text(bus, subscriptions):
    hostile = "Shop.X'); DELETE FROM Orders;--"
    add(bus, BILLING)
    with bus.transport.database.transaction() as transaction:
        subscriptions.add(transaction, ORDERS, SENDER, hostile, None)
    assert subscriptions.subscribers(ORDERS, hostile) == (SENDER,)
    assert subscriptions.unsubscribe(ORDERS, SENDER, hostile)
    assert [one.subscriber for one in subscriptions.all()] == [BILLING]
