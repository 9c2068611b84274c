"""JSON numbers with more digits than a double holds, exact where a `Decimal` is declared.

pydantic parses a JSON number with a fraction to a double. The few bodies with long numbers are rewritten before
pydantic sees them: where the schema allows only a `Decimal`, the number becomes a JSON string, which is read exactly.
Numbers stay unchanged behind a validator of mode "before", "wrap" or "plain", and in a union of `Decimal` with another
single value.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from queue_pipeline.processing.body.arrow_types import SINGLE_VALUES, WRAPPERS, Node, definitions_of

_INSIDE = WRAPPERS | dict.fromkeys(("nullable", "default", "model", "dataclass"), "schema")


def _character(code: int) -> int:
    """Map digits and the point to 0, the letters of an exponent to e, all that is no part of a number to a space."""
    return ord("0") if code in b"0123456789." else ord("e") if code in b"eE" else code if code in b"-" else ord(" ")


_LONG_NUMBER = re.compile(rb"[:\[,\s]-?(?:[0-9.]{16}|[0-9.]+[eE]-[0-9]{3})")
# The regular expression takes 10 µs for an order of 850 bytes; looking for its traces in all texts at once takes 1.
_CHARACTERS = bytes.maketrans(bytes(range(256)), bytes(_character(code) for code in range(256)))
_TRACES = (b"0" * 16, b"0e-000")


def with_long_numbers(texts: list[bytes]) -> list[int]:
    """Which texts hold a number that a double rounds: 16 digits, or an exponent of -100 and less."""
    characters = b" ".join(texts).translate(_CHARACTERS)
    suspects: set[int] = set()
    for trace in _TRACES:
        if (at := characters.find(trace)) >= 0:
            ends = list(accumulate(len(text) + 1 for text in texts))
            while at >= 0:
                suspects.add(bisect_right(ends, at))
                at = characters.find(trace, ends[bisect_right(ends, at)])
    return [number for number in suspects if _LONG_NUMBER.search(texts[number])]


class _Number(float):
    text: str


@dataclass
class _Place:
    decimal: bool | None = None  # None: no single value may stand here
    opaque: bool = False  # code of the model's own reads what stands here
    parts: dict[str | int, list[_Place]] = field(default_factory=dict)
    items: _Place | None = None
    values: _Place | None = None
    choices: list[_Place] = field(default_factory=list)
    tag: str | None = None
    tagged: dict[Any, _Place] = field(default_factory=dict)


class ExactDecimals:
    """Rewrites bodies of a schema."""

    def __init__(self, core: Any) -> None:
        self.needed = False
        """Whether the schema has decimals at all."""
        self._definitions = definitions_of(core)
        self._known: dict[str, _Place] = {}
        self._body = self._place(core)

    def rewrite(self, body: bytes) -> bytes:
        """The body with its decimals as text; unchanged if it is not usual JSON, for pydantic to judge."""
        try:
            value = json.loads(body.decode(), parse_float=_number, object_pairs_hook=_object)
            return json.dumps(_exact(value, [self._body])).encode()
        except (ValueError, RecursionError):
            return body

    def _place(self, node: Node) -> _Place:
        kind = node["type"]
        if kind in _INSIDE:
            return self._place(node[_INSIDE[kind]])
        if kind in SINGLE_VALUES:
            return _Place(decimal=False)
        match kind:
            case "decimal":
                self.needed = True
                return _Place(decimal=True)
            case "definition-ref":
                return self._definition(node["schema_ref"])
            case "list" | "set" | "frozenset" if "items_schema" in node:
                return _Place(items=self._place(node["items_schema"]))
            case "tuple" if "variadic_item_index" not in node:
                return _Place(parts={at: [self._place(item)] for at, item in enumerate(node["items_schema"])})
            case "tuple" if len(node["items_schema"]) == 1:
                return _Place(items=self._place(node["items_schema"][0]))
            case "dict" if "values_schema" in node:
                return _Place(values=self._place(node["values_schema"]))
            case "model-fields" | "typed-dict":
                return self._object(node["fields"])
            case "dataclass-args":
                return self._object({part["name"]: part for part in node["fields"]})
            case "union":
                return _Place(choices=[self._place(c[0] if isinstance(c, tuple) else c) for c in node["choices"]])
            case "tagged-union":
                choices = {tag: self._place(choice) for tag, choice in node["choices"].items()}
                if isinstance(node["discriminator"], str):
                    return _Place(tag=node["discriminator"], tagged=choices)
                return _Place(choices=list(choices.values()))
            case "none":
                return _Place()
        return _Place(opaque=True)

    def _definition(self, ref: str) -> _Place:
        if ref not in self._known:
            # Entered first: a model may contain itself.
            known = self._known[ref] = _Place()
            known.choices.append(self._place(self._definitions[ref]))
        return self._known[ref]

    def _object(self, fields: dict[str, Node]) -> _Place:
        place = _Place()
        for name, part in fields.items():
            inner = self._place(part["schema"])
            for path in _paths(part.get("validation_alias", name)):
                _put(place, path, inner)
        for name, part in fields.items():
            # Read only if the model is populated by name; elsewhere such a key is ignored.
            if name not in place.parts:
                _put(place, [name], self._place(part["schema"]))
        return place


def _paths(alias: Any) -> list[list[str | int]]:
    if isinstance(alias, str):
        return [[alias]]
    return alias if isinstance(alias[0], list) else [alias]


def _put(place: _Place, path: list[str | int], inner: _Place) -> None:
    *way, last = path
    for step in way:
        place.parts.setdefault(step, []).append(_Place())
        place = place.parts[step][-1]
    place.parts.setdefault(last, []).append(inner)


def _number(text: str) -> _Number:
    number = _Number(text)
    number.text = text
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _exact(value: Any, places: list[_Place]) -> Any:
    places = _expanded(value, places)
    if any(place.opaque for place in places):
        return value
    if isinstance(value, _Number):
        return value.text if {place.decimal for place in places} - {None} == {True} else value
    if isinstance(value, dict):
        return {key: _exact(part, _below(places, key)) for key, part in value.items()}
    if isinstance(value, list):
        return [_exact(part, _below(places, at)) for at, part in enumerate(value)]
    return value


def _expanded(value: Any, places: list[_Place]) -> list[_Place]:
    found = []
    for place in places:
        if place.tag is not None:
            tag = value.get(place.tag) if isinstance(value, dict) else None
            chosen = place.tagged.get(tag) if isinstance(tag, str | int) else None
            found += _expanded(value, [chosen] if chosen else [])
        elif place.choices:
            found += _expanded(value, place.choices)
        else:
            found.append(place)
    return found


def _below(places: list[_Place], step: str | int) -> list[_Place]:
    found: list[_Place] = []
    for place in places:
        others = place.values if isinstance(step, str) else place.items
        found += place.parts.get(step, [] if others is None else [others])
    return found
