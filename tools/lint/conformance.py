"""docs/conformance.md says `covered` only where a test carries the number of the entry, and names that test's file."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tools.lint.files import ROOT

TESTS = ROOT / "queue_pipeline_tests"
TABLE = ROOT / "docs" / "conformance.md"
LISTED = {"TT": 30, "XT": 5, "IT": 10, "AS": 44, "AP": 7, "UT": 42}
NUMBERS = [f"{family}-{n:02d}" for family, last in LISTED.items() for n in range(1, last + 1)]
TESTED = {"covered", "adapted"}
STATUSES = TESTED | {"not applicable"}
NUMBER = re.compile(r"(?<![A-Z])(TT|XT|IT|AS|AP|UT)[-_](\d{2})(?!\d)")
FILE = re.compile(r"`((?:unit|integration|acceptance)/(?:\w+/)*test_\w+\.py)`")


class Entry(NamedTuple):
    """A row of the table."""

    number: str
    behaviour: str
    status: str
    reason: str

    @property
    def files(self) -> set[str]:
        """The files of tests that the last column names."""
        return set(FILE.findall(self.reason))

    @property
    def words(self) -> str:
        """The last column without the names of files."""
        return re.sub(r"^(?:`[^`]+\.py`(?:, )?)+(?:: )?", "", self.reason)


def entries(text: str) -> list[Entry]:
    """The rows that have a number."""
    cells = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    )
    return [Entry(*row) for row in cells if NUMBER.fullmatch(row[0])]


def differences(found: list[Entry], carried: Mapping[str, set[str]]) -> Iterator[str]:
    """What is wrong with the entries, given the files whose tests carry each number."""
    listed = Counter(entry.number for entry in found)
    for number in [*NUMBERS, *(listed.keys() - NUMBERS)]:
        if listed[number] != (number in NUMBERS):
            yield f"{number} is listed {listed[number]} times"
    for number in sorted(carried.keys() - set(NUMBERS)):
        yield f"{number} is carried by a test in {', '.join(sorted(carried[number]))} and does not exist"
    for entry in found:
        yield from (f"{entry.number} {problem}" for problem in _problems(entry, carried.get(entry.number, set())))


def _problems(entry: Entry, carriers: set[str]) -> Iterator[str]:
    if entry.status not in STATUSES:
        yield f"has the status {entry.status!r}; it can be {', '.join(sorted(STATUSES))}"
    if len(entry.behaviour.split()) < 3:
        yield "does not say which behaviour it is"
    if bool(carriers) != (entry.status in TESTED):
        yield f"is {entry.status}, and is carried by {len(carriers)} files"
    if entry.files != carriers:
        yield f"names {sorted(entry.files)}; the tests that carry it are in {sorted(carriers)}"
    if entry.status != "covered" and len(entry.words.split()) < 3:
        yield "says neither how nor why"


def carried_numbers(text: str) -> set[str]:
    """Every number that a test function of a module carries in its name or docstring."""
    return {
        f"{family}-{number}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for family, number in NUMBER.findall(f"{node.name} {ast.get_docstring(node) or ''}")
    }


def find_differences() -> Iterator[str]:
    """What is wrong with this project's table."""
    carried: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for number in carried_numbers(path.read_text(encoding="utf-8")):
            carried.setdefault(number, set()).add(path.relative_to(TESTS).as_posix())
    for line in differences(entries(TABLE.read_text(encoding="utf-8")), carried):
        yield f"docs/conformance.md: {line}"
