import json
import re
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire

# --- the JSON of the Headers column ------------------------------------------------------------------------

WORDS = {
    "spaces": " ",
    "dashes": "-",
    "underscores": "_",
    "dots": ".",
    "slashes": "/",
    "backslashes": "\\",
    "quotes": '"',
    "apostrophes": "'",
    "colons": ":",
    "semicolons": ";",
    "commas": ",",
    "equals": "=",
    "question": "?",
    "ampersand": "&",
}
SPECIAL = {f"key{mark}with{mark}{word}": f"value{mark}with{mark}{word}" for word, mark in WORDS.items()} | {
    f"key{pair[0]}with{pair[1]}{word}": f"value{pair[0]}with{pair[1]}{word}"
    for word, pair in {"angle": "<>", "braces": "{}", "brackets": "[]", "parens": "()"}.items()
}
SPECIAL_TEXT = (
    r'{"key with spaces":"value with spaces","key-with-dashes":"value-with-dashes",'
    r'"key_with_underscores":"value_with_underscores","key.with.dots":"value.with.dots",'
    r'"key\/with\/slashes":"value\/with\/slashes","key\\with\\backslashes":"value\\with\\backslashes",'
    r'"key\"with\"quotes":"value\"with\"quotes","key' + "'with'apostrophes" + r'":"value' + "'with'apostrophes"
    r'","key:with:colons":"value:with:colons","key;with;semicolons":"value;with;semicolons",'
    r'"key,with,commas":"value,with,commas","key=with=equals":"value=with=equals",'
    r'"key?with?question":"value?with?question","key&with&ampersand":"value&with&ampersand",'
    r'"key<with>angle":"value<with>angle","key{with}braces":"value{with}braces",'
    r'"key[with]brackets":"value[with]brackets","key(with)parens":"value(with)parens"}'
)
UNICODE = {
    "ümlaut": "äöü",
    "emoji": "🚀",
    "japanese": "こんにちは",
    "arabic": "مرحبا",
    "newline": "line1\r\nline2",
    "tab": "value\twith\ttabs",
}
UNICODE_TEXT = (
    r'{"ümlaut":"äöü","emoji":"\uD83D\uDE80","japanese":"こんにちは","arabic":"مرحبا",'
    r'"newline":"line1\r\nline2","tab":"value\twith\ttabs"}'
)


def test_headers_survive_and_a_null_counts_as_absent():
    """UT-01: the reference gives the null back; here it is as if the header were not there."""
    written_by_a_peer = '{"key1":"value1","key2":"value2","keyWithNull":null,"keyWithEmpty":""}'
    ours = {"key1": "value1", "key2": "value2", "keyWithEmpty": ""}
    assert wire.decode(written_by_a_peer) == ours
    assert wire.encode(ours) == written_by_a_peer.replace('"keyWithNull":null,', "")


def test_no_headers_are_an_empty_object():
    """UT-02: an empty dictionary."""
    assert wire.encode({}) == "{}"
    assert wire.decode(wire.encode({})) == {}


def test_special_characters_are_written_as_the_reference_writes_them():
    """UT-03: only the slash gets an escape that JSON does not ask for."""
    assert wire.encode(SPECIAL) == SPECIAL_TEXT
    assert wire.decode(SPECIAL_TEXT) == SPECIAL


def test_characters_beyond_the_basic_plane_are_written_as_escapes():
    """UT-04: in pairs and in upper case, other letters as they are."""
    assert wire.encode(UNICODE) == UNICODE_TEXT
    assert wire.decode(UNICODE_TEXT) == UNICODE


@pytest.mark.parametrize("text", ["{}", "{ }", "", None])
def test_an_empty_object_and_an_empty_column_are_no_headers(text):
    """UT-05: and the empty text that people write by hand."""
    assert wire.decode(text) == {}


def test_a_null_value_is_no_header():
    """UT-06: the reference keeps the name with a null."""
    assert wire.decode('{"keyWithNull":null}') == {}


def test_an_empty_value_is_a_header():
    """UT-07: an empty text is not a null."""
    assert wire.decode('{"keyWithEmpty":""}') == {"keyWithEmpty": ""}


def test_headers_that_are_the_json_null_are_poison():
    """UT-08: the reference reads it as nothing and then fails on it forever."""
    with pytest.raises(ValueError, match="not an object"):
        wire.decode("null")


def test_the_text_is_compact():
    """UT-09: no line break and no space between the parts."""
    assert wire.encode({"key1": "value1", "key2": "value2"}) == '{"key1":"value1","key2":"value2"}'


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "7",
        "true",
        '"text"',
        "NaN",
        '{"a":1}',
        '{"a":true}',
        '{"a":{"b":"c"}}',
        '{"a":["b"]}',
        "{",
        '{"a":"b"',
        '{"a":"b"}x',
        "{'a':'b'}",
        "a=b",
        "\ufeff{}",
        "9" * 5_000,
    ],
)
def test_what_is_no_flat_object_of_texts_is_poison(text):
    with pytest.raises(ValueError):
        wire.decode(text)


@pytest.mark.parametrize("text", ["[" * 200_000, '{"a":' * 200_000, '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"])
def test_deep_nesting_is_poison_and_no_crash(text):
    with pytest.raises(ValueError):
        wire.decode(text)


@pytest.mark.parametrize("value", [None, 1, True, b"text", ["text"], datetime(2024, 1, 1, tzinfo=UTC)])
def test_a_value_that_is_no_text_is_refused_by_name(value):
    with pytest.raises(InvalidMessageError) as caught:
        wire.encode({wire.MESSAGE_ID: "the-id", "Customer": value})
    words = str(caught.value)
    assert "Customer" in words and "the-id" in words and type(value).__name__ in words


@pytest.mark.parametrize("name", [None, 1, b"text"])
def test_a_name_that_is_no_text_is_refused(name):
    with pytest.raises(InvalidMessageError, match=repr(name)):
        wire.encode({name: "value"})


@given(st.dictionaries(st.text(), st.text()))
@example({"\u2028": "\u2029", "\x00\x7f": "\x1f\ufffe\uffff"})
@example({"/": "a//b\\/c"})
def test_any_headers_survive(headers):
    text = wire.encode(headers)
    assert wire.decode(text) == headers
    assert json.loads(text) == headers
    assert re.search(r"(?<!\\)(?:\\\\)*/", text) is None, "a slash without an escape"
    assert not any(ord(character) > 0xFFFF or 0xD800 <= ord(character) <= 0xDFFF for character in text)
    assert not any(ord(character) < 0x20 for character in text)
    assert text.encode("utf-16-le").decode("utf-16-le") == text
    between_the_texts = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert re.fullmatch(r"\{(?::(?:,:)*)?\}", between_the_texts), "not compact"


@given(st.text(st.characters(categories=["Cs"]), min_size=1, max_size=1), st.text(max_size=3))
@example("\ud83d", "")
@example("\ude80", "\ud83d")
def test_half_a_surrogate_pair_survives_as_an_escape(half, after):
    headers = {half: f"a{half}-{after}"}
    text = wire.encode(headers)
    assert f"\\u{ord(half):04X}" in text
    text.encode("utf-8")  # no database could store it otherwise
    assert wire.decode(text) == headers


# --- timestamps --------------------------------------------------------------------------------------------

offsets = st.integers(-(23 * 60 + 59), 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def has_utc_instant(moment: datetime) -> bool:
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return False
    return True


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2024, 2, 29, 13, 5, 9, 42, tzinfo=UTC), "2024-02-29 13:05:09:000042 Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01 00:00:00:000000 Z"),
        (datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "9999-12-31 23:59:59:999999 Z"),
        (datetime(2024, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2))), "2023-12-31 22:30:00:000000 Z"),
    ],
)
def test_a_timestamp_has_a_colon_before_its_microseconds(moment, text):
    assert wire.format_timestamp(moment) == text
    assert wire.parse_timestamp(text) == moment


@given(st.datetimes(timezones=offsets | st.just(UTC)).filter(has_utc_instant))
def test_any_instant_survives_as_28_characters(moment):
    text = wire.format_timestamp(moment)
    assert len(text) == 28
    assert wire.parse_timestamp(text) == moment
    assert wire.parse_timestamp(text).utcoffset() == timedelta(0)


def test_a_timestamp_is_read_by_position_whatever_separates_its_digits():
    expected = datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert wire.parse_timestamp("2024-01-02T03.04.05.678901+0") == expected
    assert wire.parse_timestamp("2024 01 02 03 04 05 678901UT") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-02 03:04:05:678901Z",
        "2024-01-02 03:04:05:678901  Z",
        "2024-01-02T03:04:05.678901Z",
        "2024-0a-02 03:04:05:678901 Z",
        "2024- 1-02 03:04:05:678901 Z",
        "2024-+1-02 03:04:05:678901 Z",
        "2024-01-02 03:04:05:67890Z  ",
        "٢٠٢٤-01-02 03:04:05:678901 Z",
        "2024-13-02 03:04:05:678901 Z",
        "2024-02-30 03:04:05:678901 Z",
        "0000-01-01 00:00:00:000000 Z",
    ],
)
def test_a_timestamp_of_another_form_is_refused(text):
    with pytest.raises(ValueError):
        wire.parse_timestamp(text)


def test_a_time_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="time zone"):
        wire.format_timestamp(datetime(2024, 1, 1))


# --- time spans and flags ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(0), "00:00:00"),
        (timedelta(seconds=90), "00:01:30"),
        (timedelta(days=1), "1.00:00:00"),
        (timedelta(days=10, hours=20, minutes=30, seconds=40, microseconds=500), "10.20:30:40.0005000"),
        (timedelta(seconds=-90), "-00:01:30"),
        (timedelta(days=-1, seconds=1), "-23:59:59"),
        (timedelta(microseconds=1), "00:00:00.0000010"),
    ],
)
def test_a_time_span_is_written_as_dotnet_writes_it(span, text):
    assert wire.format_time_span(span) == text
    assert wire.parse_time_span(text) == span


@given(st.timedeltas())
@example(timedelta.min)
@example(timedelta.max)
def test_any_time_span_survives(span):
    assert wire.parse_time_span(wire.format_time_span(span)) == span


@pytest.mark.parametrize(
    "text", ["", "90", "1:30", "00:00:00.00000001", "1 day", "00:00:00Z", "1.2.00:00:00", "00:00:00\n"]
)
def test_a_time_span_of_another_form_is_refused(text):
    with pytest.raises(ValueError, match="time span"):
        wire.parse_time_span(text)


def test_flags_are_written_as_dotnet_prints_them():
    assert (wire.format_bool(True), wire.format_bool(False)) == ("True", "False")


# --- the headers of a new message --------------------------------------------------------------------------


def test_a_new_message_starts_its_own_conversation():
    sent = datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=UTC)
    headers = wire.standard_headers(
        message_type="Shop.OrderPlaced", endpoint="shop", reply_to="shop@[dbo]@[db]", message_id="the-id", sent_at=sent
    )
    assert headers.pop("NServiceBus.ConversationId") not in ("", "the-id")
    assert headers.pop("NServiceBus.OriginatingMachine")
    assert headers.pop("$.diagnostics.originating.hostid") == wire.host_id()
    assert headers == {
        "NServiceBus.MessageId": "the-id",
        "NServiceBus.CorrelationId": "the-id",
        "NServiceBus.MessageIntent": "Send",
        "NServiceBus.ContentType": "application/json",
        "NServiceBus.EnclosedMessageTypes": "Shop.OrderPlaced",
        "NServiceBus.TimeSent": "2024-05-06 07:08:09:000010 Z",
        "NServiceBus.OriginatingEndpoint": "shop",
        "NServiceBus.ReplyToAddress": "shop@[dbo]@[db]",
    }


def test_ids_are_guids_in_lower_case_and_never_the_same():
    first, second = wire.standard_headers(), wire.standard_headers()
    for name in (wire.MESSAGE_ID, wire.CONVERSATION_ID):
        assert str(uuid.UUID(first[name])) == first[name]
        assert first[name] != second[name]
    assert first[wire.CORRELATION_ID] == first[wire.MESSAGE_ID]


def test_what_a_sender_does_not_know_is_left_out():
    assert {wire.ENCLOSED_MESSAGE_TYPES, wire.REPLY_TO_ADDRESS}.isdisjoint(wire.standard_headers())


def test_the_time_of_sending_is_now_unless_it_is_given():
    before = datetime.now(UTC)
    sent = wire.parse_timestamp(wire.standard_headers()[wire.TIME_SENT])
    assert before <= sent <= datetime.now(UTC)


def test_the_host_id_is_a_guid_of_32_digits_that_stays_the_same():
    """ServiceControl refuses to audit a message whose host id is no GUID."""
    assert re.fullmatch("[0-9a-f]{32}", wire.host_id())
    assert wire.host_id() == wire.host_id()


def test_standard_headers_can_be_written_as_they_are():
    headers = wire.standard_headers(message_type="A.B, C", reply_to="x")
    assert wire.decode(wire.encode(headers)) == headers


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FORWARD_DESTINATION", "NServiceBus.SqlServer.ForwardDestination"),
        ("TIME_TO_BE_RECEIVED", "NServiceBus.TimeToBeReceived"),
        ("DELIVER_AT", "NServiceBus.DeliverAt"),
        ("FAILED_QUEUE", "NServiceBus.FailedQ"),
        ("TIME_OF_FAILURE", "NServiceBus.TimeOfFailure"),
        ("EXCEPTION_TYPE", "NServiceBus.ExceptionInfo.ExceptionType"),
        ("EXCEPTION_MESSAGE", "NServiceBus.ExceptionInfo.Message"),
        ("EXCEPTION_STACK_TRACE", "NServiceBus.ExceptionInfo.StackTrace"),
    ],
)
def test_header_names_are_those_that_peers_look_for(name, text):
    assert getattr(wire, name) == text


@pytest.mark.parametrize("stored", ["\0", "\0half \udcf1", "\0two\nlines"])
def test_a_stored_text_that_begins_with_nul_gives_no_reason(stored):
    """A reason goes into logs and error copies, which take neither half a surrogate pair nor a line end."""
    with pytest.raises(ValueError, match=r"^headers begin with a NUL character$"):
        wire.decode(stored)


def test_a_reason_in_place_of_headers_is_reported():
    with pytest.raises(ValueError, match=r"^headers are too large$"):
        wire.decode("\0headers are too large")
