"""Messages on the way out: as JSON that `send --jsonl` understands, and as text for people."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from queue_pipeline.cli.output import size_of, write_heading, write_lines
from queue_pipeline.transport.messages import headers as wire

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def body_text(body: bytes) -> str | None:
    """The body as text; None when it is none: not UTF-8, or with control characters in it."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if _CONTROL.search(text) else text


def encoded_body(body: bytes) -> str:
    """A body that is no text, for people."""
    return f"(binary, base64) {base64.b64encode(body).decode()}"


def body_document(body: bytes) -> dict[str, Any]:
    """The body under the field that `send --jsonl` reads it from, and its size."""
    text = body_text(body)
    if text is None:
        return {"size": len(body), "body_base64": base64.b64encode(body).decode()}
    return {"size": len(body), "body": text}


def write_message(
    row_version: int, row_id: str, headers: Mapping[str, str] | None, body: bytes, *remarks: str, full: bool
) -> None:
    """One message: a line about it, its headers when `full`, and its whole body."""
    known = headers or {}
    facts = [
        f"message {known.get(wire.MESSAGE_ID) or row_id}",
        f"row {row_version}",
        known.get(wire.ENCLOSED_MESSAGE_TYPES, "").partition(",")[0],
        f"sent {known[wire.TIME_SENT]}" if wire.TIME_SENT in known else "",
        size_of(len(body)),
        *remarks,
    ]
    write_heading(" · ".join(fact for fact in facts if fact))
    if full:
        write_lines(*(f"{name}: {value}" for name, value in known.items()), "")
    text = body_text(body)
    if text is None:
        write_lines(encoded_body(body), "")
    else:
        write_lines(text or "(no body)", "")
