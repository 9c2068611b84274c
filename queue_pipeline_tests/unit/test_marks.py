import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.dialects import marks
from queue_pipeline.transport.dialects.marks import numbered
from queue_pipeline.transport.statements import load_statement, statement_names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT ?, ?", "SELECT $1, $2"),
        ("SELECT ?::int + ?", "SELECT $1::int + $2"),
        ("SELECT 100 % ?", "SELECT 100 % $1"),
        # Quoted names and texts hold whatever they like.
        ("""SELECT ?, 'a?''?', "b?""?" FROM t WHERE c = ?""", """SELECT $1, 'a?''?', "b?""?" FROM t WHERE c = $2"""),
        ("SELECT '\\', ?", "SELECT '\\', $1"),
        (r"SELECT E'it\'s ?', ?", r"SELECT E'it\'s ?', $1"),
        (r"SELECT e'\\', ?, '?'", r"SELECT e'\\', $1, '?'"),
        (r"SELECT name'\', ?", r"SELECT name'\', $1"),
        ("SELECT $$ ? ' $$, ?", "SELECT $$ ? ' $$, $1"),
        ("SELECT $a$ ? $$ ? $b$ $a$, ?", "SELECT $a$ ? $$ ? $b$ $a$, $1"),
        ("SELECT a$b$ ? $b$", "SELECT a$b$ $1 $b$"),
        # So do comments, which nest in PostgreSQL.
        ("SELECT ? -- what's this?\n, ?", "SELECT $1 -- what's this?\n, $2"),
        ("SELECT ? /* it's /* nested? */ still? */, ?", "SELECT $1 /* it's /* nested? */ still? */, $2"),
        ("SELECT '--', ?, '/*', ?", "SELECT '--', $1, '/*', $2"),
        ("SELECT ? -- at the end?", "SELECT $1 -- at the end?"),
        # What never ends is the server's to complain about.
        ("SELECT ? /* open?", "SELECT $1 /* open?"),
    ],
)
def test_marks_are_numbered_but_for_those_in_quotes_and_comments(text, expected):
    assert numbered(text) == (expected, expected.count("$1") + expected.count("$2"))


@given(st.lists(st.sampled_from(["?", "'?'", '"?"', "$$?$$", "--?\n", "/*?*/", " ", ", ", "a", "%", "%s"])))
def test_every_mark_gets_its_number_and_nothing_else_changes(parts):
    text = " ".join(parts)
    found = numbered(text)
    assert found.marks == parts.count("?")
    assert re.findall(r"\$(\d+)", found.text) == [str(number + 1) for number in range(found.marks)]
    assert re.sub(r"\$\d+", "?", found.text) == text


@pytest.mark.parametrize("name", statement_names("postgresql"))
def test_every_statement_of_ours_is_read_as_it_is_meant(name):
    text = load_statement("postgresql", name)
    assert numbered(text).marks == text.count("?")


def test_statements_full_of_rows_are_not_kept():
    before = marks._kept.cache_info().currsize
    assert numbered("SELECT ?" + ", ?" * 20_000).marks == 20_001
    assert marks._kept.cache_info().currsize == before
