"""The files of statements: the loader, braces, values, and that every section is used."""

import ast
import re
import string
from pathlib import Path

import pytest
from sqlalchemy import text as sql_text

from queue_pipeline.transport.database import statements
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.statements import (
    Section,
    braces,
    load_statement,
    sections,
    sql_folder,
    value_names,
)
from queue_pipeline_tests.support.databases.sql_sections import (
    KNOWN_BRACES,
    NOT_POSTGRESQL,
    NOT_SQLITE,
    NOT_SQLSERVER,
    ONLY_POSTGRESQL,
    ONLY_SQLITE,
    ONLY_SQLSERVER,
    OPTIONAL_BRACES,
    OWN_VALUES,
    PACKAGE,
    VALUES,
    _files,
    base,
    every_dialect,
    filled,
    named,
)


def test_a_missing_section_is_an_error_that_names_file_and_section():
    with pytest.raises(KeyError, match=r"sql/sqlite/claim_table\.sql has no section 'nothing'"):
        load_statement("sqlite", "claim_table.nothing")
    with pytest.raises(KeyError, match=r"sql/sqlite/nothing\.sql does not exist"):
        load_statement("sqlite", "nothing.open")
    with pytest.raises(KeyError, match="names no section"):
        load_statement("sqlite", "claim_table")


def test_a_section_is_its_comment_in_one_line_and_its_text_without_comments_and_blank_lines(tmp_path, monkeypatch):
    (tmp_path / "mine" / "layout").mkdir(parents=True)
    (tmp_path / "mine" / "layout" / "one.sql").write_text(
        "-- name: first\n-- Why it\n-- is so. Locks: none.\nSELECT 1\n\n  -- a remark\nFROM {t}\n\n"
        "-- name: second\n-- Why. Locks: none.\nSELECT :a, ':b', '10:20'\n"
    )
    monkeypatch.setattr(statements, "sql_folder", lambda: tmp_path)
    assert sections("mine") == [
        Section("layout/one.first", "Why it is so. Locks: none.", "SELECT 1\nFROM {t}"),
        Section("layout/one.second", "Why. Locks: none.", "SELECT :a, ':b', '10:20'"),
    ]
    assert load_statement("mine", "layout/one.second") == "SELECT :a, ':b', '10:20'"
    assert braces("mine", "layout/one.first") == {"t"}


def test_two_sections_of_one_name_are_refused(tmp_path, monkeypatch):
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "one.sql").write_text("-- name: same\nSELECT 1\n\n-- name: same\nSELECT 2\n")
    monkeypatch.setattr(statements, "sql_folder", lambda: tmp_path)
    with pytest.raises(KeyError, match=r"sql/twice/one\.sql has two sections 'same'"):
        sections("twice")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT :a + :b, :a", {"a", "b"}),
        ("SELECT CAST(:a AS text), b::text, x[1:2]", {"a"}),
        (r"SELECT to_char(t, 'HH24\:MI'), '\:no'", set()),
        ("SELECT 1", set()),
    ],
)
def test_values_are_found_as_sqlalchemy_finds_them(text, names):
    assert value_names(text) == names == set(sql_text(text)._bindparams)


def test_every_dialect_has_the_same_few_files():
    files = {
        dialect: {path.relative_to(Path(str(sql_folder())) / dialect) for path in _files(dialect)}
        for dialect in DIALECTS
    }
    assert set(DIALECTS) == {"sqlserver", "postgresql", "sqlite"}
    assert files["sqlserver"] == files["postgresql"] == files["sqlite"]
    assert sum(map(len, files.values())) <= 60


@every_dialect
def test_braces_hold_known_names_only(dialect: Dialect):
    for section in sections(dialect.name):
        fields = [field for field in string.Formatter().parse(section.text) if field[1] is not None]
        assert all(spec == "" and conversion is None for _, _, spec, conversion in fields), section.name
        assert {base(str(field)) for _, field, _, _ in fields} <= KNOWN_BRACES, section.name
        assert "{{" not in section.text and "}}" not in section.text, section.name
        assert section.text.count("{") == section.text.count("}") == len(fields), section.name


@every_dialect
def test_no_brace_and_no_value_stands_inside_a_literal_or_quotes(dialect: Dialect):
    """A quoted name inside further quotes would end them, and a value there would not be one."""
    for section in sections(dialect.name):
        for quoted in re.findall(r"""'[^']*'|"[^"]*"|\[[^\]]*\]""", section.text):
            assert "{" not in quoted, section.name
            assert not value_names(quoted), section.name


def test_every_dialect_has_the_same_sections_but_for_a_few():
    names = {dialect: set(named(dialect)) for dialect in DIALECTS}
    expected = {
        "sqlserver": set(ONLY_SQLSERVER) | set(NOT_SQLITE) | set(NOT_POSTGRESQL),
        "postgresql": set(ONLY_POSTGRESQL) | set(NOT_SQLITE) | set(NOT_SQLSERVER),
        "sqlite": set(ONLY_SQLITE) | set(NOT_POSTGRESQL) | set(NOT_SQLSERVER),
    }
    common = set.intersection(*names.values())
    assert {dialect: found - common for dialect, found in names.items()} == expected


def values_by_name() -> dict[str, dict[str, frozenset[str]]]:
    """The values of every section, by dialect; of those with values of their own only the others'."""
    found: dict[str, dict[str, frozenset[str]]] = {}
    for dialect in DIALECTS:
        for name, section in named(dialect).items():
            if (dialect, name) not in OWN_VALUES:
                found.setdefault(name, {})[dialect] = value_names(section.text)
    return found


@every_dialect
def test_a_value_has_a_name_and_no_position(dialect: Dialect):
    for section in sections(dialect.name):
        assert "?" not in section.text, section.name
        assert value_names(section.text) <= VALUES, section.name
        assert value_names(section.text) == set(sql_text(section.text)._bindparams), section.name


def test_no_name_of_a_value_is_left_over():
    assert {name for each in DIALECTS for section in sections(each) for name in value_names(section.text)} == VALUES


def test_a_section_takes_the_same_values_in_every_dialect():
    """But for the user's own tables, whose rows are composed."""
    differ = {name for name, found in values_by_name().items() if len(set(found.values())) > 1}
    assert {name for name in differ if not name.startswith("user_tables.")} == set()


def test_the_values_of_each_listed_exception_really_differ():
    for dialect, name in OWN_VALUES:
        assert value_names(load_statement(dialect, name)) not in values_by_name()[name].values()


def test_a_section_of_both_layouts_takes_the_same_values_in_both():
    """Shared code names it by the queue's layout, or could."""
    found = values_by_name()
    both = {name.removeprefix("nginn/") for name in found if f"nservicebus/{name.removeprefix('nginn/')}" in found}
    # Only PostgreSQL claims in one statement, and its own code runs it.
    both = {name for name in both if f"nginn/{name}" in found} - {"claim_messages.take"}
    assert {"queue.send", "queue.peek", "claim_messages.read", "claim_messages.split"} <= both
    for name in both:
        theirs = {*found[f"nservicebus/{name}"].values(), *found[f"nginn/{name}"].values()}
        assert len(theirs) == 1, name


def test_a_section_names_the_same_tables_in_every_dialect():
    """Except to create and fix tables, where each database has its own parts."""
    for name in set.intersection(*(set(named(dialect)) for dialect in DIALECTS)):
        if not re.search(r"(?:^|/)(?:schema|audit|user_tables)\.", name):
            tables = {frozenset(map(base, braces(dialect, name))) - OPTIONAL_BRACES for dialect in DIALECTS}
            assert len(tables) == 1, name


def test_postgresql_finds_one_type_for_a_value_that_stands_in_several_places():
    """psycopg sends it as one parameter."""
    for section in sections("postgresql"):
        for name in value_names(section.text):
            uses = re.findall(rf"(?<![:\w\\]):{name}\b", section.text)
            casts = re.findall(rf"CAST\(:{name} AS (\w+)\)", section.text)
            assert len(uses) == 1 or (len(casts) == len(uses) and len(set(casts)) == 1), (section.name, name)


@every_dialect
def test_the_rows_of_an_insert_hold_the_values_of_a_message_and_nothing_else(dialect: Dialect):
    """Common values stand outside, where they are bound once."""
    for name in ("nservicebus/queue.send", "nservicebus/queue.delay", "nginn/queue.send", "nginn/queue.delay"):
        assert value_names(load_statement(dialect.name, name)) == {"id", "milliseconds", "headers", "body"}
    if dialect.name != "sqlite":
        command = filled(dialect, "outbox.stage")
        assert command.row_values == ("id", "milliseconds", "headers", "body")
        assert {"claim_id", "task", "group_number"} < value_names(command.repeated(2).text)


def asked_for() -> tuple[set[str], list[re.Pattern[str]]]:
    """Every string of the package, and every formatted one as a pattern."""
    plain: set[str] = set()
    patterns: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        pieces = {id(each) for node in formatted for each in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pieces:
                plain.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [
                    re.escape(str(each.value)) if isinstance(each, ast.Constant) else r"(\w*)" for each in node.values
                ]
                patterns.add("".join(parts))
    return plain, [re.compile(pattern) for pattern in patterns]


def test_every_section_is_used():
    """By its name; or by the part of it that a formatted name leaves open, as in audit.fix_{name}."""
    plain, patterns = asked_for()
    # {name}_type, {rule}_index{beside}: a pattern of its own has to have some letters of its own.
    parts = [each for each in patterns if len(re.sub(r"\(\\w\*\)", "", each.pattern)) >= 5]

    def is_used(name: str) -> bool:
        if name in plain:
            return True
        for pattern in patterns:
            if found := pattern.fullmatch(name):
                left = [each for each in found.groups() if each not in ("nservicebus", "nginn")]
                if all(each in plain or any(part.fullmatch(each) for part in parts) for each in left):
                    return True
        return False

    assert [name for name in sorted({name for each in DIALECTS for name in named(each)}) if not is_used(name)] == []


def test_every_section_that_is_named_exists():
    plain, patterns = asked_for()
    known = {name for dialect in DIALECTS for name in named(dialect)}
    files = "|".join({re.escape(name.rpartition(".")[0].rpartition("/")[2]) for name in known})
    full = re.compile(rf"(?:\w+/)?(?:{files})\.[a-z_]+")
    assert {name for name in plain if full.fullmatch(name)} <= known
    for pattern in patterns:
        if re.match(rf"(?:\(\\w\*\)|\w+)/(?:{files})\\\.|(?:{files})\\\.", pattern.pattern):
            assert any(pattern.fullmatch(name) for name in known), pattern.pattern
