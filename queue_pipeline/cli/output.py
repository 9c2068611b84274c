"""Output: one JSON document, or tables and text. Control characters of messages never reach a terminal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport.texts import count_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from queue_pipeline.cli.session import Session

LONGEST_CELL = 80
_UNBOUNDED_WIDTH = 1_000_000
_SIZES = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_TIMES = (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0))
# Control characters but tab and newline, halves of surrogate pairs, and what turns the direction of writing.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def write(text: str) -> None:
    """Write to stdout as it is."""
    _stdout().write(text)


def is_terminal() -> bool:
    """Whether stdout is a terminal."""
    return _stdout().isatty()


def flush() -> None:
    """Hand over all that was written; raises when the output cannot take it."""
    _stdout().flush()


def write_json(document: Mapping[str, Any]) -> None:
    """One JSON document, in ASCII: valid in every locale, whatever a message holds."""
    write(json.dumps(document, indent=2) + "\n")


def answer(session: Session, document: Mapping[str, Any], *lines: str) -> None:
    """The result of a command: with --json the document, else the lines."""
    if session.json:
        write_json(document)
    else:
        write_lines(*lines)


def answer_table(
    session: Session,
    document: Mapping[str, Any],
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    figures: Sequence[str] = (),
    nothing: str = "",
) -> None:
    """The same as a table; `nothing` is what is said instead of a table without rows."""
    if session.json or (nothing and not rows):
        answer(session, document, nothing)
    else:
        write_table(columns, rows, figures)


def write_lines(*lines: str) -> None:
    """Lines of text, never cut or wrapped."""
    for line in lines:
        write(visible(line) + "\n")


def write_heading(line: str) -> None:
    """A line in bold, on a terminal."""
    text = visible(line)
    write((click.style(text, bold=True) if is_terminal() else text) + "\n")


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]], figures: Sequence[str] = ()) -> None:
    """A table, with the columns named in `figures` aligned to the right; cells are never read as markup."""
    console().print(table_of(columns, rows, figures))


def console() -> Console:
    """Where tables are printed; in a pipe or a file they have any width."""
    from rich.console import Console

    shown = Console(file=_stdout(), highlight=False)
    if not shown.is_terminal:
        # A pipe or a file has no width: an id that was cut or wrapped there would be of no use.
        shown.width = _UNBOUNDED_WIDTH
    return shown


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]], figures: Sequence[str] = ()) -> Table:
    """A table that is not printed yet."""
    # Imported here because rich takes a fifth of a second to load, which --json need not pay.
    from rich import box
    from rich.table import Table
    from rich.text import Text

    # Numbers stay in one piece on a narrow terminal; the other columns are folded.
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for column in columns:
        is_figure = column in figures
        table.add_column(Text(column), justify="right" if is_figure else "left", overflow="fold", no_wrap=is_figure)
    for row in rows:
        table.add_row(*(Text("-" if cell is None else visible(str(cell))) for cell in row))
    return table


def visible(text: str) -> str:
    """Text in which every character that could control a terminal is replaced by its code."""
    return _UNSEEN.sub(_code, text.replace("\r\n", "\n"))


def shortened(text: str | None) -> str | None:
    """A text for a cell: in one line, and cut when it is long."""
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_CELL else f"{line[: LONGEST_CELL - 1]}…"


def figure(number: int | None, *, capped: bool = False) -> str | None:
    """A number in a table; `capped`: at least this many."""
    return None if number is None else f"{number:,}{' or more' if capped else ''}"


def duration(seconds: float | None) -> str | None:
    """A duration in the largest unit that fits: `1.5 min`."""
    if seconds is None:
        return None
    sign, size = ("-", -seconds) if seconds < 0 else ("", seconds)
    for unit, length in _TIMES:
        if size >= length:
            return f"{sign}{size / length:.1f} {unit}"
    return f"{sign}{size:.1f} s"


def size_of(number: int) -> str:
    """A number of bytes in the largest unit that fits: `2.0 KiB`."""
    for unit, length in _SIZES:
        if number >= length:
            return f"{number / length:.1f} {unit}"
    return count_of(number, "byte")


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise QueuePipelineError("standard output is closed, so the result would be lost; open it or redirect it")
    return sys.stdout


def _code(found: re.Match[str]) -> str:
    number = ord(found.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
