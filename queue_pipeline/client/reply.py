"""A reply as a value."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.messages import headers as wire

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}\Z")


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for a request: a message, or only a number, as a callback that returns an integer sends it."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def message_type(self) -> str | None:
        """The type that its sender named."""
        return self.headers.get(wire.ENCLOSED_MESSAGE_TYPES)

    @property
    def code(self) -> int | None:
        """The number, if it is nothing else: a control message without a body."""
        if not wire.is_control(self.headers):
            return None
        text = self.headers.get(wire.RETURN_CODE, "").strip()
        return int(text) if _INTEGER.match(text) else None

    @property
    def text(self) -> str:
        """The body as text."""
        try:
            return self.body.decode("utf-8")
        except UnicodeDecodeError:
            raise self._wrong("its body is not UTF-8; use body, which is bytes") from None

    def json(self) -> Any:
        """The body as JSON."""
        if self.code is not None:
            raise self._wrong(f"it has no body, only the code {self.code}; use code")
        try:
            # .NET writers may put a byte order mark first.
            return json.loads(self.text.removeprefix("\ufeff"))
        except json.JSONDecodeError as error:
            raise self._wrong(f"its body is not JSON: {error}; use body, which is bytes") from None

    def _wrong(self, problem: str) -> InvalidMessageError:
        return InvalidMessageError(f"reply {self.headers.get(wire.MESSAGE_ID, '(no id)')}: {problem}")
