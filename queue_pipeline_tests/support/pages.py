"""Pages of the documentation whose files are written and whose commands are run by tests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).resolve().parents[2] / "docs"
STEP = re.compile(r"<!-- (file: (?P<file>[\w./]+)|run|prints) -->\n\n```(?P<language>\w+)\n(?P<text>.*?)```", re.S)


class Step(NamedTuple):
    """A block of a page: a file's content, commands, or what the last commands print."""

    file: str | None
    language: str
    text: str


def steps(page: str) -> Iterator[Step]:
    """The marked blocks of a page, in their order."""
    for found in STEP.finditer((DOCS / page).read_text()):
        yield Step(found["file"], found["language"], found["text"])


def file_of(page: str, name: str) -> str:
    """What a page says is in a file."""
    (text,) = [step.text for step in steps(page) if step.file == name]
    return text
