"""Parameters as PostgreSQL has them, in statements that mark them as ODBC does."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

# What looks like a mark there is none: quoted names and texts (E'…' has backslashes), dollar quotes, comments.
_TOKENS = re.compile(
    r"""
    "[^"]*" | (?<![\w$])[eE]'(?:[^'\\]|\\.|'')*' | '[^']*'
    | (?<![\w$])\$(?P<tag>[^\W\d]\w*|)\$.*?\$(?P=tag)\$
    | --[^\n]* | (?P<comment>/\*) | (?P<mark>\?)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_ENDS = re.compile(r"/\*|\*/")
_LONGEST_KEPT = 32_768
"""An insert of 200 messages is kept: numbering it again would cost 6 µs a message. Longer statements are rare."""


class Numbered(NamedTuple):
    """A statement with `$1`, `$2`, … and how many there are."""

    text: str
    marks: int


def numbered(text: str) -> Numbered:
    """A statement with its question marks numbered; those in quotes and comments stay as they are."""
    return _kept(text) if len(text) <= _LONGEST_KEPT else _number(text)


def _number(text: str) -> Numbered:
    parts: list[str] = []
    count = position = 0
    while (found := _TOKENS.search(text, position)) is not None:
        parts.append(text[position : found.start()])
        position = found.end()
        if found["mark"]:
            count += 1
            parts.append(f"${count}")
            continue
        if found["comment"]:
            position = _comment_end(text, position)
        parts.append(text[found.start() : position])
    parts.append(text[position:])
    return Numbered("".join(parts), count)


_kept = functools.lru_cache(maxsize=200)(_number)


def _comment_end(text: str, position: int) -> int:
    """Where a comment ends that has begun before `position`: comments nest here."""
    depth = 1
    for found in _COMMENT_ENDS.finditer(text, position):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(text)
