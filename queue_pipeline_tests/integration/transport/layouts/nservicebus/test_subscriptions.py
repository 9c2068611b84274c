"""Who gets which events, on every database: subscribing, publishing, and what goes wrong in between."""

import shlex
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from queue_pipeline.errors import (
    AddressError,
    ConfigurationError,
    InvalidMessageError,
    SubscriberError,
    TableNotFoundError,
)
from queue_pipeline.transport import Event, QueueAddress, new_message
from queue_pipeline.transport.layouts.nservicebus.subscriptions import KnownSubscribers, Subscription, Subscriptions
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.command_line import CommandLine

ACCEPTED = Event("Shop.OrderAccepted, Shop", ("Shop.IOrderEvent", "NServiceBus.IEvent"))


@pytest.fixture
def transport(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["billing", "shipping", "error"])
    return transport


def address(transport, queue):
    return transport.resolve(queue).canonical


def bodies(transport, queue):
    return [shown.body for shown in transport.show(queue, 100)]


def insert(backend, transport, queue_address, endpoint="foreign", topic="Shop.OrderAccepted"):
    """A row as another program wrote it."""
    table = transport.subscriptions.table.qualified
    names = "queueaddress, endpoint, topic" if backend.name == "postgresql" else "QueueAddress, Endpoint, Topic"
    row = (queue_address, endpoint, topic)
    backend.sql(transport, f"INSERT INTO {table} ({names}) VALUES (?, ?, ?)", row)


# --- the table ---------------------------------------------------------------------------------------------


def test_a_subscription_is_there_once_and_its_address_can_change(transport):
    subscriptions = transport.subscriptions
    assert subscriptions.subscribe("billing", "Shop.OrderAccepted, Shop, Version=1.0.0.0") is True
    assert subscriptions.subscribe("billing", "Shop.OrderAccepted") is False
    assert list(subscriptions.list()) == [
        Subscription("billing", "Shop.OrderAccepted", address(transport, "billing")),
    ]
    assert subscriptions.subscribe("billing", "Shop.OrderAccepted", "shipping") is True
    assert [one.queue for one in subscriptions.list()] == [address(transport, "shipping")]
    assert subscriptions.unsubscribe("billing", "Shop.OrderAccepted, Shop") is True
    assert subscriptions.unsubscribe("billing", "Shop.OrderAccepted") is False
    assert list(subscriptions.list()) == []


def test_subscriptions_are_listed_by_endpoint_and_found_by_topic(transport):
    for endpoint, topic in [("b", "Shop.Y"), ("a", "Shop.Y"), ("a", "Shop.X")]:
        transport.subscriptions.subscribe(endpoint, topic, "billing")
    listed = [(one.endpoint, one.topic) for one in transport.subscriptions.list()]
    assert listed == [("a", "Shop.X"), ("a", "Shop.Y"), ("b", "Shop.Y")]
    assert [one.endpoint for one in transport.subscriptions.list("Shop.Y, Shop")] == ["a", "b"]


def test_the_name_of_an_endpoint_is_no_address(transport, backend):
    if backend.name == "sqlite":
        pytest.skip("SQLite has no schemas that a dot could end")
    transport.subscriptions.subscribe("Shop.Sales", "Shop.X")
    (one,) = transport.subscriptions.list()
    assert one.queue == transport.resolve(QueueAddress("Shop.Sales")).canonical
    assert (one.endpoint, "Shop.Sales" in one.queue) == ("Shop.Sales", True)


def test_the_table_has_the_columns_of_the_reference(transport, backend):
    """What a .NET endpoint of the same database writes is understood here, and what is written here there."""
    insert(backend, transport, address(transport, "billing"))
    assert transport.publish(ACCEPTED, new_message("{}")) == 1
    names = "queueaddress, endpoint, topic" if backend.name == "postgresql" else "[QueueAddress], [Endpoint], [Topic]"
    rows = backend.sql(transport, f"SELECT {names} FROM {transport.subscriptions.table.qualified}")
    assert [tuple(row) for row in rows] == [(address(transport, "billing"), "foreign", "Shop.OrderAccepted")]
    with pytest.raises(Exception, match=r"(?i)unique|duplicate|primary"):
        insert(backend, transport, "another")


@pytest.mark.parametrize(
    ("endpoint", "topic", "queue", "complaint"),
    [
        ("x" * 201, "Shop.A", "billing", "the endpoint .* has 201 characters.*room for 200"),
        ("e", "x" * 201, "billing", "the topic .* has 201 characters"),
        ("e", "Shop.A", QueueAddress("x" * 201), "the address .* characters.*room for 200"),
        (" ", "Shop.A", "billing", "endpoint is empty"),
        ("a\nb", "Shop.A", "billing", "line end"),
        ("e", "", "billing", "no name of a type"),
    ],
)
def test_what_the_table_could_not_hold_is_refused_before_any_statement(backend, endpoint, topic, queue, complaint):
    nothing_installed = backend.transport()
    with pytest.raises(ConfigurationError, match=complaint):
        nothing_installed.subscriptions.subscribe(endpoint, topic, queue)


def test_many_subscribers_at_once_all_succeed_and_each_is_stored_once(transport):
    names = [f"endpoint {n % 3}" for n in range(12)]
    with ThreadPoolExecutor(4) as threads:
        changed = list(threads.map(lambda name: transport.subscriptions.subscribe(name, "Shop.A", "billing"), names))
    assert sum(changed) == 3
    assert [one.endpoint for one in transport.subscriptions.list()] == sorted(set(names))


def test_without_the_table_sending_works_and_publishing_says_how_to_create_it(transport, backend):
    backend.sql(transport, f"DROP TABLE {transport.subscriptions.table.qualified}")
    transport.send("orders", new_message("{}"))
    for act in (
        lambda: transport.publish("Shop.A", new_message("{}")),
        lambda: transport.subscriptions.subscribe("billing", "Shop.A"),
        lambda: transport.subscriptions.unsubscribe("billing", "Shop.A"),
        lambda: transport.subscriptions.list(),
    ):
        with pytest.raises(TableNotFoundError, match=r"table of subscriptions.*: queue-pipeline install QUEUE"):
            act()
    transport.install("orders", plain_queues=[])
    assert transport.publish("Shop.A", new_message("{}")) == 0


# --- publishing --------------------------------------------------------------------------------------------


def test_a_published_event_reaches_its_subscriber(transport):
    """XT-04: with its types, its intent and its body; the subscriber knows the address that it came to."""
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    sent = new_message('{"n": 1}', endpoint="shop")
    assert transport.publish(ACCEPTED, sent) == 1
    (shown,) = transport.show("billing")
    assert shown.body == b'{"n": 1}'
    assert shown.headers[wire.MESSAGE_INTENT] == "Publish"
    assert shown.headers[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.OrderAccepted, Shop;Shop.IOrderEvent"
    assert shown.headers[wire.MESSAGE_ID] == sent.headers[wire.MESSAGE_ID]
    with transport.receive("billing") as batch:
        assert [message.message_id for message in batch] == [sent.headers[wire.MESSAGE_ID]]
    assert bodies(transport, "shipping") == []


def test_publishing_without_subscribers_is_no_error(transport):
    assert transport.publish("Shop.Unheard", [new_message("1"), new_message("2")]) == 0


@pytest.mark.parametrize("topic", [*ACCEPTED.topics])
def test_subscribers_of_every_type_above_an_event_get_it(transport, topic):
    transport.subscriptions.subscribe("billing", topic)
    transport.subscriptions.subscribe("shipping", "Shop.SomethingElse")
    assert transport.publish(ACCEPTED, new_message("{}")) == 1
    assert (len(bodies(transport, "billing")), bodies(transport, "shipping")) == (1, [])


def test_an_interface_is_no_object(transport):
    transport.subscriptions.subscribe("billing", "System.Object")
    assert transport.publish(Event("Shop.IAccepted", interface=True), new_message("{}")) == 0
    assert transport.publish("Shop.Accepted", new_message("{}")) == 1


def test_a_subscriber_with_several_subscriptions_gets_one_copy(transport, backend):
    for topic in ACCEPTED.topics:
        transport.subscriptions.subscribe("billing", topic)
    transport.subscriptions.subscribe("the same queue", "Shop.OrderAccepted", "billing")
    insert(backend, transport, "billing", "written another way")
    transport.subscriptions.subscribe("shipping", "Shop.OrderAccepted")
    assert transport.publish(ACCEPTED, [new_message("1"), new_message("2")]) == 4
    assert bodies(transport, "billing") == bodies(transport, "shipping") == [b"1", b"2"]
    ids = [[shown.headers[wire.MESSAGE_ID] for shown in transport.show(queue)] for queue in ("billing", "shipping")]
    assert ids[0] == ids[1]
    rows = [shown.id for queue in ("billing", "shipping") for shown in transport.show(queue)]
    assert len(set(rows)) == 4


def test_events_in_the_callers_transaction_appear_only_if_it_commits(transport):
    """AS-15: outside a receive."""
    transport.subscriptions.subscribe("billing", "Shop.A")
    with pytest.raises(ZeroDivisionError), transport.transaction() as connection:
        assert transport.publish("Shop.A", new_message("rolled back"), connection) == 1
        raise ZeroDivisionError
    with transport.transaction() as connection:
        transport.publish("Shop.A", new_message("committed"), connection)
    assert bodies(transport, "billing") == [b"committed"]


def test_events_in_the_callers_transaction_are_independent_of_the_receive(transport, backend):
    """AS-16: in a receive that fails, what the caller itself committed is published and what it undid is not."""
    if backend.name == "sqlite":
        pytest.skip("needs a second writer beside the open receive; SQLite has one")
    transport.subscriptions.subscribe("billing", "Shop.A")
    transport.send("orders", new_message("{}"))
    with pytest.raises(ZeroDivisionError), transport.receive("orders"):
        with transport.transaction() as mine:
            transport.publish("Shop.A", new_message("mine"), mine)
        with pytest.raises(KeyError), transport.transaction() as undone:
            transport.publish("Shop.A", new_message("undone"), undone)
            raise KeyError
        raise ZeroDivisionError
    assert bodies(transport, "billing") == [b"mine"]
    assert transport.peek("orders") == 1


def test_an_event_cannot_be_delayed(transport):
    transport.subscriptions.subscribe("billing", "Shop.A")
    with pytest.raises(InvalidMessageError, match=r"event Shop\.A: an event cannot be delayed"):
        transport.publish("Shop.A", new_message("{}", delay=timedelta(seconds=1)))
    assert bodies(transport, "billing") == []


def test_subscribers_are_cached_for_a_while_and_refreshed_at_once_where_they_change(transport, backend):
    now = [0.0]
    remembering = Subscriptions(transport.database, transport.book)
    remembering._cache = KnownSubscribers(clock=lambda: now[0])
    topics = ("Shop.A", "System.Object")
    assert remembering.subscribers(topics) == ()
    backend.transport().subscriptions.subscribe("billing", "Shop.A")
    now[0] = 4.9
    assert remembering.subscribers(topics) == ()
    now[0] = 5.0
    assert remembering.subscribers(topics) == (address(transport, "billing"),)
    remembering.subscribe("shipping", "System.Object")
    assert set(remembering.subscribers(topics)) == {address(transport, "billing"), address(transport, "shipping")}
    remembering.unsubscribe("billing", "Shop.A")
    assert remembering.subscribers(topics) == (address(transport, "shipping"),)


def test_a_lookup_that_failed_is_not_remembered(transport, backend):
    """UT-40: on a real database; the next publisher looks again."""
    table = transport.subscriptions.table.qualified
    backend.sql(transport, f"DROP TABLE {table}")
    with pytest.raises(TableNotFoundError):
        transport.publish("Shop.A", new_message("{}"))
    transport.install("orders", plain_queues=[])
    backend.transport().subscriptions.subscribe("billing", "Shop.A")
    assert transport.publish("Shop.A", new_message("{}")) == 1


# --- subscribers that cannot be sent to --------------------------------------------------------------------


def test_a_subscriber_without_a_queue_is_named_with_the_remedy_and_nothing_is_sent(transport):
    transport.subscriptions.subscribe("billing", "Shop.OrderAccepted")
    transport.subscriptions.subscribe("zombie endpoint", "Shop.IOrderEvent", QueueAddress("not there"))
    with pytest.raises(SubscriberError) as caught:
        transport.publish(ACCEPTED, new_message("{}"))
    reported = str(caught.value)
    assert f"subscriber {address(transport, QueueAddress('not there'))} (endpoint zombie endpoint)" in reported
    assert "queue-pipeline unsubscribe 'zombie endpoint' Shop.IOrderEvent" in reported
    assert bodies(transport, "billing") == []
    assert transport.subscriptions.unsubscribe("zombie endpoint", "Shop.IOrderEvent")
    assert transport.publish(ACCEPTED, new_message("{}")) == 1


def test_one_who_unsubscribed_elsewhere_and_went_is_not_asked_for_twice(transport, backend, monkeypatch):
    monkeypatch.setattr(transport.subscriptions._cache, "_clock", lambda: 0.0)
    transport.install(plain_queues=["leaving"])
    transport.subscriptions.subscribe("leaving", "Shop.A")
    assert transport.publish("Shop.A", new_message("{}")) == 1
    backend.transport().subscriptions.unsubscribe("leaving", "Shop.A")
    backend.sql(transport, f"DROP TABLE {transport.resolve('leaving').qualified}")
    with pytest.raises(SubscriberError, match="has unsubscribed meanwhile; nothing was published, try again"):
        transport.publish("Shop.A", new_message("{}"))
    assert transport.publish("Shop.A", new_message("{}")) == 0


@pytest.mark.parametrize("hostile", ["error]; DROP TABLE error --", 'error"; DROP TABLE error --', "error'; DROP --"])
def test_an_address_is_a_name_and_nothing_else(transport, backend, hostile):
    if backend.is_babelfish and "]" in hostile:
        pytest.skip("needs ]] in names, which Babelfish cannot parse")
    transport.send("error", new_message("{}"))
    insert(backend, transport, hostile, "mallory")
    with pytest.raises(SubscriberError, match="queue-pipeline unsubscribe mallory"):
        transport.publish(ACCEPTED, new_message("{}"))
    assert transport.peek("error") == 1


def test_an_invalid_address_is_named_with_the_remedy(transport, backend):
    insert(backend, transport, "a\nb", "mallory")
    with pytest.raises(SubscriberError, match=r"endpoint mallory\).*queue-pipeline unsubscribe mallory"):
        transport.publish(ACCEPTED, new_message("{}"))
    with pytest.raises(AddressError):
        transport.subscriptions.subscribe("e", "Shop.A", "a\nb")


# --- the command line --------------------------------------------------------------------------------------


@pytest.fixture
def cli(backend):
    cli = CommandLine(backend)
    assert cli("install", "orders", "billing").code == 0
    return cli


def test_an_operator_subscribes_looks_publishes_and_unsubscribes(cli, backend):
    there = backend.transport().resolve("billing").canonical
    assert cli("subscriptions").out == "there are no subscribers\n"
    assert cli("subscribe", "billing", "Shop.A, Shop").out == f"subscribed billing to Shop.A, at {there}\n"
    assert cli("subscribe", "billing", "Shop.A").out == f"billing is subscribed to Shop.A already, at {there}\n"
    listed = cli("subscriptions").out
    assert all(word in listed for word in ("billing", "Shop.A", there))
    assert cli("subscriptions", "--topic", "Shop.B").out == "there are no subscribers to Shop.B\n"
    published = cli("publish", "Shop.A", "--body", '{"n": 1}', "--parent", "Shop.I", "--header", "tenant=north")
    assert published.out.startswith("published Shop.A as message ") and published.out.endswith(" to 1 subscriber\n")
    (message,) = cli("receive", "billing", "--json").json["messages"]
    assert (message["body"], message["headers"]["tenant"]) == ('{"n": 1}', "north")
    assert message["headers"][wire.ENCLOSED_MESSAGE_TYPES] == "Shop.A;Shop.I"
    assert cli("unsubscribe", "billing", "Shop.A").out == "unsubscribed billing from Shop.A\n"
    late = cli("unsubscribe", "billing", "Shop.A")
    assert (late.code, late.out) == (0, "billing is not subscribed to Shop.A\n")


def test_scripts_get_json(cli, backend):
    there = backend.transport().resolve("orders").canonical
    done = {"endpoint": "sales", "topic": "Shop.A", "changed": True}
    assert cli("subscribe", "sales", "Shop.A", "--queue", "orders", "--json").json == {**done, "queue": there}
    assert cli("subscriptions", "--json").json == {
        "subscriptions": [{"endpoint": "sales", "topic": "Shop.A", "queue": there}]
    }
    published = cli("publish", "Shop.A", "--body-file", "-", "--json", stdin=b"\xff").json
    assert (published["event"], published["copies"]) == ("Shop.A", 1)
    assert published["message_id"]
    assert cli("unsubscribe", "sales", "Shop.A", "--json").json == done
    assert cli("publish", "Shop.A", "--body", "", "--json").json["copies"] == 0


def test_an_endpoint_without_a_queue_is_not_subscribed(cli):
    refused = cli("subscribe", "biling", "Shop.A")
    assert refused.code == 3
    assert "queue-pipeline install" in refused.error
    assert cli("subscriptions", "--json").json == {"subscriptions": []}


def test_the_remedy_that_an_error_names_works_unchanged(cli, backend):
    transport = backend.transport()
    transport.subscriptions.subscribe("it's gone", "Shop.Box`1[[Shop.A, Shop]]", QueueAddress("not there"))
    failed = cli("publish", "Shop.Box`1[[Shop.A, Shop]]", "--body", "{}")
    assert failed.code == 3
    step = failed.error.partition("if it is gone for good: queue-pipeline ")[2]
    assert cli(*shlex.split(step)).code == 0
    assert cli("publish", "Shop.Box`1[[Shop.A, Shop]]", "--body", "{}").code == 0


def test_what_cannot_be_published_is_refused(cli):
    assert cli("publish", "Shop.A").code == 2
    assert "201 characters" in cli("publish", "x" * 201, "--body", "{}").error


def test_the_table_can_be_named_by_option_and_by_environment(backend, monkeypatch):
    cli, table = CommandLine(backend), {"postgresql": '"Shared.Routing"'}.get(backend.name, "Shared.Routing")
    named = ("--subscriptions-table", table)
    assert cli(*named, "install", "billing").code == 0
    assert cli(*named, "subscribe", "billing", "Shop.A").code == 0
    assert cli("subscriptions").code == 3
    monkeypatch.setenv("QUEUE_PIPELINE_SUBSCRIPTIONS_TABLE", table)
    assert [one["endpoint"] for one in cli("subscriptions", "--json").json["subscriptions"]] == ["billing"]
    script = cli("script", "billing", *(["--dialect", "sqlserver"] if backend.name == "sqlserver" else []))
    assert "Shared.Routing" in script.out and "SubscriptionRouting" not in script.out
