"""Endpoints of NGinn.MessageBus: `sql://alias/Queue`, where the alias is a connection string's name in each process."""

from __future__ import annotations

import re

from queue_pipeline.errors import AddressError

PREFIX = "sql://"
NGINN = "nginn"
"""The layout of these queues, which is the folder of their statements under sql/<dialect>/."""
LONGEST_ENDPOINT = 50
_NAME = re.compile(r"[^\W\d][\w$]*")


def is_endpoint(text: object) -> bool:
    """Whether an address is one of NGinn's; the reference compares the beginning letter by letter."""
    return isinstance(text, str) and text.startswith(PREFIX)


def parse_endpoint(text: str) -> tuple[str, str]:
    """The alias and the table of `sql://alias/Queue`; the reference does not quote table names, so only plain ones."""
    parts = text.removeprefix(PREFIX).split("/")
    if not is_endpoint(text) or len(parts) != 2 or not all(part.strip() for part in parts):
        raise AddressError(f"{text!r} is no endpoint of NGinn.MessageBus; write sql://alias/Queue")
    if len(text) > LONGEST_ENDPOINT:
        raise AddressError(
            f"{text!r} has {len(text)} characters, and the columns for endpoints hold {LONGEST_ENDPOINT}; "
            "choose a shorter alias or queue"
        )
    if not _NAME.fullmatch(parts[1]):
        raise AddressError(
            f"{text!r}: NGinn.MessageBus writes table names without quotes, so a queue's name is made of letters, "
            "digits and _; choose another name"
        )
    return parts[0], parts[1]
