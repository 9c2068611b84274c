"""Refused messages in a log: the first few of each cause with id and reason, and how many there were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from queue_pipeline.transport.words import count_of

FEW = 3
LONGEST_REASON = 300


class Refusal(NamedTuple):
    """Why a message was not taken; the cause is what messages have in common, such as the type of an exception."""

    id: str
    cause: str
    reason: str


def few_of_each(refusals: Iterable[Refusal]) -> Iterator[str]:
    """One line per cause; a thousand messages that fail alike make one line, not a thousand."""
    causes: dict[str, list[Refusal]] = {}
    for refusal in refusals:
        causes.setdefault(refusal.cause, []).append(refusal)
    for cause, found in causes.items():
        examples = "; ".join(f"{one.id}: {one.reason[:LONGEST_REASON]}" for one in found[:FEW])
        more = f"; and {len(found) - FEW:,} more" if len(found) > FEW else ""
        yield f"{count_of(len(found), 'message')}, {cause}: {examples}{more}"
