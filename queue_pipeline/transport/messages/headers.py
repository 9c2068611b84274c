"""The wire format of message headers, as in NServiceBus, and the only module that contains header names."""

from __future__ import annotations

import functools
import json
import json.encoder
import re
import socket
import sys
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from queue_pipeline.errors import InvalidMessageError

MESSAGE_ID: Final = "NServiceBus.MessageId"
CORRELATION_ID: Final = "NServiceBus.CorrelationId"
CONVERSATION_ID: Final = "NServiceBus.ConversationId"
RELATED_TO: Final = "NServiceBus.RelatedTo"
MESSAGE_INTENT: Final = "NServiceBus.MessageIntent"
ENCLOSED_MESSAGE_TYPES: Final = "NServiceBus.EnclosedMessageTypes"
CONTENT_TYPE: Final = "NServiceBus.ContentType"
REPLY_TO_ADDRESS: Final = "NServiceBus.ReplyToAddress"
ORIGINATING_ENDPOINT: Final = "NServiceBus.OriginatingEndpoint"
ORIGINATING_MACHINE: Final = "NServiceBus.OriginatingMachine"
ORIGINATING_HOST_ID: Final = "$.diagnostics.originating.hostid"
TIME_SENT: Final = "NServiceBus.TimeSent"
TIME_TO_BE_RECEIVED: Final = "NServiceBus.TimeToBeReceived"
DELIVER_AT: Final = "NServiceBus.DeliverAt"
FORWARD_DESTINATION: Final = "NServiceBus.SqlServer.ForwardDestination"
FAILED_QUEUE: Final = "NServiceBus.FailedQ"
TIME_OF_FAILURE: Final = "NServiceBus.TimeOfFailure"
EXCEPTION_PREFIX: Final = "NServiceBus.ExceptionInfo."
EXCEPTION_TYPE: Final = "NServiceBus.ExceptionInfo.ExceptionType"
INNER_EXCEPTION_TYPE: Final = "NServiceBus.ExceptionInfo.InnerExceptionType"
EXCEPTION_MESSAGE: Final = "NServiceBus.ExceptionInfo.Message"
EXCEPTION_SOURCE: Final = "NServiceBus.ExceptionInfo.Source"
EXCEPTION_STACK_TRACE: Final = "NServiceBus.ExceptionInfo.StackTrace"
EXCEPTION_DATA_PREFIX: Final = "NServiceBus.ExceptionInfo.Data."
RETRIES: Final = "NServiceBus.Retries"
RETRIES_TIMESTAMP: Final = "NServiceBus.Retries.Timestamp"
FIRST_LEVEL_RETRIES: Final = "NServiceBus.FLRetries"
PROCESSING_STARTED: Final = "NServiceBus.ProcessingStarted"
PROCESSING_ENDED: Final = "NServiceBus.ProcessingEnded"
PROCESSING_ENDPOINT: Final = "NServiceBus.ProcessingEndpoint"
PROCESSING_MACHINE: Final = "NServiceBus.ProcessingMachine"
HOST_ID: Final = "$.diagnostics.hostid"
HOST_DISPLAY_NAME: Final = "$.diagnostics.hostdisplayname"
CONTROL_MESSAGE: Final = "NServiceBus.ControlMessage"
RETURN_CODE: Final = "NServiceBus.ReturnMessage.ErrorCode"
ORIGINATING_SAGA_ID: Final = "NServiceBus.OriginatingSagaId"
ORIGINATING_SAGA_TYPE: Final = "NServiceBus.OriginatingSagaType"
SAGA_ID: Final = "NServiceBus.SagaId"
SAGA_TYPE: Final = "NServiceBus.SagaType"
RETRY_UNIQUE_MESSAGE_ID: Final = "ServiceControl.Retry.UniqueMessageId"
RETRY_ACKNOWLEDGEMENT_QUEUE: Final = "ServiceControl.Retry.AcknowledgementQueue"
RETRY_ACKNOWLEDGEMENT_SENT: Final = "ServiceControl.Retry.AcknowledgementSent"
RETRY_SUCCESSFUL: Final = "ServiceControl.Retry.Successful"
EDIT_OF: Final = "ServiceControl.EditOf"

NGINN_RETRY_COUNT: Final = "_NG_RetryCount"
NGINN_DELIVER_AT: Final = "_NG-DeliverAt"
NGINN_LABEL: Final = "_NG-Label"
NGINN_CORRELATION_ID: Final = "_NG-CorrelationId"
NGINN_BUS_MESSAGE_ID: Final = "_NG-BusMessageId"
NGINN_CONTENT_TYPE: Final = "_NG-ContentType"
NGINN_TIME_TO_LIVE: Final = "_NG-TTL"
NGINN_REPLY_TO: Final = "_NG-ReplyTo"
NGINN_SEQUENCE: Final = "_NG-Seq"
NGINN_SEQUENCE_NUMBER: Final = "_NG-SeqNum"
NGINN_SEQUENCE_LENGTH: Final = "_NG-SeqLen"
NGINN_EXCLUSION_ID: Final = "_NG-ExclId"
NGINN_PRIORITY: Final = "_NG-Priority"
"""Not one of NGinn's: how a program here asks for an urgent message, which a table shows by its due time alone."""
MARKER_INTERFACES: Final = frozenset({"NServiceBus.IMessage", "NServiceBus.ICommand", "NServiceBus.IEvent"})
"""Types that say what a message is for; they can be subscribed to, but are not listed among its types."""

RESERVED_PREFIXES: Final = ("NServiceBus.", "ServiceControl.", "$.diagnostics.")
"""Headers that the platform fills in; those of a program's own have other names."""

UNREADABLE: Final = "\x00"
"""How a text begins that stands in place of headers which no JSON text can be made of; the reason follows."""
_SHOWN_NAME: Final = 60

_quote: Final = json.encoder.encode_basestring
_TIMESTAMP_LENGTH: Final = 28
_NEEDS_ESCAPE = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
_TIME_SPAN = re.compile(r"(-)?(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,7}))?\Z")


def encode(headers: Mapping[str, str]) -> str:
    """Headers as the JSON text of the Headers column, escaped as the reference does it.

    The text between the values is cached by the header names: this takes a third of the time of `json.dumps`.
    """
    if not headers:
        return "{}"
    values = list(headers.values())
    try:
        frame, together = _frame(tuple(headers)), "".join(values)
    except TypeError:
        check_text(headers)
        raise
    if '"' in together or "\\" in together or not together.isprintable():
        values = [_quote(value)[1:-1] for value in values]
    pieces = [""] * (2 * len(values))
    pieces[::2], pieces[1::2] = frame, values
    text = "".join(pieces).replace("/", "\\/") + '"}'
    return text if text.isascii() else _NEEDS_ESCAPE.sub(_surrogate_pair, text)


def quote(name: str) -> str:
    """A header's name as it stands in the JSON text."""
    return _quote(name).replace("/", "\\/")


def escape(value: str) -> str:
    """A header's value as it stands between quotes in the JSON text."""
    return encode({"": value}).removeprefix('{"":"').removesuffix('"}')


def check_text(headers: Mapping[str, str]) -> None:
    """Refuse headers that are not text, naming the first."""
    try:
        # Joining looks at the types in C, several times faster than a loop, and bulk sends check every message.
        "".join(headers)
        "".join(headers.values())
        return
    except TypeError:
        pass
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidMessageError(
                f"header {name!r} of message {headers.get(MESSAGE_ID, '(no id)')} is {type(value).__name__}, not text; "
                "an NServiceBus endpoint would dead-letter the message: convert the value to str"
            )


def to_ascii(text: str) -> str:
    """The same JSON text with every other character escaped, for columns that would lose them."""
    return text if text.isascii() else re.sub(r"[^\x00-\x7f]", _surrogate_pair, text)


def decode(text: str | None) -> dict[str, str]:
    """The headers of a stored row; null values count as absent. Raises ValueError when it is no flat JSON object."""
    if not text:
        return {}
    if text.startswith(UNREADABLE):
        reason = text.removeprefix(UNREADABLE)
        # A stored text may begin like that, too: nothing of it goes into logs and error copies.
        raise ValueError(reason if reason.isprintable() and reason else "headers begin with a NUL character")
    check_unicode(text, "headers")
    try:
        parsed = json.loads(text)
    except RecursionError:
        raise ValueError("headers are nested too deeply to be a flat JSON object") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"headers are a JSON {type(parsed).__name__}, not an object")
    for name, value in parsed.items():
        if value is not None and not isinstance(value, str):
            raise ValueError(f"header {name[:_SHOWN_NAME]!r} is a JSON {type(value).__name__}, not a string")
    return {name: value for name, value in parsed.items() if value is not None}


def add_columns(headers: dict[str, str], correlation_id: str | None, reply_to_address: str | None) -> dict[str, str]:
    """Put what version 1 kept in columns into the headers of a row, where they lack it."""
    for name, value in ((CORRELATION_ID, correlation_id), (REPLY_TO_ADDRESS, reply_to_address)):
        if value and not headers.get(name):
            headers[name] = value
    return headers


def check_unicode(text: str, what: str) -> None:
    """Refuse a stored text that is none; drivers hand over half a surrogate pair, or a byte, in its place."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} are not Unicode: half a surrogate pair, or bytes that are not UTF-8, at character {error.start}"
        ) from None


def format_timestamp(moment: datetime) -> str:
    """A UTC instant as `yyyy-MM-dd HH:mm:ss:ffffff Z`."""
    if moment.tzinfo is None:
        raise ValueError("a naive datetime has no instant; give it a time zone")
    utc = moment.astimezone(UTC)
    seconds, _, fraction = utc.isoformat(sep=" ", timespec="microseconds").removesuffix("+00:00").partition(".")
    return f"{seconds}:{fraction} Z"


def parse_timestamp(text: str) -> datetime:
    """The instant of a 28-character timestamp; digits are read by position, as the reference does."""
    if len(text) != _TIMESTAMP_LENGTH:
        raise ValueError(f"timestamp {text!r} has {len(text)} characters, not {_TIMESTAMP_LENGTH}")
    fields = (text[0:4], text[5:7], text[8:10], text[11:13], text[14:16], text[17:19], text[20:26])
    if not all(field.isascii() and field.isdigit() for field in fields):
        raise ValueError(f"timestamp {text!r} is not of the form yyyy-MM-dd HH:mm:ss:ffffff Z")
    year, month, day, hour, minute, second, microsecond = (int(field) for field in fields)
    return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC)


def format_time_span(span: timedelta) -> str:
    """A duration in .NET's constant form, `[-][d.]hh:mm:ss[.fffffff]`."""
    sign, magnitude = ("-", -span) if span < timedelta(0) else ("", span)
    hours, rest = divmod(magnitude.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    days = f"{magnitude.days}." if magnitude.days else ""
    fraction = f".{magnitude.microseconds:06d}0" if magnitude.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def parse_time_span(text: str) -> timedelta:
    """The duration of a .NET constant-form time span."""
    match = _TIME_SPAN.match(text)
    if match is None:
        raise ValueError(f"time span {text!r} is not of the form [-][d.]hh:mm:ss[.fffffff]")
    sign, days, hours, minutes, seconds, fraction = match.groups()
    span = timedelta(
        days=int(days or 0),
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(seconds),
        microseconds=int((fraction or "").ljust(7, "0")[:6] or 0),
    )
    return -span if sign else span


def format_bool(value: bool) -> str:
    """A flag as .NET prints it."""
    return "True" if value else "False"


def is_control(headers: Mapping[str, str]) -> bool:
    """Whether a message is for the platform and not for a handler: its body means nothing, and is mostly empty."""
    return headers.get(CONTROL_MESSAGE, "").lower() == "true"


def standard_headers(
    *,
    message_type: str | None = None,
    content_type: str = "application/json",
    endpoint: str | None = None,
    reply_to: str | None = None,
    message_id: str | None = None,
    sent_at: datetime | None = None,
) -> dict[str, str]:
    """The headers of a new message that starts its own conversation; callers overwrite what they know better."""
    identity = message_id or str(uuid.uuid4())
    headers = {
        MESSAGE_ID: identity,
        CORRELATION_ID: identity,
        CONVERSATION_ID: str(uuid.uuid4()),
        MESSAGE_INTENT: "Send",
        CONTENT_TYPE: content_type,
        TIME_SENT: format_timestamp(sent_at or datetime.now(UTC)),
        ORIGINATING_ENDPOINT: endpoint or "queue_pipeline",
        ORIGINATING_MACHINE: machine_name(),
        ORIGINATING_HOST_ID: host_id(),
    }
    if message_type is not None:
        headers[ENCLOSED_MESSAGE_TYPES] = message_type
    if reply_to is not None:
        headers[REPLY_TO_ADDRESS] = reply_to
    return headers


@functools.cache
def machine_name() -> str:
    """This machine's name, asked for once."""
    return socket.gethostname()


@functools.cache
def host_id() -> str:
    """A stable id of this program on this machine, 32 hexadecimal digits as ServiceControl demands."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"queue_pipeline:{sys.prefix}:{machine_name()}").hex


@functools.lru_cache(maxsize=256)
def _frame(names: tuple[str, ...]) -> tuple[str, ...]:
    """What stands before each value. Raises TypeError when a name is no text."""
    return tuple(('",' if position else "{") + _quote(name) + ':"' for position, name in enumerate(names))


def _surrogate_pair(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04X}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
