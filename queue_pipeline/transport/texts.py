"""Texts for people: numbers with nouns, text that every database can store, refused messages in a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


def count_of(number: int, noun: str, more: str = "") -> str:
    """`1 message`, `2,000 messages`; with `more`, such as " or more", always the plural."""
    return f"{number:,}{more} {noun}{'' if number == 1 and not more else 'es' if noun.endswith('ch') else 's'}"


def last_of(number: int, noun: str) -> str:
    """`the last run`, `the last 3 runs`."""
    return f"the last {noun if number == 1 else count_of(number, noun)}"


def storable(text: str, longest: int | None = None) -> str:
    """The text, or its first `longest` characters, without what databases refuse: NUL and halves of surrogate pairs."""
    return text[:longest].replace("\0", "").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def shortened(text: str, longest: int) -> str:
    """The text cut to `longest` units of UTF-16, which is how .NET counts; no surrogate pair is cut in two."""
    if 2 * len(text) <= longest:
        return text
    return text[:longest].encode("utf-16-le", "surrogatepass")[: 2 * longest].decode("utf-16-le", "ignore")


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
