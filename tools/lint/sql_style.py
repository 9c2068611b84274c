"""The form of the files in sql/: lines of readable width, one blank line between sections, a reason and the locks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from queue_pipeline.transport.database.statements import Section, sections
from tools.lint.files import ROOT
from tools.sql_docs import DIALECTS

SQL = ROOT / "sql"
WIDEST = 120
CHANGES = re.compile(r"\b(?:INSERT|UPDATE|DELETE|MERGE|CREATE|ALTER|DROP|GRANT|VACUUM|COPY|sp_getapplock)\b")
LOCKS = re.compile(r"\bFOR (?:UPDATE|KEY SHARE)\b|\b\w*LOCK\b|READPAST|REPEATABLEREAD|pg_advisory_xact_lock")


def file_problems(text: str) -> Iterator[str]:
    """What is wrong with the form of a file."""
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > WIDEST:
            yield f"{number}: is longer than {WIDEST} characters"
    if not text.startswith("-- name: "):
        yield "1: begins with something else than a section"
    if not text.endswith("\n") or text.endswith("\n\n"):
        yield "end: needs one line end"
    if "\n\n\n" in text or text.count("\n\n") != text.count("\n\n-- name: "):
        yield "one blank line stands between sections, and none inside of them"


def section_problems(dialect: str, section: Section) -> Iterator[str]:
    """What is wrong with the comment of a section."""
    reason, _, locks = section.comment.partition("Locks: ")
    if len(reason.split()) < 3:
        yield "does not say why it is there"
    if not re.fullmatch(r"[\w ,;()']+\.", locks):
        yield "does not end its comment by its locks (Locks: none.)"
    if not section.text.strip() or "--" in section.text:
        yield "is empty, or a comment of it would be sent"
    is_read = dialect != "sqlserver" and not LOCKS.search(section.text) and not section.name.endswith(".open")
    if CHANGES.search(section.text):
        if locks == "none.":
            yield "changes something, and says that it takes no lock"
    elif is_read and locks not in ("none.", "none of its own."):
        yield "only reads, and says that it takes a lock"


def find_bad_sections() -> Iterator[str]:
    """What is wrong with the form of sql/."""
    for dialect in DIALECTS:
        for path in sorted((SQL / dialect).rglob("*.sql")):
            yield from (f"{_name(path)}:{problem}" for problem in file_problems(path.read_text(encoding="utf-8")))
        for section in sections(dialect):
            yield from (f"sql/{dialect}, {section.name}: {problem}" for problem in section_problems(dialect, section))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
