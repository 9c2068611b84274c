"""The project's own checks find what they are for, and nothing in what is right."""

import pytest
from packaging.requirements import Requirement

from queue_pipeline.transport.database.statements import Section
from tools.lint.conformance import NUMBERS, Entry, carried_numbers, differences, entries
from tools.lint.dependencies import bad_pins
from tools.lint.files import FOREIGN
from tools.lint.layers import HEADER, SQL, layout_imports, texts, upper_imports
from tools.lint.sql_style import file_problems, section_problems

COVERED = [Entry(number, "it works well", "covered", "`unit/test_a.py`") for number in NUMBERS]
CARRIED = {number: {"unit/test_a.py"} for number in NUMBERS}


def test_a_table_whose_entries_match_the_named_files_has_no_differences():
    assert list(differences(COVERED, CARRIED)) == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (COVERED[0]._replace(status="done"), "has the status 'done'"),
        (COVERED[0]._replace(behaviour="works"), "does not say which behaviour"),
        (COVERED[0]._replace(status="not applicable"), "is not applicable, and is carried by 1 files"),
        (COVERED[0]._replace(reason="`unit/deeper/still/test_b.py`"), "names ['unit/deeper/still/test_b.py']"),
        (COVERED[0]._replace(status="adapted"), "says neither how nor why"),
        (COVERED[1], "is listed 2 times"),
    ],
)
def test_an_incorrect_entry_is_found(entry, problem):
    assert problem in "\n".join(differences([entry, *COVERED[1:]], CARRIED))


def test_an_entry_that_is_missing_and_a_number_that_does_not_exist_are_found():
    assert "TT-01 is listed 0 times" in list(differences(COVERED[1:], CARRIED))
    found = "\n".join(differences(COVERED, {**CARRIED, "TT-99": {"unit/test_a.py"}}))
    assert "TT-99 is carried by a test in unit/test_a.py and does not exist" in found


def test_a_row_is_read_into_its_parts():
    (entry,) = entries(
        "| number | x |\n|---|---|\n"
        "| TT-01 | it works well | adapted | `unit/test_a.py`, `unit/b/c/test_b.py`: in a way |"
    )
    assert entry == Entry("TT-01", "it works well", "adapted", "`unit/test_a.py`, `unit/b/c/test_b.py`: in a way")
    assert entry.files == {"unit/test_a.py", "unit/b/c/test_b.py"}
    assert entry.words == "in a way"


def test_numbers_are_found_in_names_and_docstrings_of_tests_only():
    source = 'def test_TT_15_text():\n    """UT-42, not UT-421 or CHAT-01."""\n\ndef helper():\n    """IT-03"""\n'
    assert carried_numbers(source) == {"TT-15", "UT-42"}


def test_a_pin_that_is_missing_out_of_bounds_or_of_another_form_is_found():
    declared = [Requirement("click>=8.1"), Requirement("rich>=13"), Requirement("pandas<3")]
    assert list(bad_pins(["click==8.1.7", "rich==13.0", "pandas==2.2"], declared)) == []
    found = "\n".join(bad_pins(["click==8.0", "rich @ file:///x", "pandas==2.2"], declared))
    assert "click==8.0 is outside of click>=8.1" in found
    assert "constraints.txt:2: is not NAME==VERSION" in found
    assert "rich is declared in pyproject.toml and not pinned" in found


@pytest.mark.parametrize("text", ["pypi" + ".org/x", "cd /ho" + "me/ann/x", "in /ro" + "ot", "/wo" + "rk/x"])
def test_an_address_of_a_registry_and_a_path_of_one_machine_are_found(text):
    assert FOREIGN.search(text)
    assert not FOREIGN.search("queue_pipeline/work/x and docs/root, /tmp/x")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT Id FROM orders",
        "select 1",
        "INSERT INTO t VALUES (1)",
        "DELETE FROM {queue}",
        "UPDATE {claims} SET a = 1",
        "CREATE TABLE t (a int)",
        "PRAGMA journal_mode = WAL",
    ],
)
def test_a_statement_in_python_is_found(text):
    assert SQL.search(text)


def test_strings_are_read_without_docstrings():
    source = '"""SELECT a FROM b"""\nX = "SELECT c FROM d"\nY = f"{X}NServiceBus.Own"\n'
    found = [text for _, text in texts(source)]
    assert "SELECT a FROM b" not in found and "SELECT c FROM d" in found
    assert any(HEADER.search(text) for text in found)


def test_an_import_of_an_upper_layer_is_found():
    source = "import dagster\nimport sqlalchemy\nfrom queue_pipeline.processing.run import loop\n"
    source += "from queue_pipeline.transport.claims import claim\n"
    assert {name.split(".")[0] for name in upper_imports(source)} == {"dagster", "queue_pipeline"}
    assert upper_imports("from ..processing import run\n")
    assert not upper_imports("from queue_pipeline.transport.claims import claim\nimport sqlalchemy\n")


def test_an_import_of_one_layout_is_found():
    layouts = "queue_pipeline.transport.layouts"
    assert layout_imports(f"from {layouts}.nginn.rows import written\nimport {layouts}.nservicebus.delayed\n")
    assert not layout_imports(f"from {layouts}.layout import Layouts\nfrom {layouts}.refused_rows import Leaving\n")


def test_a_file_of_statements_in_another_form_is_found():
    good = "-- name: a\n-- Why.\nSELECT 1\n\n-- name: b\n-- Why.\nSELECT 2\n"
    assert list(file_problems(good)) == []
    for bad in (good + "\n", good.replace("\n\n", "\n\n\n"), "\n" + good, good.replace("2", "2" * 121), good[:-1]):
        assert list(file_problems(bad)), bad
    assert list(file_problems(good.replace("SELECT 1", "SELECT\n\n1")))


@pytest.mark.parametrize(
    ("comment", "text", "problem"),
    [
        ("Locks: none.", "SELECT 1", "why it is there"),
        ("It reads the queue.", "SELECT 1", "locks"),
        ("It takes a message. Locks: none.", "DELETE FROM {queue}", "says that it takes no lock"),
        ("It reads the queue. Locks: the rows.", "SELECT 1", "only reads"),
        ("It reads the queue. Locks: none.", "SELECT 1 -- one", "comment of it would be sent"),
    ],
)
def test_a_section_without_the_required_statements_is_found(comment, text, problem):
    assert problem in "\n".join(section_problems("postgresql", Section("queue.peek", comment, text)))
    assert not list(section_problems("postgresql", Section("q.peek", "It reads the queue. Locks: none.", "SELECT 1")))
