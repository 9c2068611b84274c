"""Loads the statements of `sql/<dialect>/<subject>.sql`: sections, names in braces, values as `:name`.

A section begins at `-- name: …`. The comment below gives its reason and its locks, and is not sent. Braces are filled
with quoted names (or a quoted name as a string literal), never with values; SQLAlchemy's `text()` binds the values.
"""

from __future__ import annotations

import functools
import re
import string
from collections.abc import Iterable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

_SECTION = "-- name: "
VALUE = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")
"""A value in a statement, by the rule of `text()`."""
_KEPT_STATEMENTS = 1_000


class Section(NamedTuple):
    """One statement: `claim_table.renew`, its comment in one line, and its text without comments and blank lines."""

    name: str
    comment: str
    text: str


def sql_folder() -> Traversable:
    """The folder of the statement files: inside the wheel, or beside the package in a checkout."""
    packaged = resources.files("queue_pipeline") / "sql"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "sql"


@functools.cache
def load_statement(dialect: str, name: str) -> str:
    """The text of a section: `claim_table.renew`, or `nservicebus/claim_messages.take`."""
    file, dot, section = name.rpartition(".")
    if not dot:
        raise KeyError(f"statement {name!r} names no section; write file.section")
    found = _load_file(dialect, file).get(section)
    if found is None:
        raise KeyError(f"sql/{dialect}/{file}.sql has no section {section!r}")
    return found.text


@functools.cache
def has_statement(dialect: str, name: str) -> bool:
    """Whether a dialect has a section."""
    file, _, section = name.rpartition(".")
    return (sql_folder() / dialect / f"{file}.sql").is_file() and section in _load_file(dialect, file)


@functools.cache
def braces(dialect: str, name: str) -> frozenset[str]:
    """The names in braces that a statement needs."""
    parsed = string.Formatter().parse(load_statement(dialect, name))
    return frozenset(field for _, field, _, _ in parsed if field)


@functools.lru_cache(maxsize=_KEPT_STATEMENTS)
def value_names(text: str) -> frozenset[str]:
    """The names of the values that a statement binds, as `text()` finds them."""
    return frozenset(VALUE.findall(text))


def numbered_values(name: str, values: Iterable[Any]) -> dict[str, Any]:
    """The values of a row that is repeated: `row_version_0`, `row_version_1`, …"""
    return {f"{name}_{number}": value for number, value in enumerate(values)}


def sections(dialect: str) -> list[Section]:
    """Every section of a dialect, by file, for documents and tests."""
    return [section for file in _files(sql_folder() / dialect, "") for section in _load_file(dialect, file).values()]


@functools.cache
def _load_file(dialect: str, file: str) -> Mapping[str, Section]:
    path = sql_folder() / dialect / f"{file}.sql"
    if not path.is_file():
        raise KeyError(f"sql/{dialect}/{file}.sql does not exist")
    found: dict[str, Section] = {}
    for part in f"\n{path.read_text(encoding='utf-8')}".split(f"\n{_SECTION}")[1:]:
        name, *lines = (line.rstrip() for line in part.splitlines())
        if name in found:
            raise KeyError(f"sql/{dialect}/{file}.sql has two sections {name!r}")
        comment = " ".join(line.removeprefix("--").strip() for line in lines if line.startswith("--"))
        text = "\n".join(line for line in lines if line and not line.lstrip().startswith("--"))
        found[name] = Section(f"{file}.{name}", comment, text)
    return found


def _files(folder: Traversable, prefix: str) -> list[str]:
    found: list[str] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            found += _files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            found.append(prefix + entry.name.removesuffix(".sql"))
    return found
