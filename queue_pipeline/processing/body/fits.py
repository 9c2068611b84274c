"""Whether a parsed body is all that it must be: yes or no, for every message; the words for a no cost more."""

from __future__ import annotations

from queue_pipeline.processing.body.shape import Leaf, ListOf, MapOf, Record, Shape
from queue_pipeline.processing.body.sql import member


def value_fits(shape: Shape, required: bool, value: str, depth: int = 0) -> str:
    """The SQL text of a condition that is never null; it holds exactly where `value_problem` finds nothing."""
    conditions = [f"{value} IS NOT NULL"] if required else []
    conditions += [f"({check.violated(value)}) IS NOT TRUE" for check in shape.checks]
    inside = _inside(shape, value, depth)
    if inside is not None:
        conditions.append(inside if required else f"({value} IS NULL OR {inside})")
    return f"({' AND '.join(conditions)})" if conditions else "true"


def _inside(shape: Shape, value: str, depth: int) -> str | None:
    variable = f"f{depth}"
    match shape:
        case Record():
            fields = [
                value_fits(field.shape, field.expected, member(value, field.key), depth) for field in shape.fields
            ]
            needed = [condition for condition in fields if condition != "true"]
            return f"({' AND '.join(needed)})" if needed else None
        case ListOf():
            element = value_fits(shape.element, shape.element_required, variable, depth + 1)
            return None if element == "true" else f"forall({value}, {variable} -> {element})"
        case MapOf():
            element = value_fits(shape.value, shape.value_required, variable, depth + 1)
            return None if element == "true" else f"forall(map_values({value}), {variable} -> {element})"
        case Leaf():
            return None
