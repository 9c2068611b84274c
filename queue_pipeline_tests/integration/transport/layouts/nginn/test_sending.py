"""The rules for writing into a table that .NET reads, by their numbers."""

import json
import re
from datetime import timedelta

import pytest

from queue_pipeline.errors import AddressError, InvalidMessageError, QueueNotFoundError
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.nginn.nginn_bus import ORDERS, PLACED, SENDER, placed

BEGINNING = '{"$type":"'


def text_of(bus, body, message_type="shop.order-placed"):
    bus.transport.send(ORDERS, new_message(body, message_type=message_type))
    return bus.rows()[-1]["msg_text"]


def sent(bus, **headers):
    bus.transport.send(ORDERS, placed(1, headers=headers))
    return bus.rows()[-1]


# 1. The body.


def test_rule_1_the_type_comes_first_and_the_beginning_is_compact(bus):
    assert text_of(bus, '{ "n" : 1 }') == f'{BEGINNING}{PLACED}","n":1}}'
    assert text_of(bus, "{}") == f'{BEGINNING}{PLACED}"}}'


def test_rule_1_a_type_that_the_body_has_already_wins_and_is_put_first(bus):
    assert text_of(bus, '{"n":1,"$type":"Shop.Special, Shop"}') == '{"$type":"Shop.Special, Shop","n":1}'


@pytest.mark.parametrize("body", ['{"$type":"A.B, C","n":1}', ' {"$type" : "A.B, C", "n":1} '])
def test_rule_1_a_typed_body_needs_no_message_type(bus, body):
    assert text_of(bus, body, None) == '{"$type":"A.B, C","n":1}'


def test_rule_1_a_type_with_assembly_needs_no_entry_in_the_list(bus):
    text = text_of(bus, '{"n":1}', "Shop.Other, Shop, Version=1.0.0.0, Culture=neutral")
    assert text == '{"$type":"Shop.Other, Shop","n":1}'


def test_rule_1_characters_beyond_ascii_are_escaped(bus):
    text = text_of(bus, '{"name":"é","face":"😀","ключ":"\\u00e9"}')
    assert text.isascii()
    assert '"name":"\\u00e9","face":"\\ud83d\\ude00"' in text
    assert json.loads(text) == {"$type": PLACED, "name": "é", "face": "😀", "ключ": "é"}


@pytest.mark.parametrize("number", ["1.10", "1e400", "12345678901234567890", "-0.0", "1E+2"])
def test_rule_1_numbers_keep_their_text(bus, number):
    assert text_of(bus, f'{{"amount": {number}, "list": [{number}]}}') == (
        f'{BEGINNING}{PLACED}","amount":{number},"list":[{number}]}}'
    )


@pytest.mark.parametrize("body", ["[1]", '"text"', "1", "null", "", "no json", '{"a":1', '{"a":1}{"b":2}'])
def test_rule_1_what_is_no_json_object_is_refused(bus, body):
    with pytest.raises(InvalidMessageError, match=r"Orders"):
        text_of(bus, body)
    assert bus.rows() == []


def test_rule_1_bytes_that_are_no_text_are_refused(bus):
    with pytest.raises(InvalidMessageError, match=r"JSON"):
        bus.transport.send(ORDERS, OutgoingMessage(b"\xff\xfe", {}))
    assert bus.rows() == []


@pytest.mark.parametrize("message_type", [None, "shop.unknown"])
def test_rule_1_a_message_without_a_known_type_is_refused(bus, message_type):
    with pytest.raises(InvalidMessageError, match=r"needs the type of a message"):
        text_of(bus, '{"n":1}', message_type)
    assert bus.rows() == []


# 2. The headers.


def test_rule_2_headers_are_pairs_in_the_order_in_which_they_were_given(bus):
    assert "tenant=7|colour=red" in sent(bus, tenant=" 7 ", colour="red")["msg_headers"]


def test_rule_2_a_message_without_headers_has_an_empty_text(bus):
    headers = {wire.ENCLOSED_MESSAGE_TYPES: "shop.order-placed"}
    bus.transport.send(ORDERS, OutgoingMessage(b"{}", headers))
    assert bus.rows()[0]["msg_headers"] in ("", None)


@pytest.mark.parametrize("value", ["a=b", "a|b", "a\nb", "a\r"])
@pytest.mark.parametrize("place", ["name", "value"])
def test_rule_2_headers_that_a_reader_could_not_parse_are_refused(bus, place, value):
    headers = {value: "x"} if place == "name" else {"x": value}
    with pytest.raises(InvalidMessageError, match=r"its header .* holds"):
        sent(bus, **headers)
    assert bus.rows() == []


def test_rule_2_headers_beyond_ascii_are_refused(bus):
    with pytest.raises(InvalidMessageError, match=r"'colour' holds characters beyond ASCII"):
        sent(bus, colour="grün")
    assert bus.rows() == []


def test_rule_2_a_header_without_a_name_is_refused(bus):
    with pytest.raises(InvalidMessageError, match=r"has no name"):
        sent(bus, **{" ": "x"})
    assert bus.rows() == []


def test_rule_2_headers_as_long_as_a_row_takes_arrive_and_longer_ones_are_refused(bus):
    already = len(sent(bus)["msg_headers"])
    room = 4_000 - already - len("|x=")
    assert len(sent(bus, x="y" * room)["msg_headers"]) == 4_000
    with pytest.raises(InvalidMessageError, match=r"4,001 characters"):
        sent(bus, x="y" * (room + 1))
    assert len(bus.rows()) == 2


@pytest.mark.parametrize(
    "name",
    [
        wire.NGINN_RETRY_COUNT,
        wire.NGINN_DELIVER_AT,
        wire.NGINN_LABEL,
        wire.NGINN_CORRELATION_ID,
        wire.NGINN_BUS_MESSAGE_ID,
        wire.NGINN_CONTENT_TYPE,
        wire.NGINN_EXCLUSION_ID,
        wire.NGINN_PRIORITY,
        wire.TIME_SENT,
        wire.ENCLOSED_MESSAGE_TYPES,
    ],
)
def test_rule_2_headers_that_have_a_column_or_break_a_reader_are_not_written(bus, name):
    value = "shop.order-placed" if name == wire.ENCLOSED_MESSAGE_TYPES else "17"
    row = sent(bus, **{name: value})
    assert name not in row["msg_headers"]


def test_rule_2_headers_that_readers_look_for_are_written(bus):
    headers = {wire.NGINN_SEQUENCE: "s", wire.NGINN_SEQUENCE_NUMBER: "0", wire.NGINN_REPLY_TO: "sql://db/Replies"}
    pairs = sent(bus, **headers)["msg_headers"].split("|")
    assert {"_NG-Seq=s", "_NG-SeqNum=0", "_NG-ReplyTo=sql://db/Replies"} <= set(pairs)


def test_a_time_to_be_received_is_an_absolute_time_of_the_database_that_is_never_too_early(bus):
    bus.transport.send(ORDERS, placed(1, time_to_be_received=timedelta(minutes=10)))
    (row,) = bus.rows()
    found = re.search(r"_NG-TTL=(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)$", row["msg_headers"])
    assert found
    late = type(row["insert_time"]).fromisoformat(found.group(1)) - row["insert_time"]
    assert timedelta(minutes=10) <= late < timedelta(minutes=10, seconds=2)


# 3. Endpoints and widths.


def test_rule_3_the_endpoints_are_those_of_the_settings_and_of_the_address(bus):
    row = sent(bus)
    assert (row["from_endpoint"], row["to_endpoint"]) == (SENDER, ORDERS)


def test_rule_3_a_reply_address_that_is_an_endpoint_is_the_sender(bus):
    bus.transport.send(ORDERS, placed(1, reply_to="sql://db/Other"))
    bus.transport.send(ORDERS, placed(1, reply_to="other@machine"))
    assert [row["from_endpoint"] for row in bus.rows()] == ["sql://db/Other", SENDER]


def test_rule_3_without_an_endpoint_nothing_is_sent(bus):
    other = bus.other(endpoint=None)
    with pytest.raises(InvalidMessageError, match=r"needs the endpoint of its sender"):
        other.transport.send(ORDERS, placed(1))
    assert bus.rows() == []


@pytest.mark.parametrize(
    ("headers", "what"),
    [
        ({wire.REPLY_TO_ADDRESS: f"sql://db/{'a' * 42}"}, "its sender has 51 characters"),
        ({wire.NGINN_CORRELATION_ID: "c" * 101}, "its correlation id has 101 characters"),
        ({wire.NGINN_CORRELATION_ID: "é"}, "its correlation id holds characters beyond ASCII"),
    ],
)
def test_rule_3_values_that_no_column_holds_are_refused_before_anything_is_written(bus, headers, what):
    with pytest.raises(InvalidMessageError, match=what):
        bus.transport.send(ORDERS, [placed(0), placed(1, headers=headers), placed(2)])
    assert bus.rows() == []


def test_rule_3_values_of_the_greatest_length_arrive(bus):
    sender = f"sql://db/{'a' * 41}"
    headers = {wire.REPLY_TO_ADDRESS: sender, wire.CORRELATION_ID: "c" * 100, wire.MESSAGE_ID: "u" * 40}
    bus.transport.send(ORDERS, placed(1, headers=headers))
    (row,) = bus.rows()
    assert (row["from_endpoint"], row["correlation_id"], row["unique_id"]) == (sender, "c" * 100, "u" * 40)


def test_a_message_without_a_correlation_id_of_its_own_has_none(bus):
    """So do the rows that .NET wrote."""
    bus.send(1)
    bus.transport.send(ORDERS, placed(2, headers={wire.CORRELATION_ID: "c" * 120, wire.CONVERSATION_ID: "dGVzdA=="}))
    first, second = bus.rows()
    assert first["correlation_id"] is None
    assert len(second["correlation_id"]) == 32
    assert second["msg_headers"] == ""


def test_rule_3_a_destination_of_more_than_50_characters_is_refused(bus):
    with pytest.raises(AddressError, match=r"51 characters"):
        bus.transport.send(f"sql://db/{'a' * 42}", placed(1))


def test_rule_3_a_destination_in_another_database_is_refused(bus):
    with pytest.raises(AddressError, match=r"'elsewhere' is not known to mean this database"):
        bus.transport.send("sql://elsewhere/Orders", placed(1))


def test_a_queue_that_does_not_exist_is_named(bus):
    with pytest.raises(QueueNotFoundError, match=r"sql://db/Nowhere"):
        bus.transport.send("sql://db/Nowhere", placed(1))


# 4. Times. 5. The other columns.


def test_rule_4_an_urgent_message_was_due_a_day_ago(bus):
    row = sent(bus, **{wire.NGINN_PRIORITY: "high"})
    assert row["subqueue"] == "I"
    assert (row["insert_time"] - row["retry_time"]).total_seconds() == pytest.approx(24 * 3600, abs=1)


@pytest.mark.parametrize("priority", ["low", "", "normal"])
def test_rule_4_any_other_priority_is_none(bus, priority):
    row = sent(bus, **{wire.NGINN_PRIORITY: priority})
    assert (row["insert_time"] - row["retry_time"]).total_seconds() == pytest.approx(0, abs=1)


def test_rule_4_all_messages_of_a_delay_are_due_by_the_clock_of_the_database(bus):
    early = bus.now()
    bus.transport.send(ORDERS, [placed(n, delay=timedelta(hours=n)) for n in (1, 2)])
    late = bus.now()
    for hours, row in zip((1, 2), bus.rows(), strict=True):
        assert row["subqueue"] == "R"
        slack = timedelta(milliseconds=20)
        assert early - slack <= row["retry_time"] - timedelta(hours=hours) <= late + slack


@pytest.mark.parametrize(
    ("message_type", "body", "label"),
    [
        (PLACED, '{"n":1}', "Shop.OrderPlaced"),
        ("shop.order-placed", '{"n":1}', "Shop.OrderPlaced"),
        (None, '{"$type":"Shop.Special, Shop"}', "Shop.Special"),
        (PLACED, '{"$type":"Shop.Special, Shop"}', "Shop.Special"),
    ],
)
def test_rule_5_the_label_is_the_full_name_of_the_type_that_the_body_has(bus, message_type, body, label):
    bus.transport.send(ORDERS, new_message(body, message_type=message_type))
    assert bus.rows()[0]["label"] == label


def test_rule_5_a_label_that_the_sender_gives_is_cut_at_100_characters(bus):
    assert sent(bus, **{wire.NGINN_LABEL: "l" * 150})["label"] == "l" * 100


def test_rule_5_the_unique_id_is_the_message_id_without_its_dashes(bus):
    message = placed(1)
    bus.transport.send(ORDERS, message)
    assert bus.rows()[0]["unique_id"] == message.headers[wire.MESSAGE_ID].replace("-", "")


def test_rule_5_a_message_id_that_does_not_fit_becomes_one_that_does_always_the_same(bus):
    for _ in range(2):
        bus.transport.send(ORDERS, placed(1, headers={wire.MESSAGE_ID: "m" * 41}))
    first, second = (row["unique_id"] for row in bus.rows())
    assert first == second
    assert re.fullmatch(r"[0-9a-f]{32}", first)


def test_rule_5_the_count_and_the_columns_of_processing_have_their_initial_values(bus):
    row = sent(bus)
    assert (row["retry_count"], row["last_processed"], row["error_info"]) == (0, None, None)
