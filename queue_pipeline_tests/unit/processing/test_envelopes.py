"""Outcomes as Spark returns them, made by hand, and the messages that become of them."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from queue_pipeline.processing.envelopes import (
    NO_REPLY_ADDRESS,
    REFUSED,
    Publication,
    Sending,
    _in_order,
    envelopes,
    sort_outcomes,
)
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.executors.outcome_writer import outcome_messages, plain_sending
from queue_pipeline.processing.origins import flat
from queue_pipeline.processing.result_ids import result_ids
from queue_pipeline.transport import Claim
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.dialect import NEVER_EXPIRES

TEXT = pa.string()
ORIGIN = pa.struct(
    [
        ("row_version", pa.int64()),
        ("id", TEXT),
        ("message_id", TEXT),
        ("correlation_id", TEXT),
        ("conversation_id", TEXT),
        ("reply_to", TEXT),
        ("saga_id", TEXT),
        ("saga_type", TEXT),
    ]
)
OUTCOME = pa.struct(
    [
        ("destination", TEXT),
        ("reply", pa.bool_()),
        ("body", pa.binary()),
        ("message_type", TEXT),
        ("headers", pa.map_(TEXT, TEXT)),
        ("delay", pa.int64()),
        ("time_to_live", pa.int64()),
        ("ordinal", pa.int32()),
        ("error", TEXT),
        ("error_type", TEXT),
        ("code", pa.int32()),
        ("event", TEXT),
    ]
)
NOW = datetime(2026, 3, 4, 5, 6, 7, 89, UTC)


def message(number=1, **fields):
    return {
        "row_version": number,
        "id": f"row{number}",
        "message_id": f"message{number}",
        "correlation_id": f"correlation{number}",
        "conversation_id": f"conversation{number}",
        "reply_to": "shop@[dbo]",
        **fields,
    }


def outcome(destination="billing", **fields):
    return {"destination": destination, "reply": False, "body": b"{}", "ordinal": 0, **fields}


def reply(**fields):
    return outcome(None, reply=True, **fields)


def outcomes(*pairs):
    origins, results = zip(*pairs, strict=True) if pairs else ((), ())
    return flat(rows_of(origins, results))


def rows_of(origins, results):
    return pa.table({"origin": pa.array(origins, ORIGIN), "outcome": pa.array(results, OUTCOME)})


def sending(**options):
    known = {"billing": "billing@[dbo]@[shop]", "shipping": "shipping@[dbo]@[shop]"}
    return Sending("orders", "Shop.Orders", "orders@[dbo]@[shop]", known, now=NOW, **options)


def sent(*pairs, **options):
    return envelopes(sort_outcomes(outcomes(*pairs)).sends, sending(**options))


def headers_of(*pairs, **options):
    (ready,) = sent(*pairs, **options)
    return [json.loads(text) for text in ready.headers]


def test_a_send_carries_the_standard_headers():
    (headers,) = headers_of(
        (message(), outcome()), message_types={"billing": "Shop.Invoice"}, content_types={"billing": "text/xml"}
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
    (headers,) = headers_of((message(correlation_id=None, conversation_id=None), outcome()))
    assert (headers[wire.CORRELATION_ID], headers[wire.CONVERSATION_ID]) == ("message1", "message1")


def test_the_type_of_a_row_wins_over_that_of_its_queue_and_neither_means_none():
    pairs = [(message(1), outcome(message_type="Own.Type")), (message(2), outcome())]
    types = [headers.get(wire.ENCLOSED_MESSAGE_TYPES) for headers in headers_of(*pairs)]
    assert types == ["Own.Type", None]
    declared = headers_of(*pairs, message_types={"billing": "Shop.Invoice"})
    assert [headers[wire.ENCLOSED_MESSAGE_TYPES] for headers in declared] == ["Own.Type", "Shop.Invoice"]


def test_bodies_and_queues_go_together():
    ready = sent(
        (message(1), outcome("billing", body=b"1")),
        (message(1), outcome("shipping", body=None, ordinal=1)),
        (message(2), outcome("billing", body=b"2")),
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
        message_types={"shop@[dbo]": "Shop.Declared"},
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
    ready = sent((message(1, **asked), reply()), (message(2), reply()), (message(1, **asked), outcome(ordinal=1)))
    by_queue = {each.destination: [json.loads(text) for text in each.headers] for each in ready}
    first, second = by_queue["shop@[dbo]"]
    assert (first[wire.SAGA_ID], first[wire.SAGA_TYPE]) == ("saga1", "Shop.Saga, Shop")
    for other in (second, *by_queue["billing"]):
        assert not {wire.SAGA_ID, wire.SAGA_TYPE, wire.ORIGINATING_SAGA_ID} & set(other)


def test_a_reply_to_a_message_without_address_is_a_failure_and_nothing_else_is_sent_for_it():
    found = sort_outcomes(
        outcomes((message(1, reply_to=None), reply()), (message(1), outcome()), (message(2), reply()))
    )
    assert [(one.id, one.error_type, one.error) for one in found.failures] == [("row1", REFUSED, NO_REPLY_ADDRESS)]
    assert found.sends["id"].to_pylist() == ["row2"]


def test_a_message_that_fails_is_not_half_processed():
    found = sort_outcomes(
        outcomes(
            (message(1), outcome("billing")),
            (message(2), outcome("billing")),
            (message(1), outcome(None, body=None, error="no such article", error_type="ArticleUnknown", ordinal=1)),
            (message(1), outcome(None, body=None, error="and another thing", ordinal=2)),
        )
    )
    assert [(one.id, one.error_type, one.error) for one in found.failures] == [
        ("row1", "ArticleUnknown", "no such article")
    ]
    assert found.sends["id"].to_pylist() == ["row2"]


def test_delayed_messages_say_when_and_where_to_and_are_kept_apart():
    ready = sent((message(1), outcome(delay=90_000)), (message(2), outcome()), (message(3), outcome(delay=0)))
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


def test_a_message_now_and_one_later_for_the_same_queue_have_different_ids():
    ready = sent((message(), outcome(body=b"now")), (message(), outcome(body=b"later", delay=1_000)))
    ids = [identity for each in ready for identity in each.ids]
    assert len(ids) == len(set(ids)) == 2
    again = sent((message(), outcome(body=b"later", delay=1_000)), (message(), outcome(body=b"now")))
    assert {each.delayed: list(each.ids) for each in ready} == {each.delayed: list(each.ids) for each in again}


def test_a_time_to_live_is_that_of_the_row_or_of_the_queue():
    pairs = [(message(1), outcome(time_to_live=1_500)), (message(2), outcome())]
    (ready,) = sent(*pairs)
    assert list(ready.milliseconds) == [1_500, NEVER_EXPIRES]
    spans = [json.loads(text).get(wire.TIME_TO_BE_RECEIVED) for text in ready.headers]
    assert spans == ["00:00:01.5000000", None]
    (ready,) = sent(*pairs, times_to_live={"billing": 60.0})
    assert list(ready.milliseconds) == [1_500, 60_000]
    assert json.loads(ready.headers[1])[wire.TIME_TO_BE_RECEIVED] == "00:01:00"


def test_a_program_adds_headers_of_its_own():
    own = [("Shop.Tenant", 'north "1"'), ("Shop.Nothing", None)]
    first, second = headers_of((message(1), outcome(headers=own)), (message(2), outcome()))
    assert first["Shop.Tenant"] == 'north "1"'
    assert "Shop.Nothing" not in first
    assert "Shop.Tenant" not in second


@pytest.mark.parametrize("name", [wire.MESSAGE_ID, wire.TIME_SENT, "NServiceBus.Anything", "$.diagnostics.hostid"])
def test_a_program_cannot_change_the_headers_of_the_platform(name):
    (plain,) = headers_of((message(), outcome()))
    (changed,) = headers_of((message(), outcome(headers=[(name, "mine")])))
    assert changed == plain


def test_texts_of_others_are_escaped():
    hard = 'a"b\\c/d\n😀'
    (headers,) = headers_of((message(conversation_id=hard, message_id=hard), outcome(message_type=hard)))
    assert (headers[wire.CONVERSATION_ID], headers[wire.RELATED_TO]) == (hard, hard)
    assert headers[wire.ENCLOSED_MESSAGE_TYPES] == hard


def test_nothing_becomes_nothing():
    found = sort_outcomes(outcomes())
    assert found.failures == ()
    assert envelopes(found.sends, sending()) == []


def test_headers_are_written_as_the_sender_writes_them():
    (ready,) = sent((message(), outcome(headers=[("a/b", "c/d"), ("é", "😀")])))
    assert wire.encode(json.loads(ready.headers[0])) == ready.headers[0]


def event(name="Shop.A", **fields):
    return outcome(None, event=name, **fields)


def test_an_event_becomes_the_same_message_for_each_subscriber():
    published = {"Shop.A": Publication("Shop.A;Shop.I", ["one", "two"]), "Shop.B": Publication("Shop.B", [])}
    pairs = [(message(1), event(body=b"1")), (message(2), event(body=b"2")), (message(2), event("Shop.B"))]
    first, second = sent(*pairs, events=published)
    assert (first.destination, second.destination) == ("one", "two")
    assert (first.ids, first.headers, first.bodies) == (second.ids, second.headers, second.bodies)
    assert first.ids == result_ids(["row1", "row2"], "orders", "Shop.A", [0, 0])
    headers = json.loads(first.headers[0])
    assert (headers[wire.MESSAGE_INTENT], headers[wire.ENCLOSED_MESSAGE_TYPES]) == ("Publish", "Shop.A;Shop.I")


def test_a_queue_and_an_event_of_one_name_are_two_things():
    known = {"billing": Publication("billing", ["one"])}
    ready = sent((message(), outcome("billing")), (message(), event("billing", ordinal=1)), events=known)
    intents = {each.destination: json.loads(each.headers[0])[wire.MESSAGE_INTENT] for each in ready}
    assert intents == {"billing": "Send", "one": "Publish"}


def test_an_event_of_a_message_that_fails_is_not_published():
    pairs = [(message(), event()), (message(), outcome(None, error="no", ordinal=1))]
    assert sent(*pairs, events={"Shop.A": Publication("Shop.A", ["one"])}) == []


def test_a_program_without_a_pipeline_has_declared_no_event_and_publishes_none():
    claim = Claim("c", "orders", "me", 1, 1, 0, 1)
    with pytest.raises(TransformError, match=r"publishes Shop\.A, which is not among .*\(nothing\)"):
        outcome_messages(rows_of([message()], [event()]), claim, plain_sending(claim), None)


# --- order -------------------------------------------------------------------------------------------------


def versions(*numbers):
    return pa.table({"row_version": pa.array(numbers, pa.int64()), "at": range(len(numbers))})


def test_results_come_in_the_order_of_their_messages_and_stay_as_they_were_within_one():
    rows = _in_order(versions(3, 1, 2, 1, 3, 1))
    assert rows["row_version"].to_pylist() == [1, 1, 1, 2, 3, 3]
    assert rows["at"].to_pylist() == [1, 3, 5, 2, 0, 4]


@pytest.mark.parametrize("numbers", [(), (7,), (1, 1, 2, 5)])
def test_results_that_are_in_order_stay_as_they_are(numbers):
    rows = versions(*numbers)
    assert _in_order(rows) is rows


def test_results_in_several_chunks_are_put_in_order():
    rows = pa.concat_tables([versions(5, 6), versions(1, 5)])
    assert _in_order(rows).to_pydict() == {"row_version": [1, 5, 5, 6], "at": [0, 0, 1, 1]}


def test_results_of_no_known_message_come_first():
    assert _in_order(versions(2, None, 1, None))["at"].to_pylist() == [1, 3, 2, 0]


def test_many_results_of_few_messages_keep_their_order_within_each():
    rows = _in_order(versions(*(number % 3 for number in range(1_000))))
    pairs = list(zip(rows["row_version"].to_pylist(), rows["at"].to_pylist(), strict=True))
    assert pairs == sorted(pairs)


def test_messages_are_sent_in_the_order_of_what_they_came_of():
    numbers = [4, 2, 3, 1]
    (ready,) = sent(*((message(n), outcome(body=str(n).encode())) for n in numbers))
    assert ready.bodies == [b"1", b"2", b"3", b"4"]
    assert [json.loads(text)[wire.RELATED_TO] for text in ready.headers] == [f"message{n}" for n in range(1, 5)]


def test_failures_are_told_in_the_order_of_their_messages():
    failures = sort_outcomes(outcomes(*((message(n), outcome(error=f"bad {n}")) for n in (3, 1, 2)))).failures
    assert [failed.error for failed in failures] == ["bad 1", "bad 2", "bad 3"]
