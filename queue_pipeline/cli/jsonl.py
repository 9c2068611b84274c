"""A message as people write it: a line of a JSONL file, or the options of `send`."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import IO, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from queue_pipeline.cli.parameters import SHORTEST_TIME_TO_LIVE
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import LONGEST_DELAY, LONGEST_TIME_TO_LIVE, OutgoingMessage, new_message

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_POSITION = re.compile(r" at line 1 column (\d+)$")
_HEADER_OF_FIELD = {
    "type": wire.ENCLOSED_MESSAGE_TYPES,
    "content_type": wire.CONTENT_TYPE,
    "reply_to": wire.REPLY_TO_ADDRESS,
    "message_id": wire.MESSAGE_ID,
}


class MessageLine(BaseModel):
    """One message. Unknown fields are refused: a misspelt one would otherwise be dropped without a word."""

    model_config = ConfigDict(extra="forbid", strict=True)

    body: Any = None
    body_base64: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    type: str | None = Field(default=None, min_length=1)
    content_type: str | None = Field(default=None, min_length=1)
    reply_to: str | None = Field(default=None, min_length=1)
    message_id: str | None = Field(default=None, min_length=1)
    ttl: float | None = Field(default=None, ge=SHORTEST_TIME_TO_LIVE, le=LONGEST_TIME_TO_LIVE.total_seconds())
    delay: float | None = Field(default=None, ge=0, le=LONGEST_DELAY.total_seconds())

    _content: bytes = PrivateAttr()

    @model_validator(mode="after")
    def _says_one_thing(self) -> MessageLine:
        if self.body_base64 is None and "body" not in self.model_fields_set:
            raise ValueError('neither body nor body_base64 is given; an empty body is written as "body": ""')
        if self.body_base64 is not None and self.body is not None:
            raise ValueError("body and body_base64 are both given; give one")
        if self.ttl is not None and self.delay is not None:
            raise ValueError("ttl and delay are both given; a message is either delayed or expires")
        for field, header in _HEADER_OF_FIELD.items():
            if getattr(self, field) is not None and header in self.headers:
                raise ValueError(f"{field} is also given as header {header}; give one")
        self._content = self._encoded_body()
        return self

    def message(self) -> OutgoingMessage:
        """The message with its standard headers."""
        identity = self.message_id
        known = {wire.MESSAGE_ID: identity, wire.CORRELATION_ID: identity} if identity is not None else {}
        return new_message(
            self._content,
            message_type=self.type,
            content_type=self.content_type or "application/json",
            headers={**known, **self.headers},
            time_to_be_received=None if self.ttl is None else timedelta(seconds=self.ttl),
            delay=None if self.delay is None else timedelta(seconds=self.delay),
            reply_to=self.reply_to,
        )

    def _encoded_body(self) -> bytes:
        if self.body_base64 is not None:
            try:
                return base64.b64decode(self.body_base64, validate=True)
            except ValueError:
                raise ValueError("body_base64 is not valid Base64") from None
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else compact_json(self.body)).encode()


class JsonLine(NamedTuple):
    """A line of a file: its number from 1, and either what it says or what is wrong with it."""

    number: int
    content: MessageLine | None
    reason: str = ""


def read_lines(file: IO[bytes]) -> Iterator[JsonLine]:
    """The lines of a JSONL file from its beginning, one at a time; blank ones are left out."""
    file.seek(0)
    for number, line in enumerate(file, 1):
        text = (line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).rstrip()
        if not text:
            continue
        try:
            yield JsonLine(number, MessageLine.model_validate_json(text))
        except ValidationError as error:
            yield JsonLine(number, None, reason(error))


def compact_json(value: Any) -> str:
    """JSON without blanks, characters as they are; what JSON has no word for (NaN, infinity) is refused."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ValueError("body holds a number that JSON cannot carry") from None


def reason(error: ValidationError) -> str:
    """What is wrong with a message, field by field, in one line."""
    found = []
    for problem in error.errors(include_url=False, include_input=False):
        words = _POSITION.sub(r" at column \1", problem["msg"]).removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            words = f"is not a field of a message; known are {', '.join(MessageLine.model_fields)}"
        where = ".".join(map(str, problem["loc"]))
        found.append(f"{where}: {words}" if where else words)
    return "; ".join(found)
