"""Progress bars: on stderr, and only where a person sees them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

from queue_pipeline.cli.session import Session

Reached: TypeAlias = Callable[[int], object]
"""Takes how much is done by now."""


@contextlib.contextmanager
def progress(session: Session, words: str, total: int | Callable[[], int] | None = None) -> Iterator[Reached | None]:
    """A bar, or a counter if the total is not known; None where stderr is no terminal, or with --json.

    A function as `total` counts only if there is a bar.
    """
    if session.json or sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    # Imported here because rich takes a fifth of a second to load.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    expected = total() if callable(total) else total
    time_column = TimeElapsedColumn() if expected is None else TimeRemainingColumn()
    columns = (TextColumn(words), BarColumn(), MofNCompleteColumn(), time_column)
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=expected)
        yield lambda done: bar.update(task, completed=done)
