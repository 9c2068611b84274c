import itertools
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import (
    OutgoingMessage,
    check,
    from_row,
    new_message,
    new_row_ids,
    to_rows,
)

ROW_ID = "0190A5D8-0000-7000-8000-0123456789AB"


# --- what may be sent --------------------------------------------------------------------------------------


def to_row(message: OutgoingMessage, extra=None):
    (row,) = to_rows([message], extra)
    return row


def refusal(message: OutgoingMessage) -> str:
    with pytest.raises(InvalidMessageError) as caught:
        check(message, "orders@[dbo]")
    words = str(caught.value)
    assert "orders@[dbo]" in words, "names no destination"
    return words


@pytest.mark.parametrize("body", [b"", b"\x00\xff", bytearray(b"x"), memoryview(b"x")])
def test_a_body_is_bytes_of_any_kind(body):
    message = OutgoingMessage(body)
    check(message, "orders")
    assert to_row(message).body == bytes(body)
    assert type(to_row(message).body) is bytes


@pytest.mark.parametrize("body", ["text", None, 7, [1, 2]])
def test_a_body_that_is_no_bytes_is_refused(body):
    words = refusal(OutgoingMessage(body, {wire.MESSAGE_ID: "the-id"}))
    assert type(body).__name__ in words and "the-id" in words


@pytest.mark.parametrize(
    "live", [timedelta(0), timedelta(seconds=-1), timedelta(days=24, microseconds=1), timedelta.max]
)
def test_a_time_to_be_received_of_nothing_or_of_more_than_24_days_is_refused(live):
    assert "24 days" in refusal(OutgoingMessage(time_to_be_received=live))


@pytest.mark.parametrize(
    ("live", "milliseconds"),
    [
        (timedelta(microseconds=1), 1),
        (timedelta(milliseconds=1.6), 2),
        (timedelta(seconds=90), 90_000),
        (timedelta(days=24), 24 * 86_400_000),
        (None, NEVER_EXPIRES),
    ],
)
def test_a_time_to_be_received_travels_as_milliseconds_that_fit_in_32_bits(live, milliseconds):
    message = OutgoingMessage(time_to_be_received=live)
    check(message, "orders")
    assert to_row(message).milliseconds == milliseconds < 2**31


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=24)))
def test_a_message_that_expires_never_looks_like_one_that_does_not(live):
    assert to_row(OutgoingMessage(time_to_be_received=live)).milliseconds > 0


def test_a_delay_and_a_time_to_be_received_do_not_go_together():
    """AS-07: the reference refuses it too."""
    message = OutgoingMessage(delay=timedelta(seconds=1), time_to_be_received=timedelta(seconds=9))
    assert "delayed delivery with a time to be received is not supported" in refusal(message)


@pytest.mark.parametrize(
    "delay", [timedelta(days=365 * 100, seconds=1), -timedelta(days=365 * 100, seconds=1), timedelta.max]
)
def test_a_delay_of_more_than_a_hundred_years_is_refused(delay):
    assert "hundred years" in refusal(OutgoingMessage(delay=delay))


@pytest.mark.parametrize(
    ("delay", "milliseconds"),
    [(timedelta(0), 0), (timedelta(seconds=-1), -1000), (timedelta(days=30), 30 * 86_400_000)],
)
def test_a_delay_travels_as_milliseconds_of_either_sign(delay, milliseconds):
    message = OutgoingMessage(delay=delay)
    check(message, "orders")
    assert to_row(message).milliseconds == milliseconds


def test_a_header_that_is_no_text_is_refused_before_a_row_exists():
    with pytest.raises(InvalidMessageError, match="Customer"):
        to_row(OutgoingMessage(headers={"Customer": 7}))


def test_extra_headers_reach_the_row_and_not_the_message():
    message = OutgoingMessage(headers={"a": "b"})
    assert wire.decode(to_row(message, {"c": "d"}).headers) == {"a": "b", "c": "d"}
    assert message.headers == {"a": "b"}


# --- new messages ------------------------------------------------------------------------------------------


def test_a_new_message_has_standard_headers_under_those_of_its_sender():
    message = new_message("tëxt", message_type="Shop.Order", headers={"a": "b", wire.CONTENT_TYPE: "text/plain"})
    assert message.body == "tëxt".encode()
    assert message.headers["a"] == "b"
    assert message.headers[wire.CONTENT_TYPE] == "text/plain"
    assert message.headers[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.Order"
    assert wire.MESSAGE_ID in message.headers


def test_time_limits_are_in_headers_too():
    live = new_message(b"", time_to_be_received=timedelta(seconds=90))
    assert live.time_to_be_received == timedelta(seconds=90)
    assert live.headers[wire.TIME_TO_BE_RECEIVED] == "00:01:30"
    before = datetime.now(UTC)
    late = new_message(b"", delay=timedelta(minutes=5))
    due = wire.parse_timestamp(late.headers[wire.DELIVER_AT])
    assert before <= due - timedelta(minutes=5) <= datetime.now(UTC)
    assert {wire.TIME_TO_BE_RECEIVED, wire.DELIVER_AT}.isdisjoint(new_message(b"").headers)


@pytest.mark.parametrize("delay", [timedelta(days=4_000_000), -timedelta(days=4_000_000), timedelta.max])
def test_a_delay_beyond_the_calendar_is_refused_like_any_other_that_is_too_long(delay):
    with pytest.raises(InvalidMessageError, match="hundred years"):
        check(new_message(b"", delay=delay), "orders")


# --- row ids -----------------------------------------------------------------------------------------------


def test_a_row_id_is_a_guid_of_version_7_in_lower_case():
    for text in new_row_ids(1_000):
        parsed = uuid.UUID(text)
        assert str(parsed) == text
        assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)


def test_row_ids_are_never_the_same():
    assert len(set(new_row_ids(50_000)) | set(new_row_ids(50_000))) == 100_000


def test_row_ids_begin_with_the_time_so_that_they_grow():
    first = int(time.time() * 1000)
    stamps = [uuid.UUID(text).int >> 80 for _ in range(200) for text in new_row_ids(10)]
    last = int(time.time() * 1000)
    assert all(earlier <= later for earlier, later in itertools.pairwise(stamps))
    assert first <= stamps[0] and stamps[-1] <= last


# --- what was received -------------------------------------------------------------------------------------


def test_a_row_is_read_into_a_message():
    message = from_row(ROW_ID, 7, '{"NServiceBus.MessageId":"the-id","a":"b"}', b"body")
    assert (message.id, message.row_version, message.body) == (ROW_ID.lower(), 7, b"body")
    assert message.headers == {wire.MESSAGE_ID: "the-id", "a": "b"}
    assert message.message_id == "the-id"


def test_an_id_may_come_as_a_guid_and_a_body_as_a_view():
    message = from_row(uuid.UUID(ROW_ID), 7, "{}", memoryview(b"body"))
    assert message.id == ROW_ID.lower()
    assert message.body == b"body" and type(message.body) is bytes


@pytest.mark.parametrize("headers", ["", "{}", None, '{"NServiceBus.MessageId":""}', '{"NServiceBus.MessageId":null}'])
def test_a_message_without_an_id_is_called_by_its_row(headers):
    message = from_row(ROW_ID, 1, headers, b"")
    assert message.message_id == ROW_ID.lower()
    assert message.headers == {wire.MESSAGE_ID: ROW_ID.lower()}


def test_a_missing_body_is_an_empty_one():
    assert from_row(ROW_ID, 1, "{}", None).body == b""


def test_what_version_1_kept_in_columns_is_used_where_the_headers_lack_it():
    message = from_row(ROW_ID, 1, '{"NServiceBus.MessageId":"m"}', b"", "correlation", "reply@machine")
    assert message.headers[wire.CORRELATION_ID] == "correlation"
    assert message.headers[wire.REPLY_TO_ADDRESS] == "reply@machine"


def test_headers_win_over_the_columns_of_version_1():
    text = '{"NServiceBus.CorrelationId":"newer","NServiceBus.ReplyToAddress":"elsewhere"}'
    message = from_row(ROW_ID, 1, text, b"", "correlation", "reply")
    assert message.headers[wire.CORRELATION_ID] == "newer"
    assert message.headers[wire.REPLY_TO_ADDRESS] == "elsewhere"


@pytest.mark.parametrize("value", [None, ""])
def test_empty_columns_of_version_1_add_nothing(value):
    assert from_row(ROW_ID, 1, '{"NServiceBus.MessageId":"m"}', b"", value, value).headers == {wire.MESSAGE_ID: "m"}


@pytest.mark.parametrize("headers", ["null", "[]", "{", '{"a":1}', "not json"])
def test_unreadable_headers_are_poison(headers):
    with pytest.raises(ValueError):
        from_row(ROW_ID, 1, headers, b"")


@given(st.dictionaries(st.text(), st.text()), st.binary())
def test_any_message_survives_the_row(headers, body):
    row = to_row(OutgoingMessage(body, headers))
    message = from_row(row.id, 1, row.headers, row.body)
    expected = headers if headers.get(wire.MESSAGE_ID) else {**headers, wire.MESSAGE_ID: row.id}
    assert message.headers == expected
    assert message.body == body
