"""What a row becomes when it is read, and which rows are never handed over."""

import pytest

from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, PLACED, SENDER, body_of, changed, number_of


def receive_one(bus):
    with bus.transport.receive(ORDERS) as batch:
        (message,) = batch
    return message


def claim_one(bus):
    claim = bus.transport.claim(ORDERS, "me", 10)
    (message,), poison, _ = bus.transport.claims.messages(claim)
    assert poison == []
    return message


def read_one(bus):
    claim = bus.transport.claim(ORDERS, "me", 10)
    (batch,) = bus.transport.claim_reader.read(claim)
    return batch.to_pylist()[0]


@pytest.fixture(params=[receive_one, claim_one], ids=["received", "claimed"])
def take(request):
    """Both ways to a message."""
    return request.param


@pytest.fixture(params=["received", "claimed"])
def drain(request):
    """Take all that there is; returns the numbers of the messages that were handed over."""

    def received(bus):
        with bus.transport.receive(ORDERS) as batch:
            return [number_of(message.body) for message in batch]

    def claimed(bus):
        claim = bus.transport.claim(ORDERS, "me", 100)
        if claim is None:
            return []
        messages, _, _ = bus.transport.claims.messages(claim)
        bus.transport.claims.complete(Completion(claim, read=None))
        return [number_of(message.body) for message in messages]

    return received if request.param == "received" else claimed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (None, {}),
        ("tenant=7", {"tenant": "7"}),
        (" tenant = 7 | colour= red ", {"tenant": "7", "colour": "red"}),
        ("tenant=7|tenant=8", {"tenant": "8"}),
        ("|tenant=7||", {"tenant": "7"}),
        ("tenant=", {"tenant": ""}),
        ("_NG-Unheard-Of=x|_NG_MsgType=y", {"_NG-Unheard-Of": "x", "_NG_MsgType": "y"}),
    ],
)
def test_headers_are_parsed_as_the_reference_does(bus, take, text, expected):
    bus.insert(body_of(1), msg_headers=text)
    found = take(bus).headers
    assert {name: found.get(name) for name in expected} == expected


def test_the_columns_are_headers_of_the_message_that_is_processed(bus, take):
    row_id = bus.insert(body_of(1), correlation_id="c-1", label="A label", retry_count=2, unique_id="abc2")
    message = take(bus)
    assert message.row_version == row_id
    assert message.message_id == "abc2"
    expected = {
        wire.CORRELATION_ID: "c-1",
        wire.NGINN_CORRELATION_ID: "c-1",
        wire.NGINN_LABEL: "A label",
        wire.NGINN_RETRY_COUNT: "2",
        wire.RETRIES: "2",
        wire.NGINN_BUS_MESSAGE_ID: str(row_id),
        wire.REPLY_TO_ADDRESS: SENDER,
        wire.ORIGINATING_ENDPOINT: SENDER,
        wire.CONTENT_TYPE: "application/json",
    }
    assert {name: message.headers.get(name) for name in expected} == expected
    assert number_of(message.body) == 1


def test_a_message_that_was_never_tried_has_no_retries(bus, take):
    bus.insert(body_of(1))
    assert wire.RETRIES not in take(bus).headers


def test_the_time_of_sending_is_that_of_the_insert(bus, take):
    bus.insert(body_of(1))
    inserted = bus.rows()[0]["insert_time"]
    sent = wire.parse_timestamp(take(bus).headers[wire.TIME_SENT]).replace(tzinfo=None)
    away = inserted - sent
    whole_hours = round(away.total_seconds() / 900) * 900  # a server's local time, where the columns hold that
    assert abs(away.total_seconds() - whole_hours) < 0.1


def test_replies_go_where_the_sender_asked_for_them(bus, take):
    bus.insert(body_of(1), msg_headers="_NG-ReplyTo=sql://db/Replies")
    headers = take(bus).headers
    assert headers[wire.REPLY_TO_ADDRESS] == "sql://db/Replies"
    assert headers[wire.ORIGINATING_ENDPOINT] == SENDER


def test_a_type_on_the_list_is_translated(bus, take):
    bus.insert(body_of(1))
    assert take(bus).headers[wire.ENCLOSED_MESSAGE_TYPES] == "shop.order-placed"


@pytest.mark.parametrize(
    "name", [wire.ENCLOSED_MESSAGE_TYPES, wire.MESSAGE_ID, wire.RETRIES, wire.RETRY_ACKNOWLEDGEMENT_QUEUE, wire.HOST_ID]
)
def test_a_sender_cannot_set_headers_that_only_this_side_sets(bus, take, name):
    """A type by a header would go round the list, and an acknowledgement to any queue that it names."""
    bus.insert(
        '{"$type":"Shop.Unlisted, Shop"}', msg_headers=f"{name}=Shop.Admin|{wire.CONVERSATION_ID}=c1|tenant=north"
    )
    message = take(bus)
    assert message.headers.get(name) != "Shop.Admin"
    assert (message.headers[wire.CONVERSATION_ID], message.headers["tenant"]) == ("c1", "north")


@pytest.mark.parametrize(
    "text",
    ['{"$type":"System.Diagnostics.Process, System","n":1}', '{"n":1}', f'{{"n":1,"$type":"{PLACED}"}}'],
    ids=["not listed", "none", "not first"],
)
def test_any_other_type_does_not_count(bus, take, text):
    bus.insert(text)
    assert wire.ENCLOSED_MESSAGE_TYPES not in take(bus).headers


@pytest.mark.parametrize("text", ["", "no json", "[]", "null"])
def test_a_body_that_is_no_object_is_handed_over_as_it_is(bus, take, text):
    bus.insert(text)
    assert take(bus).body == text.encode()


def test_a_row_without_a_unique_id_has_an_id_that_stays_the_same(bus):
    bus.insert(body_of(1), unique_id=None)
    claim = bus.transport.claim(ORDERS, "me", 10)
    (first,), _, _ = bus.transport.claims.messages(claim)
    bus.transport.claims.give_back(claim)
    again = receive_one(bus)
    assert first.message_id == again.message_id == first.id


def test_columns_of_a_claim_say_the_same_as_messages_of_it(bus):
    bus.insert(body_of(1), msg_headers="tenant=7", unique_id="abc2")
    row = read_one(bus)
    (message,), _, _ = bus.transport.claims.messages(bus.transport.claims.held_by("me")[0])
    assert (row["id"], row["row_version"], row["body"]) == (message.id, message.row_version, message.body)
    assert wire.decode(row["headers"]) == message.headers


POISON = {
    "no body": {"msg_text": None},
    "two equals signs": {"msg_headers": "token=abc="},
    "no equals sign": {"msg_headers": "tenant"},
    "a good pair and a bad one": {"msg_headers": "tenant=7|colour"},
}


@pytest.mark.parametrize("name", POISON)
def test_a_row_that_would_stop_a_reader_fails_while_its_neighbours_are_received(bus, drain, name):
    bus.insert(body_of(1))
    columns = {"msg_text": body_of(2), **POISON[name]}
    bad = bus.insert(columns.pop("msg_text"), **columns)
    bus.insert(body_of(3))
    before = bus.row(bad)
    assert drain(bus) == [1, 3]
    after = bus.row(bad)
    assert bus.subqueues() == "XFX"
    assert "the .NET reader would stop" in after["error_info"]
    assert changed(before, after) == {"subqueue", "retry_count", "retry_time", "error_info", "last_processed"}
    assert after["retry_count"] == 1
    assert bus.claimed() == []


def test_a_queue_with_only_poison_messages_is_emptied(bus, drain):
    for _ in range(3):
        bus.insert(None)
    assert drain(bus) == []
    assert bus.subqueues() == "FFF"
    assert bus.transport.claims.list() == []


def test_poison_is_counted(bus):
    bus.insert(None)
    with bus.transport.receive(ORDERS) as batch:
        assert batch.poisoned == 1


@pytest.mark.parametrize("ttl", ["2999-01-01 00:00:00", "", "tomorrow"])
def test_a_message_that_has_not_expired_is_handed_over(bus, drain, ttl):
    bus.insert(body_of(1), msg_headers=f"_NG-TTL={ttl}")
    assert drain(bus) == [1]


def test_expired_messages_are_left_out_and_counted(bus):
    bus.insert(body_of(1), msg_headers="_NG-TTL=2001-01-01 00:00:00")
    bus.insert(body_of(2))
    claim = bus.transport.claim(ORDERS, "me", 10)
    assert (claim.messages, claim.expired) == (1, 1)
    assert bus.subqueues() == "XR"
    assert bus.rows()[0]["error_info"] is None


@pytest.mark.parametrize("endpoint", ["", " ", ORDERS, "SQL://DB/ORDERS", "sql://db/orders", "sql://main/Orders"])
def test_a_message_addressed_to_this_queue_is_handed_over_in_any_spelling(bus, drain, endpoint):
    bus.insert(body_of(1), to_endpoint=endpoint)
    assert drain(bus) == [1]
    assert bus.subqueues() == "X"


def test_a_message_for_another_queue_of_this_database_is_sent_on(bus, drain):
    row_id = bus.insert(
        '{"$type":"Shop.OrderPlaced, Shop","n":"é"}',
        to_endpoint="sql://main/Billing",
        from_endpoint="sql://far/Away",
        correlation_id="c-1",
        msg_headers="tenant=7|_NG-TTL=2999-01-01 00:00:00",
        unique_id="abc2",
        retry_count=3,
        error_info="old",
        retry_time=-3600,
    )
    assert drain(bus) == []
    source, (arrived,) = bus.row(row_id), bus.rows(BILLING)
    assert source["subqueue"] == "X"
    kept = ("from_endpoint", "to_endpoint", "correlation_id", "msg_headers", "unique_id", "label")
    assert {name: arrived[name] for name in kept} == {name: source[name] for name in kept}
    assert (arrived["subqueue"], arrived["retry_count"], arrived["error_info"]) == ("I", 0, None)
    assert arrived["last_processed"] is None
    assert abs((arrived["retry_time"] - bus.now()).total_seconds()) < 5
    assert arrived["msg_text"] == '{"$type":"Shop.OrderPlaced, Shop","n":"\\u00e9"}'


@pytest.mark.parametrize(
    ("endpoint", "problem"),
    [
        ("sql://elsewhere/Orders", "'elsewhere' is not known to mean this database"),
        ("http://server/bus", "http://server/bus"),
        ("sql://db/Nowhere", "sql://db/Nowhere"),
        ("sql://db/a/b", "no endpoint of NGinn.MessageBus"),
        ("msmq", "msmq"),
    ],
)
def test_a_message_that_cannot_be_sent_on_fails_and_says_why(bus, drain, endpoint, problem):
    bus.insert(body_of(1))
    row_id = bus.insert(body_of(2), to_endpoint=endpoint)
    assert drain(bus) == [1]
    row = bus.row(row_id)
    assert row["subqueue"] == "F"
    assert problem in row["error_info"]
    assert endpoint in row["error_info"]


def test_only_messages_that_were_sent_on_count_as_forwarded(bus):
    bus.insert(body_of(1), to_endpoint=BILLING)
    bus.insert(body_of(2), to_endpoint="http://server/bus")
    with bus.transport.receive(ORDERS) as batch:
        assert (len(batch), batch.forwarded) == (0, 1)


def test_a_message_without_headers_is_sent_on(bus, drain):
    bus.insert(body_of(1), to_endpoint=BILLING, msg_headers=None)
    assert drain(bus) == []
    assert bus.rows(BILLING)[0]["msg_headers"] in ("", None)


def test_a_body_that_is_no_json_is_sent_on_as_it_is(bus, drain):
    bus.insert("a\x1eb\tc", to_endpoint=BILLING)
    assert drain(bus) == []
    assert bus.rows(BILLING)[0]["msg_text"] == "a\x1eb\tc"
