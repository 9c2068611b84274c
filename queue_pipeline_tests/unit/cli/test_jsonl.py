"""A line of a JSONL file: what it may say, what is wrong with it, and how many are cut into chunks."""

from __future__ import annotations

import io
import itertools
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.cli import bulk
from queue_pipeline.cli.jsonl import MessageLine, read_lines
from queue_pipeline.cli.rendering import body_document
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import OutgoingMessage


def parse(line: str) -> OutgoingMessage:
    (read,) = read_lines(io.BytesIO(line.encode()))
    assert read.content is not None, read.reason
    return read.content.message()


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ('"as it is"', b"as it is"),
        ('""', b""),
        ('{ "a": [1, 2.5, null, true], "b": "\\u00eb" }', '{"a":[1,2.5,null,true],"b":"ë"}'.encode()),
        ("null", b"null"),
        ("12345678901234567890", b"12345678901234567890"),
    ],
)
def test_a_string_is_sent_as_it_is_and_anything_else_as_compact_json(body: str, sent: bytes) -> None:
    assert parse(f'{{"body": {body}}}').body == sent


def test_every_field_finds_its_place() -> None:
    message = parse(
        json.dumps(
            {
                "body_base64": "AAH/",
                "headers": {"a": "b"},
                "type": "T",
                "content_type": "text/xml",
                "reply_to": "answers",
                "message_id": "m-1",
                "ttl": 1.5,
            }
        )
    )
    assert message.body == b"\x00\x01\xff"
    assert message.time_to_be_received == timedelta(seconds=1.5)
    assert (
        dict(message.headers)
        | {
            "a": "b",
            wire.ENCLOSED_MESSAGE_TYPES: "T",
            wire.CONTENT_TYPE: "text/xml",
            wire.REPLY_TO_ADDRESS: "answers",
            wire.MESSAGE_ID: "m-1",
            wire.CORRELATION_ID: "m-1",
        }
        == message.headers
    )
    assert parse('{"body": "", "delay": 60}').delay == timedelta(minutes=1)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Invalid JSON: EOF while parsing an object at column 1"),
        ("not json", "Invalid JSON"),
        ('["body"]', "should be an object"),
        ("{}", "neither body nor body_base64 is given"),
        ('{"body": "x", "body_base64": "AAH/"}', "both given"),
        ('{"body_base64": "A*"}', "not valid Base64"),
        ('{"body": "x", "heders": {}}', "heders: is not a field of a message; known are body, "),
        ('{"body": "x", "headers": {"n": 1}}', "headers.n: Input should be a valid string"),
        ('{"body": "x", "headers": {"n": null}}', "headers.n: Input should be a valid string"),
        ('{"body": "x", "ttl": 0}', "ttl: Input should be greater than"),
        ('{"body": "x", "ttl": -1}', "ttl: Input should be greater than"),
        ('{"body": "x", "ttl": 2073601}', "ttl: Input should be less than or equal to 2073600"),
        ('{"body": "x", "ttl": "5"}', "ttl: Input should be a valid number"),
        ('{"body": "x", "delay": -1}', "delay: Input should be greater than"),
        ('{"body": "x", "ttl": 5, "delay": 5}', "either delayed or expires"),
        ('{"body": "x", "type": ""}', "type: String should have at least 1 character"),
        (
            '{"body": "x", "type": "A", "headers": {"NServiceBus.EnclosedMessageTypes": "B"}}',
            "type is also given",
        ),
        ('{"body": NaN}', "a number that JSON cannot carry"),
        ('{"body": 1e400}', "a number that JSON cannot carry"),
        ('{"body": "\\ud800"}', "Invalid JSON"),
        ('{"body": ' + "[" * 500 + "]" * 500 + "}", "Invalid JSON: recursion limit"),
    ],
)
def test_a_line_that_is_no_message_says_why(line: str, reason: str) -> None:
    read = list(read_lines(io.BytesIO(f'{{"body": "good"}}\n{line}\n'.encode())))
    assert read[0].content is not None
    assert (read[1].number, read[1].content) == (2, None)
    assert reason in read[1].reason
    assert "\n" not in read[1].reason


def test_bytes_that_are_not_utf8_are_a_bad_line() -> None:
    (read,) = read_lines(io.BytesIO(b'{"body": "\xff"}'))
    assert read.content is None


def test_blank_lines_byte_order_marks_and_windows_line_ends_are_skipped() -> None:
    read = list(read_lines(io.BytesIO(b'\xef\xbb\xbf{"body": "1"}\r\n\r\n  \n{"body": "2"}')))
    assert [(line.number, line.content and line.content.body) for line in read] == [(1, "1"), (4, "2")]


@given(body=st.one_of(st.binary(), st.text().map(str.encode)), headers=st.dictionaries(st.text(), st.text()))
def test_a_printed_message_can_be_sent_again_unchanged(body: bytes, headers: dict[str, str]) -> None:
    printed = {key: value for key, value in body_document(body).items() if key != "size"}
    line = json.dumps({**printed, "headers": headers})
    message = parse(line)
    assert message.body == body
    assert {name: message.headers[name] for name in headers} == headers


def messages(count: int, **fields: Any) -> list[OutgoingMessage]:
    return [MessageLine(body="x", **fields).message() for _ in range(count)]


def test_chunks_are_bounded_in_number_and_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK_MESSAGES", 4)
    assert [len(chunk) for chunk in bulk.chunks(messages(10))] == [4, 4, 2]
    monkeypatch.setattr(bulk, "CHUNK_BYTES", 2)
    assert [len(chunk) for chunk in bulk.chunks(messages(5))] == [2, 2, 1]
    assert list(bulk.chunks([])) == []


def test_chunks_never_hold_the_same_message_id_twice() -> None:
    twice = [*messages(2), *messages(1, message_id="same"), *messages(2), *messages(1, message_id="same")]
    parts = list(bulk.chunks(twice))
    assert [message for part in parts for message in part] == twice
    assert [len(part) for part in parts] == [5, 1]


def test_chunks_are_made_while_messages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK_MESSAGES", 3)
    endless = (MessageLine(body=str(number)).message() for number in itertools.count())
    first = next(bulk.chunks(endless))
    assert len(first) == 3
    assert int(next(endless).body) <= 4, "no more was read than one chunk needs"
