"""Keeps docs/conformance.md honest: it lists everything, and says `covered` only where a test says so too."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "conformance.md"
LISTED = {"TT": 30, "XT": 5, "IT": 10, "AS": 44, "AP": 7, "UT": 42}
NUMBERS = [f"{family}-{n:02d}" for family, last in LISTED.items() for n in range(1, last + 1)]
STATUSES = {"covered", "adapted", "planned", "not applicable"}
TESTED = {"covered", "adapted"}
# Nothing here for these yet; each must be named by the entries that wait for it.
LAYERS_TO_COME = ("`processing`", "`orchestration`", "request and reply")
NUMBER = re.compile(r"(?<![A-Z])(TT|XT|IT|AS|AP|UT)[-_](\d{2})(?!\d)")


class Entry(NamedTuple):
    number: str
    behaviour: str
    status: str
    reason: str

    @property
    def files(self) -> set[str]:
        return set(re.findall(r"`((?:unit|integration|acceptance)/(?:\w+/)?test_\w+\.py)`", self.reason))

    @property
    def words(self) -> str:
        """The last column without the names of files."""
        return re.sub(r"^(?:`[^`]+\.py`(?:, )?)+(?:: )?", "", self.reason)


def entries(text: str) -> list[Entry]:
    cells = (
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    )
    return [Entry(*row) for row in cells if NUMBER.fullmatch(row[0])]


def carried() -> Iterator[tuple[str, str]]:
    """Every number that a test function carries in its name or docstring, and the file that it is in."""
    for path in sorted(TESTS.rglob("test_*.py")):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for family, number in NUMBER.findall(f"{node.name} {ast.get_docstring(node) or ''}"):
                    yield f"{family}-{number}", path.relative_to(TESTS).as_posix()


ENTRIES = {entry.number: entry for entry in entries(TABLE.read_text(encoding="utf-8"))}
CARRIED: dict[str, set[str]] = {}
for found, where in carried():
    CARRIED.setdefault(found, set()).add(where)

every_entry = pytest.mark.parametrize("number", NUMBERS)


def test_every_number_is_listed_once_and_no_other():
    listed = Counter(entry.number for entry in entries(TABLE.read_text(encoding="utf-8")))
    assert [number for number, times in listed.items() if times > 1] == []
    assert list(listed) == NUMBERS
    assert len(listed) == 138


@every_entry
def test_an_entry_has_a_behaviour_and_one_of_four_statuses(number):
    entry = ENTRIES[number]
    assert entry.status in STATUSES
    assert len(entry.behaviour.split()) >= 3


@every_entry
def test_what_is_covered_or_adapted_is_carried_by_a_test_and_nothing_else_is(number):
    assert (number in CARRIED) == (ENTRIES[number].status in TESTED)


@every_entry
def test_the_files_that_an_entry_names_are_those_whose_tests_carry_it(number):
    assert ENTRIES[number].files == CARRIED.get(number, set())


@every_entry
def test_whatever_is_not_simply_covered_says_how_or_why(number):
    entry = ENTRIES[number]
    if entry.status != "covered":
        assert len(entry.words.split()) >= 3, "says neither how nor why"
    if entry.status == "planned":
        assert entry.words.startswith(LAYERS_TO_COME), "does not say which layer"


def test_no_test_carries_a_number_that_does_not_exist():
    assert set(CARRIED) <= set(NUMBERS)


def test_numbers_are_found_in_docstrings_and_names():
    assert NUMBER.findall("TT-01, UT-42: x") == [("TT", "01"), ("UT", "42")]
    assert NUMBER.findall("test_TT_15_unicode") == [("TT", "15")]
    assert NUMBER.findall("UT-421 CHAT-01 utf-16 survives_as_28_characters") == []


def test_a_row_is_read_into_its_parts():
    (entry,) = entries(
        "| number | x |\n|---|---|\n| TT-01 | it works well | adapted | `unit/test_a.py`, `unit/test_b.py`: in a way |"
    )
    assert entry == Entry("TT-01", "it works well", "adapted", "`unit/test_a.py`, `unit/test_b.py`: in a way")
    assert entry.files == {"unit/test_a.py", "unit/test_b.py"}
    assert entry.words == "in a way"
