"""The same plan for every batch of a transform, to the letter: Spark compiles what it has not seen before.

Spark turns a query into Java source and keeps what it compiled by that source. The client numbers the variables of
lambda functions (`F.transform`, `F.aggregate`, …) from the start of the process on, and the numbers stand in the
source, in comments: every batch would be compiled anew, and Java would never get to optimise it. Measured, batches of
20,000 messages: 60 of 140 microseconds of Java's time a message went to its compilers.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_FIRST = 1_000_000
"""Beyond what a module numbers that makes its expressions once, when it is loaded."""
_numbers: ContextVar[Iterator[int] | None] = ContextVar("queue_pipeline_lambda_numbers", default=None)


@contextlib.contextmanager
def stable_names() -> Iterator[None]:
    """Number lambda variables from the same number on, in this block and thread.

    Within a block every number is given once, and that is all that nested functions need. A classic session numbers
    them in Java, out of reach; nothing changes there.
    """
    _install()
    before = _numbers.set(itertools.count(_FIRST))
    try:
        yield
    finally:
        _numbers.reset(before)


def _install() -> None:
    """Have the client of Spark Connect ask here first; where it has no such function, nothing is done."""
    try:
        variable: Any = importlib.import_module("pyspark.sql.connect.expressions").UnresolvedNamedLambdaVariable
        original = variable.fresh_var_name
    except (ImportError, AttributeError):
        return
    if getattr(original, "is_stable", False):
        return

    def fresh_var_name(name: str) -> str:
        numbers = _numbers.get()
        return str(original(name)) if numbers is None else f"{name}_{next(numbers)}"

    fresh_var_name.is_stable = True  # type: ignore[attr-defined]
    variable.fresh_var_name = staticmethod(fresh_var_name)
