"""Rule 6: a batch is one transaction; and text that tries to break out of a statement."""

import json

import pytest

from queue_pipeline.errors import AddressError, InvalidMessageError, QueueNotFoundError
from queue_pipeline.transport import Operation, new_message
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, SENDER, number_of, placed

pytestmark = pytest.mark.both_drivers

HOSTILE = "x'); DROP TABLE Orders;-- \" {queue} ?"
BAD = new_message('{"n":1}', message_type="shop.order-placed", headers={"x": "a=b"})


def test_rule_6_nothing_is_stored_if_one_message_is_bad(bus):
    with pytest.raises(InvalidMessageError):
        bus.transport.send(ORDERS, [placed(0), BAD, placed(2)])
    assert bus.rows() == []


def test_rule_6_nothing_is_stored_if_one_message_late_in_a_large_batch_is_bad(bus):
    with pytest.raises(InvalidMessageError):
        bus.transport.send(ORDERS, [*(placed(n) for n in range(1_200)), BAD])
    assert bus.rows() == []


def test_rule_6_one_bad_message_leaves_the_callers_transaction_as_it_was(bus):
    with bus.transport.transaction() as connection:
        bus.transport.send(ORDERS, placed(0), connection)
        with pytest.raises(InvalidMessageError):
            bus.transport.dispatch([Operation(ORDERS, placed(1)), Operation(ORDERS, BAD)], connection)
        bus.transport.send(BILLING, placed(2), connection)
    assert [number_of(row["msg_text"]) for row in bus.rows()] == [0]
    assert [number_of(row["msg_text"]) for row in bus.rows(BILLING)] == [2]


def test_rule_6_a_bulk_of_5000_messages_arrives_in_order(bus):
    assert bus.transport.send(ORDERS, [placed(n) for n in range(5_000)]) == 5_000
    rows = bus.rows()
    assert [number_of(row["msg_text"]) for row in rows] == list(range(5_000))
    assert len({row["unique_id"] for row in rows}) == 5_000
    assert {row["subqueue"] for row in rows} == {"I"}


def test_bodies_with_and_without_non_ascii_letters_are_sent_in_one_batch(bus):
    names = ["é", "plain", "😀" * 500, "", "\\", '"', "\t"]
    messages = [new_message(json.dumps({"n": name}), message_type="shop.order-placed") for name in names]
    bus.transport.send(ORDERS, messages)
    assert [json.loads(row["msg_text"])["n"] for row in bus.rows()] == names


def test_a_large_body_arrives_completely(bus):
    text = "é" * 300_000
    bus.transport.send(ORDERS, new_message(json.dumps({"n": text}), message_type="shop.order-placed"))
    assert json.loads(bus.rows()[0]["msg_text"])["n"] == text


def test_sending_no_messages_stores_nothing(bus):
    assert bus.transport.send(ORDERS, []) == 0
    assert bus.rows() == []


def test_both_kinds_of_queues_are_written_in_one_transaction(bus):
    bus.transport.install("plain")
    operations = [Operation(ORDERS, placed(1)), Operation("plain", placed(2)), Operation(BILLING, placed(3))]
    assert bus.transport.dispatch(operations) == 3
    assert (len(bus.rows()), bus.transport.peek("plain"), len(bus.rows(BILLING))) == (1, 1, 1)


def test_both_kinds_of_queues_are_rolled_back_together(bus):
    bus.transport.install("plain")
    with pytest.raises(QueueNotFoundError):
        bus.transport.dispatch(
            [Operation(ORDERS, placed(1)), Operation("plain", placed(2)), Operation("sql://db/Nowhere", placed(3))]
        )
    with pytest.raises(ZeroDivisionError), bus.transport.transaction() as connection:
        bus.transport.dispatch([Operation(ORDERS, placed(1)), Operation("plain", placed(2))], connection)
        raise ZeroDivisionError
    assert bus.rows() == []
    assert bus.transport.peek("plain") == 0


def test_a_bad_message_for_one_kind_keeps_the_other_from_being_written(bus):
    bus.transport.install("plain")
    with bus.transport.transaction() as connection, pytest.raises(InvalidMessageError):
        bus.transport.dispatch([Operation("plain", placed(1)), Operation(ORDERS, BAD)], connection)
    assert bus.transport.peek("plain") == 0


def test_a_message_id_is_stored_once_for_a_destination(bus):
    message = placed(1)
    assert bus.transport.send(ORDERS, [message, message]) == 1
    assert len(bus.rows()) == 1


def test_two_aliases_of_one_database_name_one_table(bus):
    bus.transport.send("sql://main/Orders", placed(1))
    assert [row["to_endpoint"] for row in bus.rows()] == ["sql://main/Orders"]
    assert bus.transport.peek(ORDERS) == 1


def test_messages_as_columns_arrive_like_any_other(bus):
    headers = [placed(n).headers for n in range(3)]
    ready = MessageColumns(
        ORDERS,
        delayed=False,
        ids=[one[wire.MESSAGE_ID] for one in headers],
        milliseconds=[NEVER_EXPIRES] * 3,
        headers=[wire.encode(one) for one in headers],
        bodies=[b'{"n":0}', b'{"n":1}', b'{"n":2}'],
    )
    assert bus.transport.dispatch_columns([ready]) == 3
    rows = bus.rows()
    assert [number_of(row["msg_text"]) for row in rows] == [0, 1, 2]
    assert {(row["from_endpoint"], row["to_endpoint"], row["label"]) for row in rows} == {
        (SENDER, ORDERS, "Shop.OrderPlaced")
    }


@pytest.mark.parametrize("text", [HOSTILE, "a\\u0022b", "%s", "\\"])
def test_hostile_text_is_stored_as_the_text_that_it_is(bus, text):
    headers = {wire.NGINN_LABEL: text, wire.NGINN_CORRELATION_ID: text, wire.MESSAGE_ID: text, "own": text}
    # Several types of one message stand in one header, with semicolons between them.
    kind = f"{text.replace(';', '')}, Shop"
    bus.transport.send(ORDERS, new_message(json.dumps({"n": text}), message_type=kind, headers=headers))
    (row,) = bus.rows()
    assert (row["label"], row["correlation_id"], row["unique_id"]) == (text, text, text)
    assert f"own={text}" in row["msg_headers"].split("|")
    assert json.loads(row["msg_text"]) == {"$type": kind, "n": text}


@pytest.mark.parametrize("name", ["Orders; DROP TABLE Orders", "O'rders", "[Orders]", 'Or"ders', "Or ders", "1Orders"])
def test_a_queue_whose_name_needs_quotes_is_refused(bus, name):
    with pytest.raises(AddressError, match=r"letters, digits and _"):
        bus.transport.send(f"sql://db/{name}", placed(1))


def test_a_hostile_sender_is_text_as_well(bus):
    hostile = "sql://db/x'); DROP TABLE Orders;--"
    bus.transport.send(ORDERS, placed(1, reply_to=hostile))
    assert bus.rows()[0]["from_endpoint"] == hostile
