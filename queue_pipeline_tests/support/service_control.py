"""ServiceControl as far as a sender notices it: how it imports error and audit copies, and sends messages again.

Header names and formats are written out here once more: what the product writes is read by nothing of the product's.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from queue_pipeline.transport import OutgoingMessage

ACKNOWLEDGEMENT_QUEUE = "acknowledgements"
STRIPPED = (
    "NServiceBus.Retries",
    "NServiceBus.FailedQ",
    "NServiceBus.TimeOfFailure",
    "NServiceBus.ExceptionInfo.",
    "ServiceControl.EditOf",
)
_PAIR = r"[^\s,()]+[ \t]+[^\s,()]+"
_FRAME = re.compile(
    r"^[ \t]*\w+[ \t]+"
    r"(?P<type>[^\s]+)\.(?P<method>[^\s]+?)[ \t]*"
    rf"(?P<parameters>\([ \t]*\)|\({_PAIR}(?:,[ \t]*{_PAIR})*\))"
    r"(?:[ \t]+\w+[ \t]+(?P<file>(?:/|[A-Za-z]:).+?):\w+[ \t]+(?P<line>\d+))?"
    r"[ \t]*$",
    re.MULTILINE,
)


class ImportFailedError(Exception):
    """ServiceControl puts such a message aside, where it is easily overlooked."""


@dataclass(frozen=True)
class StackFrame:
    type: str
    method: str
    parameters: str
    file: str | None
    line: int | None


@dataclass(frozen=True)
class FailedMessage:
    """A failure as ServicePulse shows it."""

    unique_id: uuid.UUID
    message_id: str
    failed_queue: str
    endpoint: str
    host: str | None
    host_id: uuid.UUID
    time_of_failure: datetime | None
    time_sent: datetime | None
    exception_type: str | None
    exception_message: str | None
    frames: list[StackFrame]
    groups: dict[str, str | None]
    headers: dict[str, str]
    body: bytes
    body_text: str | None


@dataclass(frozen=True)
class AuditedMessage:
    """A processed message as ServiceControl's audit instance stores it."""

    document_id: str
    message_id: str
    endpoint: str
    host_id: uuid.UUID | None
    processing_time: timedelta | None
    critical_time: timedelta | None
    acknowledge_retry: bool
    """Whether ServiceControl would acknowledge a retry in the endpoint's place."""
    headers: dict[str, str]


def import_error(header_text: str, body: bytes) -> FailedMessage:
    headers = _headers(header_text)
    if "NServiceBus.FailedQ" not in headers:
        raise ImportFailedError("NServiceBus.FailedQ is missing")
    if not headers.get("NServiceBus.MessageId"):
        raise ImportFailedError("NServiceBus.MessageId is missing")
    message_id, endpoint = headers["NServiceBus.MessageId"], _endpoint(headers)
    host = headers.get("$.diagnostics.hostdisplayname") or headers.get("NServiceBus.ProcessingMachine")
    given = headers.get("ServiceControl.Retry.UniqueMessageId")
    failed = FailedMessage(
        unique_id=uuid.UUID(given) if given else guid_of(message_id, endpoint),
        message_id=message_id,
        failed_queue=headers["NServiceBus.FailedQ"],
        endpoint=endpoint,
        host=host,
        host_id=_guid(headers.get("$.diagnostics.hostid")) or guid_of(endpoint, host or ""),
        time_of_failure=_timestamp(headers, "NServiceBus.TimeOfFailure"),
        time_sent=_timestamp(headers, "NServiceBus.TimeSent"),
        exception_type=headers.get("NServiceBus.ExceptionInfo.ExceptionType"),
        exception_message=headers.get("NServiceBus.ExceptionInfo.Message"),
        frames=_frames(headers),
        groups={},
        headers=headers,
        body=body,
        body_text=body.decode() if _is_text(headers) else None,
    )
    failed.groups.update(_groups(failed))
    return failed


def import_audit(header_text: str) -> AuditedMessage:
    headers = _headers(header_text)
    message_id, endpoint = headers.get("NServiceBus.MessageId"), _endpoint(headers)
    if not message_id:
        raise ImportFailedError("NServiceBus.MessageId is missing")
    for name in ("$.diagnostics.hostid", "$.diagnostics.originating.hostid"):
        if name in headers and _guid(headers[name]) is None:
            raise ImportFailedError(f"{name} is no GUID: {headers[name]!r}")
    started = _timestamp(headers, "NServiceBus.ProcessingStarted")
    ended = _timestamp(headers, "NServiceBus.ProcessingEnded")
    due = _timestamp(headers, "NServiceBus.DeliverAt") or _timestamp(headers, "NServiceBus.TimeSent")
    ticks = (started - datetime(1, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 10 if started else 0
    return AuditedMessage(
        document_id=f"{ticks}-{guid_of(message_id, endpoint, headers.get('NServiceBus.ProcessingStarted', ''))}",
        message_id=message_id,
        endpoint=endpoint,
        host_id=_guid(headers.get("$.diagnostics.hostid")),
        processing_time=ended - started if ended and started else None,
        critical_time=ended - due if ended and due else None,
        acknowledge_retry="ServiceControl.Retry.UniqueMessageId" in headers
        and "ServiceControl.Retry.AcknowledgementSent" not in headers,
        headers=headers,
    )


def retry(failed: FailedMessage) -> tuple[str, OutgoingMessage]:
    """The queue and the message when a user presses "retry"."""
    headers = {name: value for name, value in failed.headers.items() if not name.startswith(STRIPPED)}
    headers["ServiceControl.Retry.UniqueMessageId"] = str(failed.unique_id)
    headers["ServiceControl.Retry.AcknowledgementQueue"] = ACKNOWLEDGEMENT_QUEUE
    destination = headers.get("ServiceControl.RetryTo", failed.failed_queue)
    return destination, OutgoingMessage(failed.body, headers)


def parse_frames(text: str) -> list[StackFrame]:
    """The frames in a stack trace of .NET; whatever has another form is passed over."""
    return [
        StackFrame(
            found["type"],
            found["method"],
            found["parameters"],
            found["file"],
            int(found["line"]) if found["line"] else None,
        )
        for found in _FRAME.finditer(text)
    ]


def guid_of(*parts: str) -> uuid.UUID:
    """An MD5 in the byte order of a .NET GUID."""
    return uuid.UUID(bytes_le=hashlib.md5("".join(parts).encode(), usedforsecurity=False).digest())


def _groups(failed: FailedMessage) -> dict[str, str | None]:
    first = failed.frames[0] if failed.frames else None
    where = f"{first.type}.{first.method}{first.parameters}" if first else "No stacktrace"
    types = failed.headers.get("NServiceBus.EnclosedMessageTypes")
    return {
        "Exception Type and Stack Trace": f"{failed.exception_type}: {where}",
        "Message Type": types.split(";")[0].split(",")[0].strip() if types else None,
        "Endpoint Name": failed.endpoint,
        "Endpoint Instance": failed.host_id.hex,
        "Endpoint Address": failed.failed_queue,
    }


def _frames(headers: dict[str, str]) -> list[StackFrame]:
    text = headers.get("NServiceBus.ExceptionInfo.StackTrace", "")
    message = headers.get("NServiceBus.ExceptionInfo.Message")
    return parse_frames(text.replace(message, "") if message else text)


def _headers(text: str) -> dict[str, str]:
    parsed = json.loads(text)
    if not isinstance(parsed, dict):
        raise ImportFailedError("the headers are no object")
    wrong = [name for name, value in parsed.items() if value is not None and not isinstance(value, str)]
    if wrong:
        raise ImportFailedError(f"headers that are no text: {wrong}")
    return {name: value for name, value in parsed.items() if value is not None}


def _endpoint(headers: dict[str, str]) -> str:
    failed_queue = headers.get("NServiceBus.FailedQ", "").partition("@")[0]
    name = headers.get("NServiceBus.ProcessingEndpoint") or failed_queue or headers.get("NServiceBus.ReplyToAddress")
    if not name:
        raise ImportFailedError("nothing names the endpoint that processed the message")
    return name


def _timestamp(headers: dict[str, str], name: str) -> datetime | None:
    text = headers.get(name)
    if text is None:
        return None
    slots = [(0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19), (20, 26)]
    digits = [text[start:end] for start, end in slots]
    if len(text) != 28 or not all(re.fullmatch("[0-9]+", part) for part in digits):
        raise ImportFailedError(f"{name} is no timestamp: {text!r}")
    year, month, day, hour, minute, second, microsecond = map(int, digits)
    return datetime(year, month, day, hour, minute, second, microsecond, tzinfo=UTC)


def _guid(text: str | None) -> uuid.UUID | None:
    if text is None or not re.fullmatch(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        return None
    return uuid.UUID(text)


def _is_text(headers: dict[str, str]) -> bool:
    content_type = headers.get("NServiceBus.ContentType", "")
    textual = content_type.startswith("text/") or "xml" in content_type or "json" in content_type
    return textual and "Content-Encoding" not in headers
