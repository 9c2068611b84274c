"""Progress bars, on stderr and only if it is a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

from queue_pipeline.cli.session import Session

Reached: TypeAlias = Callable[[int], object]
"""Takes how much is done by now."""


@contextlib.contextmanager
def progress(session: Session, words: str, total: int | Callable[[], int] | None = None) -> Iterator[Reached]:
    """A bar; without a total, a counter and the time. No bar with --json, without a terminal, or for one message.

    A function as `total` is called only if there is a bar.
    """
    if total == 1 or session.json or sys.stderr is None or not sys.stderr.isatty():
        yield lambda done: None
        return
    # Imported here because rich takes a fifth of a second to load.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    time_column: ProgressColumn = TimeElapsedColumn() if total is None else TimeRemainingColumn()
    columns = (TextColumn(words, markup=False), BarColumn(), TextColumn("{task.fields[counted]}"), time_column)
    # stdout is left alone: what a command prints there is its result.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=None, counted="")
        expected = total() if callable(total) else total
        of = "" if expected is None else f"/{expected:,}"
        bar.update(task, total=expected)
        yield lambda done: bar.update(task, completed=done, counted=f"{done:,}{of}")
