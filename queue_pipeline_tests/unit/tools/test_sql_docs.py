import pytest

from tools import sql_docs


def test_the_page_of_all_statements_is_made_of_the_files():
    assert sql_docs.PAGE.read_text(encoding="utf-8") == sql_docs.page(), "run: python -m tools.sql_docs"


def test_every_statement_is_on_the_page():
    text = sql_docs.page()
    for dialect in sql_docs.DIALECTS:
        for section in sql_docs.sections(dialect):
            subject, _, name = section.name.rpartition(".")
            _, _, part = text.partition(f"\n## {subject}\n")
            assert f"| `{name}`" in part.partition("\n## ")[0], section.name


def test_a_subject_without_statements_is_refused(monkeypatch):
    monkeypatch.setitem(sql_docs._SUBJECTS, "weather", "No statement is about it.")
    with pytest.raises(SystemExit, match="lacks weather"):
        sql_docs.page()
