"""Which queues and events a transform names in its source, so that a misspelt one is found before any message is."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from queue_pipeline.processing import outcomes


def literal_destinations(transform: Callable[..., Any]) -> set[str]:
    """The queue names written as literals in `send("…")` and `Results(sends={"…": …})`.

    Names that are computed are looked at when a batch's results are; a transform without source has none here.
    """
    return _literals(transform, outcomes.send, "queue", 0, "sends")


def literal_events(transform: Callable[..., Any]) -> set[str]:
    """The event types written as literals in `publish("…")` and `Results(publications={"…": …})`."""
    return _literals(transform, outcomes.publish, "event", 4, "publications")


def _literals(
    transform: Callable[..., Any], function: Callable[..., Any], argument: str, position: int, keyword: str
) -> set[str]:
    """What is named in calls of a function, and in a mapping among the results."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(transform))))
    except (OSError, TypeError, SyntaxError):
        return set()
    names = getattr(inspect.unwrap(transform), "__globals__", {})
    found: list[str | None] = []
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        called = _resolve(call.func, names)
        if called is function:
            found.append(_text(_argument(call, 0, argument)))
        elif called is outcomes.Results and isinstance(frames := _argument(call, position, keyword), ast.Dict):
            found += [_text(key) for key in frames.keys]
    return {name for name in found if name is not None}


def _argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    if len(call.args) > position:
        return call.args[position]
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _resolve(function: ast.expr, names: dict[str, Any]) -> object:
    """What a called name means where the transform was written: others may have a `send` of their own."""
    if isinstance(function, ast.Attribute):
        return getattr(_resolve(function.value, names), function.attr, None)
    return names.get(function.id) if isinstance(function, ast.Name) else None


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
