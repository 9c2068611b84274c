"""Loads the statements of `sql/`: one file a statement, identifiers in braces, values as `?`.

A file opens with a comment that says why the statement is as it is; the comment is not sent. What the braces
are filled with is always a quoted name (or a quoted name as a string literal), never a value.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Command:
    """A statement ready to run, and the queue, or the user's own table, that an error about it should name."""

    text: str
    queue: str | None = None
    table: str | None = None

    def repeated(self, rows: int) -> Command:
        """The same insert for several rows: the line after the line VALUES is written `rows` times."""
        head, row, tail = self._cut()
        return replace(self, text=head + ",\n".join([row] * rows) + tail)

    def with_rows(self, rows: Iterable[str]) -> Command:
        """The same insert with other rows in place of the line after the line VALUES."""
        head, _, tail = self._cut()
        return replace(self, text=head + ",\n".join(rows) + tail)

    def _cut(self) -> tuple[str, str, str]:
        head, marker, rest = self.text.partition("\nVALUES\n")
        if not marker:
            raise ValueError("only a statement with a line VALUES can be repeated")
        row, newline, tail = rest.partition("\n")
        return head + marker, row, newline + tail


def sql_folder() -> Traversable:
    """Where the statement files are: inside the wheel, or beside the package in a checkout."""
    packaged = resources.files("queue_pipeline") / "sql"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "sql"


@functools.cache
def load_statement(dialect: str, name: str) -> str:
    """The text of `sql/<dialect>/<name>.sql` without its whole-line comments."""
    text = (sql_folder() / dialect / f"{name}.sql").read_text(encoding="utf-8")
    lines = (line.rstrip() for line in text.splitlines() if not line.lstrip().startswith("--"))
    return "\n".join(line for line in lines if line)


@functools.cache
def placeholders(dialect: str, name: str) -> frozenset[str]:
    """The names in braces that a statement needs."""
    parsed = string.Formatter().parse(load_statement(dialect, name))
    return frozenset(field for _, field, _, _ in parsed if field)


def statement_names(dialect: str) -> list[str]:
    """Every statement of a dialect, for tests and tools that look at all of them."""
    return sorted(_walk(sql_folder() / dialect, ""))


def _walk(folder: Traversable, prefix: str) -> list[str]:
    names: list[str] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            names += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            names.append(prefix + entry.name.removesuffix(".sql"))
    return names
