"""Event types: the topics that a publisher has to look up, and the types that a message lists."""

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.messages.event import Event, event_of, full_name

BOX = "Shop.Box`1[[Shop.Order, Shop, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null]]"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Shop.OrderAccepted", "Shop.OrderAccepted"),
        (" Shop.OrderAccepted , Shop", "Shop.OrderAccepted"),
        ("Shop.OrderAccepted, Shop, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null", "Shop.OrderAccepted"),
        ("Shop.Orders+Accepted, Shop", "Shop.Orders+Accepted"),
        (BOX, BOX),
        (f"{BOX}, Shop, Version=1.0.0.0", BOX),
        (r"Shop.Odd\,Name, Shop", r"Shop.Odd\,Name"),
        ("Größe", "Größe"),
        ("x" * 200, "x" * 200),
    ],
)
def test_a_topic_is_the_full_name_without_the_assembly(written, name):
    assert full_name(written) == name


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("", "no name of a type"),
        (" , Shop", "no name of a type"),
        ("Shop.Box`1[[Shop.Order, Shop]", "no name of a type"),
        ("Shop.A;Shop.B", "a character"),
        ("Shop.A\nDROP", "a character"),
        ("Shop.\0", "a character"),
        ("x" * 201, "201 characters.*room for 200"),
        ("😀" * 101, "202 characters"),
    ],
)
def test_what_is_no_type_or_too_long_for_the_table_is_refused(written, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        full_name(written)
    with pytest.raises(ConfigurationError, match=complaint):
        Event(written)
    with pytest.raises(ConfigurationError, match=complaint):
        Event("Shop.Good", parents=[written])


def test_the_topics_of_a_class_are_all_above_it_up_to_the_root():
    event = Event("Shop.OrderAccepted, Shop", ("Shop.OrderEvent, Shop", "Shop.IOrderEvent"))
    assert event.topics == ("Shop.OrderAccepted", "Shop.OrderEvent", "Shop.IOrderEvent", "System.Object")
    assert event.name == "Shop.OrderAccepted"


def test_an_interface_descends_from_no_class():
    assert Event("Shop.IAccepted", ("Shop.IOrderEvent",), interface=True).topics == (
        "Shop.IAccepted",
        "Shop.IOrderEvent",
    )


def test_a_root_that_was_declared_is_not_duplicated():
    assert Event("Shop.A", ("System.Object",)).topics == ("Shop.A", "System.Object")


def test_a_message_lists_its_types_as_they_were_written_but_not_those_that_only_mark():
    event = Event("Shop.A, Shop", ("Shop.B", "NServiceBus.IEvent, NServiceBus.Core", "System.Object"))
    assert event.enclosed_types == "Shop.A, Shop;Shop.B"
    assert "NServiceBus.IEvent" in event.topics


def test_a_name_alone_is_an_event_without_parents():
    assert event_of("Shop.A") == Event("Shop.A")
    assert event_of(known := Event("Shop.A", ("Shop.B",))) is known


def test_a_type_that_is_named_twice_is_refused():
    with pytest.raises(ConfigurationError, match=r"event 'Shop\.A': Shop\.A is named more than once"):
        Event("Shop.A", ("Shop.A, Shop",))


def test_an_unknown_field_is_refused_by_name():
    with pytest.raises(ConfigurationError, match=r"event 'Shop\.A'"):
        Event("Shop.A", parent="Shop.B")
