import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.claimed_batch import SCHEMA, decode_all, parse_timestamps, prepare
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.claimed_columns import SCHEMA as READ

GOOD = ["{}", '{"a":"b"}', '{"a":"b","c":"d"}', ' {"a" : "b"} ', '{"a":null}', "", '{"a":"},{"}', '{"a":"\\u00e9/"}']
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
flat = st.dictionaries(st.text(), st.text(), max_size=3)
headers = st.sampled_from(GOOD + BAD) | flat.map(json.dumps) | flat.map(wire.encode)
fragments = st.lists(st.sampled_from(["{", "}", '"', ":", ",", "[", "]", '"a"', "{}", " ", "\\", "5"]), max_size=8)


def one_by_one(texts):
    decoded, problems = [], {}
    for at, text in enumerate(texts):
        try:
            decoded.append(wire.decode(text))
        except ValueError as error:
            decoded.append({})
            problems[at] = str(error)
    return decoded, problems


@settings(deadline=None)
@given(st.lists(headers | fragments.map("".join) | fragments.map(lambda parts: "{" + "".join(parts) + "}")))
@example(["{},{}", '{"a":"}', '{"}'])
@example(['{"a" : 5}'])
@example(['{"a" :[{}', "{}]}"])
@example(["{}", ""])
def test_headers_decoded_together_are_those_decoded_one_by_one(texts):
    assert decode_all(texts) == one_by_one(texts)


@pytest.mark.parametrize("bad", BAD, ids=lambda text: text[:20])
def test_one_bad_text_is_named_and_leaves_the_others_readable(bad):
    decoded, problems = decode_all(['{"n":"1"}', bad, '{"n":"3"}'])
    assert list(problems) == [1]
    assert (decoded[0], decoded[2]) == ({"n": "1"}, {"n": "3"})


def part(*rows):
    columns = list(zip(*rows, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind.type) for column, kind in zip(columns, READ, strict=True)], schema=READ
    )


def row(number, text, *, body=b"x", correlation=None, reply_to=None):
    return f"id{number}", number, text, body, correlation, reply_to


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


def test_half_a_surrogate_pair_in_a_header_spoils_no_batch():
    text = wire.encode({wire.CONVERSATION_ID: "half \ud83d", wire.MESSAGE_ID: "m1"})
    messages, unreadable = prepare(part(row(1, text), row(2, "{}")))
    assert unreadable == []
    assert messages["conversation_id"].to_pylist() == ["half ?", None]
    assert messages["headers"].to_pylist() == [text, "{}"]


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
def test_anything_else_is_no_instant(text):
    assert parse_timestamps(pa.array([text], pa.string())).to_pylist() == [None]
