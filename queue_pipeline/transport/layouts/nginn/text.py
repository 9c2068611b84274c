"""The texts of an NGinn row: headers as `name=value|name=value`, and a JSON body whose first property is its type."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.decoder import JSONDecoder
from typing import Any

from queue_pipeline.errors import InvalidMessageError

LONGEST_HEADERS = 4_000
"""Characters; a JSON value of SQL Server's, by which rows travel, holds no more."""
TYPE_PROPERTY = "$type"
_TYPE = re.compile(r'\s*\{\s*"\$type"\s*:\s*"((?:[^"\\]|\\.)*)"')
_BLANK = re.compile(r"[ \t\r\n]*")
_SEPARATOR = re.compile(r"[=|\r\n]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_decoder = JSONDecoder()


def encode_headers(headers: Mapping[str, str], subject: str) -> str:
    """Headers as a row holds them; a header that no reader could parse is refused."""
    pairs = []
    for name, value in headers.items():
        for part in (name, value):
            if _SEPARATOR.search(part):
                raise InvalidMessageError(
                    f"{subject}: its header {name!r} holds =, | or a line end, on which every NGinn reader would stop; "
                    "leave it out, or encode the value"
                )
        if not name.strip():
            raise InvalidMessageError(f"{subject}: a header has no name; give it one")
        pairs.append(f"{name.strip()}={value.strip()}")
    text = "|".join(pairs)
    if not text.isascii():
        name = next(name for name, value in headers.items() if not (name + value).isascii())
        raise InvalidMessageError(
            f"{subject}: its header {name!r} holds characters beyond ASCII, which the column may lose; "
            "put it into the body"
        )
    if len(text) > LONGEST_HEADERS:
        raise InvalidMessageError(
            f"{subject}: its headers have {len(text):,} characters, and a row takes {LONGEST_HEADERS:,}; shorten them"
        )
    return text


def is_writable(value: str) -> bool:
    """Whether a row can have this as the value of a header."""
    return value.isascii() and not _SEPARATOR.search(value)


def decode_headers(text: str | None) -> dict[str, str]:
    """The headers of a row; a ValueError says why they cannot be parsed."""
    headers: dict[str, str] = {}
    for pair in (text or "").split("|"):
        if not pair:
            continue
        parts = pair.split("=")
        if len(parts) != 2:
            raise ValueError(f"the header {pair[:60]!r} is not one name, one = and one value")
        headers[parts[0].strip()] = parts[1].strip()
    return headers


def without_half(beginning: str | None) -> str | None:
    """The beginning of a text without half a surrogate pair at its end."""
    return beginning[:-1] if beginning and "\ud800" <= beginning[-1] <= "\udbff" else beginning


def type_of(body: str | None) -> str | None:
    """The `$type` of a body, if that is its first property; later ones mean nothing to NGinn."""
    found = _TYPE.match(body or "")
    try:
        return str(json.loads(f'"{found.group(1)}"')) if found else None
    except ValueError:
        return None


def typed_body(body: bytes, dotnet_type: str | None, subject: str) -> str:
    """A body as a row holds it: a JSON object in ASCII, whose first property is `$type`; values stay as written."""
    text = _json_text(body, subject)
    if not text.startswith('{"$type":"') or dotnet_type is not None:
        members = _members(text, subject)
        own = next((value for name, value in members if name == TYPE_PROPERTY), None)
        if dotnet_type is None and own is None:
            raise InvalidMessageError(
                f"{subject}: NGinn needs the type of a message; give it a message type of the form "
                "'Namespace.Type, Assembly', or one that stands in the setting `types`"
            )
        kind = json.dumps(dotnet_type) if own is None else own
        rest = [f"{json.dumps(name)}:{value}" for name, value in members if name != TYPE_PROPERTY]
        text = "{" + ",".join([f'"{TYPE_PROPERTY}":{kind}', *rest]) + "}"
    return to_ascii(text)


def to_ascii(text: str) -> str:
    """A JSON text in ASCII, for columns with a code page."""
    return text if text.isascii() else _BEYOND_ASCII.sub(_escaped, text)


def _json_text(body: bytes, subject: str) -> str:
    try:
        text = body.decode("utf-8-sig")
        json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidMessageError(f"{subject}: NGinn bodies are JSON, and this one is not: {error}") from None
    return text.strip()


def _members(text: str, subject: str) -> list[tuple[str, str]]:
    """The members of the root object, with each value as its original text."""
    if not text.startswith("{"):
        raise InvalidMessageError(f"{subject}: NGinn bodies are JSON objects, and this one is another value; wrap it")
    members: list[tuple[str, str]] = []
    at = _skip(text, 1)
    while text[at] != "}":
        name, at = _decoder.raw_decode(text, at)
        first = _skip(text, _skip(text, at) + 1)
        _, at = _decoder.raw_decode(text, first)
        members.append((name, text[first:at]))
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return members


def _skip(text: str, at: int) -> int:
    found: Any = _BLANK.match(text, at)
    return int(found.end())


def _escaped(character: re.Match[str]) -> str:
    return json.dumps(character.group())[1:-1]
