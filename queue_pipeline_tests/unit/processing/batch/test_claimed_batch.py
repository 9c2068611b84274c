"""The headers of claimed messages become columns, one text at a time: no row takes values from another."""

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.batch.claimed_batch import (
    CHUNK_MESSAGES,
    SCHEMA,
    TAKEN_OUT,
    header_columns,
    parse_timestamps,
    prepare,
)
from queue_pipeline.transport.claims.message_table import from_rows
from queue_pipeline.transport.messages import headers as wire

ID, TALK = wire.quote(wire.MESSAGE_ID), wire.quote(wire.CONVERSATION_ID)
LONG = "x" * 5_000_000
GOOD = [
    "{}",
    "",
    '{"a":"b"}',
    ' {"a" : "b"} ',
    '{"a":null}',
    '{"a":"},{"}',
    '{"a":"\\u00e9/"}',
    f'{{{ID}:null,{TALK}:"v"}}',
    f'{{{ID}:"first",{ID}:"second"}}',
    f'{{{ID}:"m",{ID}:null}}',
    f'{{{TALK}:"NUL \\u0000 within"}}',
    f'{{{TALK}:"half \\ud83d"}}',
    f'{{{TALK}:"\\udc00\\ud83d",{ID}:"m"}}',
    f'{{{TALK}:"whole \\ud83d\\ude00"}}',
    f'{{"\\ud83d":"half a name",{ID}:"m"}}',
    f'{{{ID}:"{{}},{{}}",{TALK}:"[1]"}}',
    f'{{{TALK}:"\ufeff{LONG[:10]}\u2028😀"}}',
]
BAD = [
    "{},{}",
    '{"a":[{}',
    "{}]}",
    '{"a":"}',
    '{"}',
    '{"x":"y"},{"z":"w"}',
    '{"a":5}',
    '{"a" : 5}',
    '{"a"\n:\ttrue}',
    '{"a":["b"]}',
    '{"a" :{"b":"c"}}',
    "[]",
    "[{}]",
    "null",
    "true",
    "NaN",
    " ",
    "\ufeff{}",
    "{}\0",
    "\0",
    '{"a":"raw \0"}',
    '{"a":"raw \n"}',
    '{"a":1e999}',
    '{"a":NaN}',
    '{"a":' + "9" * 5_000 + "}",
    f"{{{ID}:5}}",
    f'{{{ID}:["m"]}}',
    f'{{{ID}:"m","a":{{{ID}:"inner"}}}}',
    f'{{{ID}:"m"}}{{{ID}:"n"}}',
    f'{{{ID}:"m"}}\n{{{ID}:"n"}}',
    f'{{{ID}:"m"',
    f'{ID}:"m"',
    "5",
    '"text"',
    "no json",
    "{",
    "}",
    "{{}}",
    '{"a":"b",}',
    '{"a":"b"}}',
    '{"a":"b"} {"c":"d"}',
    "[" * 5_000 + "]" * 5_000,
    '{"a":' * 5_000 + '"b"' + "}" * 5_000,
]
texts_of_others = st.text(st.characters(codec="utf-8"), max_size=8)
flat = st.dictionaries(st.sampled_from(TAKEN_OUT) | st.text(), st.none() | st.text(), max_size=4)
fragments = st.lists(st.sampled_from(["{", "}", '"', ":", ",", "[", "]", ID, '"a"', "{}", " ", "\\", "5"]), max_size=8)
header_texts = st.one_of(
    st.sampled_from(GOOD + BAD),
    flat.map(json.dumps),
    fragments.map("".join),
    fragments.map(lambda parts: "{" + "".join(parts) + "}"),
    texts_of_others,
)


def part(*rows):
    return from_rows(rows)


def row(number, text, *, body=b"x", correlation=None, reply_to=None):
    return f"id{number}", number, text, body, correlation, reply_to


def columns_of(texts):
    columns, problems = header_columns(pa.array(texts, pa.string()))
    assert list(columns) == list(TAKEN_OUT)
    return {name: column.to_pylist() for name, column in columns.items()}, problems


def one_by_one(texts):
    """The same by the function that decodes the headers of one message."""
    columns, problems = {name: [] for name in TAKEN_OUT}, {}
    for at, text in enumerate(texts):
        headers = {}
        try:
            headers = wire.decode(text)
        except ValueError as error:
            problems[at] = str(error)
        for name, column in columns.items():
            value = headers.get(name) or None
            column.append(value and value.encode(errors="replace").decode())
    return columns, problems


# --- headers as columns ------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(header_texts))
@example(["{},{}", '{"a":"}', '{"}'])
@example(['{"a" : 5}'])
@example(['{"a" :[{}', "{}]}"])
@example(["{}", ""])
def test_headers_in_columns_are_those_decoded_one_by_one(texts):
    assert columns_of(texts) == one_by_one(texts)


def test_no_headers_are_empty_columns():
    assert columns_of([]) == ({name: [] for name in TAKEN_OUT}, {})


@pytest.mark.parametrize("text", GOOD, ids=lambda text: ascii(text[:40]))
def test_unusual_headers_are_read_and_leave_their_neighbours_unchanged(text):
    columns, problems = columns_of([f'{{{ID}:"1"}}', text, f'{{{TALK}:"grüße 😀"}}'])
    assert problems == {}
    assert columns[wire.MESSAGE_ID][::2] == ["1", None]
    assert columns[wire.CONVERSATION_ID][::2] == [None, "grüße 😀"]


@pytest.mark.parametrize("bad", BAD, ids=lambda text: ascii(text[:40]))
def test_one_bad_text_is_named_and_leaves_the_others_readable(bad):
    columns, problems = columns_of([f'{{{ID}:"1"}}', bad, f'{{{ID}:"3"}}'])
    assert list(problems) == [1]
    assert problems[1]
    assert columns[wire.MESSAGE_ID] == ["1", None, "3"]


def test_an_empty_text_counts_as_an_empty_object():
    assert prepare(part(row(1, ""), row(2, "{}")))[1] == []
    first, second = prepare(part(row(1, ""), row(1, "{}")))[0].to_pylist()
    assert {**first, "headers": "{}"} == second
    first, second = prepare(part(row(1, "", correlation="c"), row(1, "{}", correlation="c")))[0].to_pylist()
    assert first == second


def test_the_last_of_two_values_for_one_name_counts():
    columns, _ = columns_of([f'{{{ID}:"first",{ID}:"second"}}', f'{{{ID}:"m",{ID}:null}}'])
    assert columns[wire.MESSAGE_ID] == ["second", None]


def test_headers_of_five_megabytes_are_read():
    texts = [f'{{{ID}:"1"}}', json.dumps({"own": LONG, wire.MESSAGE_ID: "2", wire.CONVERSATION_ID: LONG}), LONG]
    columns, problems = columns_of(texts)
    assert list(problems) == [2]
    assert len(problems[2]) < 200, "the text itself is not repeated"
    assert columns[wire.MESSAGE_ID] == ["1", "2", None]
    assert columns[wire.CONVERSATION_ID] == [None, LONG, None]


@pytest.mark.parametrize("count", [CHUNK_MESSAGES - 1, CHUNK_MESSAGES, CHUNK_MESSAGES + 1, 2 * CHUNK_MESSAGES + 1])
def test_bad_headers_are_reported_by_their_position_in_the_part(count):
    bad = {0, CHUNK_MESSAGES - 2, CHUNK_MESSAGES, count - 1} & set(range(count))
    texts = ["no json" if at in bad else f'{{{ID}:"{at}"}}' for at in range(count)]
    columns, problems = columns_of(texts)
    assert set(problems) == bad
    assert columns[wire.MESSAGE_ID] == [None if at in bad else str(at) for at in range(count)]


# --- rows --------------------------------------------------------------------------------------------------


def test_what_relates_results_to_a_message_is_taken_out_of_its_headers():
    text = wire.encode(
        {
            wire.MESSAGE_ID: "m1",
            wire.CORRELATION_ID: "c1",
            wire.CONVERSATION_ID: "v1",
            wire.REPLY_TO_ADDRESS: "shop",
            wire.ENCLOSED_MESSAGE_TYPES: "Shop.OrderPlaced",
            wire.TIME_SENT: "2026-02-03 04:05:06:123456 Z",
            wire.ORIGINATING_SAGA_ID: "s1",
            wire.ORIGINATING_SAGA_TYPE: "Shop.Saga",
        }
    )
    messages, unreadable = prepare(part(row(1, text, correlation="old", reply_to="older")))
    assert unreadable == []
    assert messages.schema == SCHEMA
    assert messages.to_pylist() == [
        {
            "id": "id1",
            "row_version": 1,
            "headers": text,
            "body": b"x",
            "message_id": "m1",
            "correlation_id": "c1",
            "conversation_id": "v1",
            "reply_to": "shop",
            "message_type": "Shop.OrderPlaced",
            "enqueued": datetime(2026, 2, 3, 4, 5, 6, 123456, UTC),
            "saga_id": "s1",
            "saga_type": "Shop.Saga",
        }
    ]


def test_what_headers_lack_is_taken_from_the_row():
    (message,) = prepare(part(row(1, "{}", body=None, correlation="c1", reply_to="shop")))[0].to_pylist()
    assert (message["message_id"], message["correlation_id"], message["reply_to"]) == ("id1", "c1", "shop")
    assert (message["body"], message["enqueued"], message["message_type"]) == (b"", None, None)


def test_an_empty_value_counts_as_none():
    text = wire.encode({wire.MESSAGE_ID: "", wire.REPLY_TO_ADDRESS: ""})
    (message,) = prepare(part(row(1, text)))[0].to_pylist()
    assert (message["message_id"], message["reply_to"]) == ("id1", None)


def test_rows_that_cannot_be_read_are_left_out_and_named():
    messages, unreadable = prepare(part(row(1, "no json"), row(2, "{}"), row(3, '{"a":5}'), row(4, "{}")))
    assert messages["id"].to_pylist() == ["id2", "id4"]
    assert [(one.row_version, one.id) for one in unreadable] == [(1, "id1"), (3, "id3")]
    assert unreadable[1].problem == "header 'a' is a JSON int, not a string"


rows_of_others = st.tuples(
    header_texts, st.none() | st.binary(max_size=3), st.none() | texts_of_others, st.none() | texts_of_others
)


@settings(deadline=None)
@given(st.lists(rows_of_others, max_size=12))
@example([(text, b"", None, None) for text in (*GOOD, *BAD)])
def test_a_row_in_a_batch_is_prepared_as_it_is_alone(found):
    """Hostile rows among them: none takes the values of a neighbour, and none spoils one."""
    rows = [
        row(number, text, body=body, correlation=correlation, reply_to=reply_to)
        for number, (text, body, correlation, reply_to) in enumerate(found)
    ]
    alone = [prepare(part(one)) for one in rows]
    messages, unreadable = prepare(part(*rows))
    assert messages.to_pylist() == [message for readable, _ in alone for message in readable.to_pylist()]
    assert unreadable == [one for _, bad in alone for one in bad]
    assert messages.num_rows + len(unreadable) == len(rows)


def test_half_a_surrogate_pair_in_a_header_fails_no_batch():
    text = wire.encode({wire.CONVERSATION_ID: "half \ud83d", wire.MESSAGE_ID: "m1"})
    whole = wire.encode({wire.CONVERSATION_ID: "whole 😀"})
    messages, unreadable = prepare(part(row(1, text), row(2, "{}"), row(3, whole)))
    assert unreadable == []
    assert messages["conversation_id"].to_pylist() == ["half ?", None, "whole 😀"]
    assert messages["headers"].to_pylist() == [text, "{}", whole]


# --- times -------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)), max_size=4))
def test_timestamps_of_the_wire_are_instants(moments):
    moments = [moment.replace(tzinfo=UTC) for moment in moments]
    texts = pa.array([wire.format_timestamp(moment) for moment in moments], pa.string())
    assert parse_timestamps(texts).to_pylist() == moments


@settings(deadline=None)
@given(st.lists(st.none() | st.text(st.characters(codec="utf-8"))))
def test_what_is_no_timestamp_of_the_wire_is_no_instant(texts):
    assert parse_timestamps(pa.array(texts, pa.string())).to_pylist() == [None] * len(texts)


@pytest.mark.parametrize("text", ["", "2026-13-01 00:00:00:000000 Z", "2026-02-03T04:05:06.123456Z", "yesterday"])
def test_other_text_is_not_read_as_an_instant(text):
    assert parse_timestamps(pa.array([text], pa.string())).to_pylist() == [None]


@pytest.mark.parametrize("text", ["2026-02-30 00:00:00:000000 Z", "2026-02-03 00:00:61:000000 Z"])
def test_a_day_or_second_that_does_not_exist_is_no_instant(text):
    assert parse_timestamps(pa.array([text], pa.string())).to_pylist() == [None]
