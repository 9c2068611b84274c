"""Outcomes as Spark returns them, made by hand, and the messages that become of them."""

import json
from datetime import UTC, datetime

import pytest

from queue_pipeline.processing.declaration.pipeline import Output
from queue_pipeline.processing.results.envelopes import Publication, Sending, envelopes
from queue_pipeline.processing.results.result_ids import result_ids
from queue_pipeline.processing.results.sorting import sort_outcomes
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.outcome_tables import fail, message, publish, related, reply, send

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, UTC)


def sending(**options):
    known = {"billing": "billing@[dbo]@[shop]", "shipping": "shipping@[dbo]@[shop]"}
    return Sending("orders", "Shop.Orders", "orders@[dbo]@[shop]", known, now=NOW, **options)


def output(queue, **options):
    return {"outputs": {queue: Output(queue=queue, **options)}}


def sent(*rows, **options):
    common = sending(**options)
    return envelopes(sort_outcomes(related(*rows), common.typed).sends, common)


def headers_of(*rows, **options):
    (ready,) = sent(*rows, **options)
    return [json.loads(text) for text in ready.headers]


def test_a_send_carries_the_standard_headers():
    (headers,) = headers_of(
        (message(), send()), **output("billing", message_type="Shop.Invoice", content_type="text/xml")
    )
    assert headers == {
        wire.MESSAGE_ID: result_ids(["row1"], "orders", "billing", [0])[0],
        wire.CORRELATION_ID: "correlation1",
        wire.CONVERSATION_ID: "conversation1",
        wire.RELATED_TO: "message1",
        wire.ENCLOSED_MESSAGE_TYPES: "Shop.Invoice",
        wire.MESSAGE_INTENT: "Send",
        wire.CONTENT_TYPE: "text/xml",
        wire.TIME_SENT: "2026-03-04 05:06:07:000089 Z",
        wire.ORIGINATING_ENDPOINT: "Shop.Orders",
        wire.ORIGINATING_MACHINE: wire.machine_name(),
        wire.ORIGINATING_HOST_ID: wire.host_id(),
        wire.REPLY_TO_ADDRESS: "orders@[dbo]@[shop]",
    }


def test_a_message_without_correlation_or_conversation_starts_them():
    (headers,) = headers_of((message(correlation_id=None, conversation_id=None), send()))
    assert (headers[wire.CORRELATION_ID], headers[wire.CONVERSATION_ID]) == ("message1", "message1")


def test_the_type_of_a_row_wins_over_that_of_its_queue_and_neither_means_none():
    rows = [(message(1), send(message_type="Own.Type")), (message(2), send())]
    types = [headers.get(wire.ENCLOSED_MESSAGE_TYPES) for row in rows for headers in headers_of(row)]
    assert types == ["Own.Type", None]
    declared = headers_of(*rows, **output("billing", message_type="Shop.Invoice"))
    assert [headers[wire.ENCLOSED_MESSAGE_TYPES] for headers in declared] == ["Own.Type", "Shop.Invoice"]


def test_bodies_are_grouped_by_queue():
    ready = sent(
        (message(1), send("billing", body=b"1"), send("shipping", body=b"")),
        (message(2), send("billing", body=b"2")),
    )
    assert {each.destination: (list(each.bodies), each.delayed) for each in ready} == {
        "billing": ([b"1", b"2"], False),
        "shipping": ([b""], False),
    }


def test_a_reply_goes_to_the_address_of_the_message_and_says_that_it_is_one():
    (ready,) = sent((message(), reply()))
    assert ready.destination == "shop@[dbo]"
    headers = json.loads(ready.headers[0])
    assert (headers[wire.MESSAGE_INTENT], headers[wire.CORRELATION_ID]) == ("Reply", "correlation1")
    assert headers[wire.CONTENT_TYPE] == "application/json"


def test_a_reply_that_is_a_number_is_a_control_message_without_body_and_type():
    (ready,) = sent(
        (message(1), reply(body=None, code=-3)),
        (message(2), reply(body=b"{}", message_type="Shop.Answer")),
        **output("shop@[dbo]", message_type="Shop.Declared"),
    )
    number, answer = (json.loads(text) for text in ready.headers)
    assert number[wire.CONTROL_MESSAGE] == "True"
    assert number[wire.RETURN_CODE] == "-3"
    assert (number[wire.MESSAGE_INTENT], number[wire.CORRELATION_ID]) == ("Reply", "correlation1")
    assert (number[wire.RELATED_TO], number[wire.CONVERSATION_ID]) == ("message1", "conversation1")
    assert not {wire.ENCLOSED_MESSAGE_TYPES, wire.CONTENT_TYPE} & set(number)
    assert not {wire.CONTROL_MESSAGE, wire.RETURN_CODE} & set(answer)
    assert (answer[wire.ENCLOSED_MESSAGE_TYPES], answer[wire.CONTENT_TYPE]) == ("Shop.Answer", "application/json")
    assert list(ready.bodies) == [b"", b"{}"]


def test_a_reply_to_a_saga_names_it_and_a_send_does_not():
    asked = {"saga_id": "saga1", "saga_type": "Shop.Saga, Shop"}
    ready = sent((message(1, **asked), reply(), send()), (message(2), reply()))
    by_queue = {each.destination: [json.loads(text) for text in each.headers] for each in ready}
    first, second = by_queue["shop@[dbo]"]
    assert (first[wire.SAGA_ID], first[wire.SAGA_TYPE]) == ("saga1", "Shop.Saga, Shop")
    for other in (second, *by_queue["billing"]):
        assert not {wire.SAGA_ID, wire.SAGA_TYPE, wire.ORIGINATING_SAGA_ID} & set(other)


def test_delayed_messages_carry_their_time_and_destination_and_are_kept_separate():
    ready = sent((message(1), send(delay=90_000)), (message(2), send()), (message(3), send(delay=0)))
    later = next(each for each in ready if each.delayed)
    assert (later.destination, list(later.milliseconds)) == ("billing", [90_000, 0])
    headers = [json.loads(text) for text in later.headers]
    assert [each[wire.DELIVER_AT] for each in headers] == [
        "2026-03-04 05:07:37:000089 Z",
        "2026-03-04 05:06:07:000089 Z",
    ]
    assert {each[wire.FORWARD_DESTINATION] for each in headers} == {"billing@[dbo]@[shop]"}
    now = next(each for each in ready if not each.delayed)
    assert wire.DELIVER_AT not in json.loads(now.headers[0])


def test_a_message_now_and_one_later_for_the_same_queue_have_different_ids_in_any_order():
    ready = sent((message(), send(body=b"now"), send(body=b"later", delay=1_000)))
    ids = [identity for each in ready for identity in each.ids]
    assert len(ids) == len(set(ids)) == 2
    rows = [(message(), send(body=b"now")), (message(), send(body=b"later", delay=1_000))]
    one, other = sent(*rows), sent(*reversed(rows))
    assert len({identity for each in one for identity in each.ids}) == 2
    assert {each.delayed: list(each.ids) for each in one} == {each.delayed: list(each.ids) for each in other}


def test_a_time_to_live_is_that_of_the_row_or_of_the_queue():
    rows = [(message(1), send(time_to_live=1_500)), (message(2), send())]
    (ready,) = sent(*rows)
    assert list(ready.milliseconds) == [1_500, NEVER_EXPIRES]
    spans = [json.loads(text).get(wire.TIME_TO_BE_RECEIVED) for text in ready.headers]
    assert spans == ["00:00:01.5000000", None]
    (ready,) = sent(*rows, **output("billing", time_to_live=60))
    assert list(ready.milliseconds) == [1_500, 60_000]
    assert json.loads(ready.headers[1])[wire.TIME_TO_BE_RECEIVED] == "00:01:00"


def test_a_program_adds_headers_of_its_own():
    own = [("Shop.Tenant", 'north "1"'), ("Shop.Nothing", None)]
    first, second = headers_of((message(1), send(headers=own)), (message(2), send()))
    assert first["Shop.Tenant"] == 'north "1"'
    assert "Shop.Nothing" not in first
    assert "Shop.Tenant" not in second


@pytest.mark.parametrize("name", [wire.MESSAGE_ID, wire.TIME_SENT, "NServiceBus.Anything", "$.diagnostics.hostid"])
def test_a_program_cannot_change_the_headers_of_the_platform(name):
    (plain,) = headers_of((message(), send()))
    (changed,) = headers_of((message(), send(headers=[(name, "mine")])))
    assert changed == plain


def test_texts_of_incoming_messages_are_escaped():
    hard = 'a"b\\c/d\n😀'
    (headers,) = headers_of((message(conversation_id=hard, message_id=hard), send(message_type=hard)))
    assert (headers[wire.CONVERSATION_ID], headers[wire.RELATED_TO]) == (hard, hard)
    assert headers[wire.ENCLOSED_MESSAGE_TYPES] == hard


def test_no_outcomes_make_no_envelopes():
    found = sort_outcomes(related())
    assert (found.failures, found.tables) == ({}, [])
    assert envelopes(found.sends, sending()) == []


def test_headers_are_written_as_the_sender_writes_them():
    (ready,) = sent((message(), send(headers=[("a/b", "c/d"), ("é", "😀")])))
    assert wire.encode(json.loads(ready.headers[0])) == ready.headers[0]


def test_an_event_becomes_the_same_message_for_each_subscriber():
    published = {"Shop.A": Publication("Shop.A;Shop.I", ["one", "two"]), "Shop.B": Publication("Shop.B", [])}
    rows = [(message(1), publish(body=b"1")), (message(2), publish(body=b"2"), publish("Shop.B"))]
    first, second = sent(*rows, events=published)
    assert (first.destination, second.destination) == ("one", "two")
    assert (first.ids, first.headers, first.bodies) == (second.ids, second.headers, second.bodies)
    assert first.ids == result_ids(["row1", "row2"], "orders", "Shop.A", [0, 0])
    headers = json.loads(first.headers[0])
    assert (headers[wire.MESSAGE_INTENT], headers[wire.ENCLOSED_MESSAGE_TYPES]) == ("Publish", "Shop.A;Shop.I")


def test_an_nginn_subscriber_learns_that_an_nginn_publisher_sent_an_event():
    """It needs a sender that it can read; one of NServiceBus's could not answer there."""
    known = {"Shop.A": Publication("Shop.A", ["one", "sql://db/Two", "sql://db/Three"])}
    own = Sending("orders", "Orders", "sql://db/Orders", {}, now=NOW, events=known)
    ready = envelopes(sort_outcomes(related((message(), publish()))).sends, own)
    assert {each.destination: json.loads(each.headers[0]).get(wire.REPLY_TO_ADDRESS) for each in ready} == {
        "one": None,
        "sql://db/Two": "sql://db/Orders",
        "sql://db/Three": "sql://db/Orders",
    }
    assert len({each.ids[0] for each in ready}) == 1


def test_a_queue_and_an_event_of_the_same_name_are_different_destinations():
    known = {"billing": Publication("billing", ["one"])}
    ready = sent((message(), send("billing"), publish("billing")), events=known)
    intents = {each.destination: json.loads(each.headers[0])[wire.MESSAGE_INTENT] for each in ready}
    assert intents == {"billing": "Send", "one": "Publish"}


def test_an_event_of_a_message_that_fails_is_not_published():
    assert sent((message(), publish(), fail("no")), events={"Shop.A": Publication("Shop.A", ["one"])}) == []


def test_messages_are_sent_in_the_order_of_what_they_came_of():
    numbers = [4, 2, 3, 1]
    (ready,) = sent(*((message(n), send(body=str(n).encode())) for n in numbers))
    assert ready.bodies == [b"1", b"2", b"3", b"4"]
    assert [json.loads(text)[wire.RELATED_TO] for text in ready.headers] == [f"message{n}" for n in range(1, 5)]


def test_several_outcomes_for_one_queue_are_sent_by_message_and_have_ids_of_their_own():
    rows = [(message(n), send(body=b"%d a" % n), send(body=b"%d b" % n)) for n in (2, 1)]
    (ready,) = sent(*rows)
    assert ready.bodies == [b"1 a", b"1 b", b"2 a", b"2 b"]
    assert ready.ids == result_ids(["row1", "row1", "row2", "row2"], "orders", "billing", [0, 1, 0, 1])
    assert sent(*reversed(rows))[0].ids == ready.ids


def test_the_id_of_an_outcome_is_that_of_its_place_whether_the_others_hold_or_not():
    (both,) = sent((message(1), send(), send()))
    (second,) = sent((message(1), None, send()))
    (among,) = sent((message(1), None, send()), (message(2), send(), send()))
    assert second.ids == both.ids[1:] == among.ids[:1]


def test_an_ordinal_of_the_transforms_own_takes_the_place_of_the_position():
    (ready,) = sent((message(1), send(ordinal=7)), (message(1), send(ordinal=9)))
    assert ready.ids == result_ids(["row1", "row1"], "orders", "billing", [7, 9])


def test_rows_of_one_message_without_an_ordinal_are_numbered_by_their_bodies():
    bodies = [b"c", b"a", b"b"]
    (one,) = sent(*((message(1), send(body=body)) for body in bodies))
    (other,) = sent(*((message(1), send(body=body)) for body in sorted(bodies)))
    assert dict(zip(one.bodies, one.ids, strict=True)) == dict(zip(other.bodies, other.ids, strict=True))
    assert len(set(one.ids)) == 3


def test_outcomes_with_different_fields_for_one_queue_become_one_set_of_messages():
    (ready,) = sent((message(1), send(message_type="Own.Type"), send(headers=[("Shop.Tenant", "north")])))
    first, second = (json.loads(text) for text in ready.headers)
    assert (first[wire.ENCLOSED_MESSAGE_TYPES], second["Shop.Tenant"]) == ("Own.Type", "north")
    assert not {wire.ENCLOSED_MESSAGE_TYPES} & set(second)


def test_the_id_of_a_result_does_not_depend_on_other_messages_of_the_batch():
    lonely = (message(2), None, send())
    (alone,) = sent(lonely)
    (among,) = sent((message(1), send(body=b"a")), (message(1), send(body=b"b")), lonely)
    assert alone.ids == among.ids[2:]
