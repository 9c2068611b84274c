"""What is wrong with a parsed body, as a sentence: SQL expressions that follow the body's shape.

Values are bound by lambda functions, once however often they are used.
"""

from __future__ import annotations

from queue_pipeline.processing.body.shape import Check, Leaf, ListOf, MapOf, Record, Shape
from queue_pipeline.processing.body.sql import concat, first, first_in, member, text, when

# Where a value is in its body, as SQL texts: names, and variables that hold an index or a key.
Place = tuple[str, ...]


def value_problem(shape: Shape, required: bool, value: str, place: Place = ()) -> str:
    """What a parsed value lacks or violates, the first in the order of the fields."""
    problems = [when(f"{value} IS NULL", sentence(place, " is missing or null"))] if required else []
    problems += [when(check.violated(value), _violation(check, value, place)) for check in shape.checks]
    variable = f"x{len(place)}"
    match shape:
        case Record():
            fields = [
                value_problem(field.shape, field.expected, member(value, field.key), below(place, field.key))
                for field in shape.fields
                if _can_go_wrong(field.shape, field.expected)
            ]
            problems.append(when(f"{value} IS NOT NULL", first(fields)))
        case ListOf() if _can_go_wrong(shape.element, shape.element_required):
            index = f"i{len(place)}"
            inside = value_problem(shape.element, shape.element_required, variable, indexed(place, index))
            problems.append(first_in(f"transform({value}, ({variable}, {index}) -> {inside})"))
        case MapOf() if _can_go_wrong(shape.value, shape.value_required):
            key = keyed(place, f"{variable}.key")
            inside = value_problem(shape.value, shape.value_required, f"{variable}.value", key)
            problems.append(first_in(f"transform(map_entries({value}), {variable} -> {inside})"))
        case _:
            pass
    return first(problems)


def sentence(place: Place, *words: str) -> str:
    """Words about a place."""
    return concat([*(place or (text("the body"),)), *map(text, words)])


def below(place: Place, key: str) -> Place:
    """The place of a field."""
    return (*place, text(f".{key}")) if place else (text(key),)


def indexed(place: Place, index: str) -> Place:
    """The place of an element."""
    return (*place, "'['", index, "']'")


def keyed(place: Place, key: str) -> Place:
    """The place of an entry."""
    return (*place, """'["'""", key, """'"]'""")


def _violation(check: Check, value: str, place: Place) -> str:
    return concat([sentence(place, " is "), check.shown(value), text(f", must be {check.words}")])


def _can_go_wrong(shape: Shape, required: bool) -> bool:
    if required or shape.checks:
        return True
    match shape:
        case Record():
            return any(_can_go_wrong(field.shape, field.expected) for field in shape.fields)
        case ListOf():
            return _can_go_wrong(shape.element, shape.element_required)
        case MapOf():
            return _can_go_wrong(shape.value, shape.value_required)
        case Leaf():
            return False
