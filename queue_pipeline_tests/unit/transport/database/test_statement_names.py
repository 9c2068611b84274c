"""Names of tables in statements stay one name for every reader of SQL, and rows are repeated."""

import re
import sqlite3
import string
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import sqlglot
from sqlalchemy import text as sql_text
from sqlglot import exp

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.statements import (
    load_statement,
    numbered_values,
    value_names,
)
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.operations.install import InstallOptions, script, steps
from queue_pipeline_tests.support.databases.sql_sections import (
    BROWSED,
    CATALOG,
    NAME_BRACES,
    SCHEMA,
    SQLGLOT_NAMES,
    TABLE,
    TABLE_BRACES,
    every_dialect,
    filled,
    named,
)

# Valid where they are meant for, and beyond sqlglot: each is rewritten to something that means the same to a parser.
BEYOND_SQLGLOT = {
    "tsql": [
        # What OUTPUT returns comes back as a statement of its own, see `parsed`.
        (r"\bPRIMARY KEY NONCLUSTERED\b", "PRIMARY KEY"),
    ],
    "postgres": [],
    "sqlite": [],
}


# Not DML, and kept by sqlglot as text.
MAY_STAY_TEXT = re.compile(r"(?:GRANT|VACUUM|SET|ALTER SEQUENCE|EXEC)\b|ALTER TABLE .* REBUILD$", re.DOTALL)


def parsed(dialect: Dialect, command: Command) -> Iterator[Any]:
    reader, text = SQLGLOT_NAMES[dialect.name], command.script
    for pattern, replacement in BEYOND_SQLGLOT[reader]:
        text = re.sub(pattern, replacement, text)
    if reader == "tsql":
        # DELETE … OUTPUT list [INTO table (columns)] FROM …: the list is read as a SELECT, the target as an INSERT.
        for clause in re.findall(r"\nOUTPUT\s(.*?)(?=\n(?:FROM|WHERE)\b)", text, re.DOTALL):
            values, _, target = clause.partition("\nINTO ")
            yield from sqlglot.parse(f"INSERT INTO {target} SELECT {values}" if target else f"SELECT {values}", reader)
        text = re.sub(r"\nOUTPUT\s.*?(?=\n(?:FROM|WHERE)\b)", "", text, flags=re.DOTALL)
    for tree in sqlglot.parse(text, reader):
        assert tree is not None
        yield tree


@every_dialect
@pytest.mark.parametrize("legacy", [True, False], ids=["old-table", "new-table"])
def test_every_section_parses_with_the_worst_of_names_in_it(dialect: Dialect, legacy):
    for name in named(dialect.name):
        for tree in parsed(dialect, filled(dialect, name, legacy=legacy)):
            for command in tree.find_all(exp.Command):
                assert MAY_STAY_TEXT.match(command.sql(SQLGLOT_NAMES[dialect.name])), name


@every_dialect
def test_the_worst_of_names_is_one_name(dialect: Dialect):
    """Every brace becomes one identifier or one literal that says exactly what it was filled with."""
    table = AddressBook(dialect, SCHEMA, CATALOG).resolve(QueueAddress(TABLE))
    for name, section in named(dialect.name).items():
        trees = list(parsed(dialect, filled(dialect, name)))
        if any(tree.find(exp.Command) for tree in trees):
            continue  # kept as text, so there is nothing to look into
        identifiers = [each.name for tree in trees for each in tree.find_all(exp.Identifier)]
        literals = [each.name for tree in trees for each in tree.find_all(exp.Literal, exp.National)]
        fields = [field for _, field, _, _ in string.Formatter().parse(section.text) if field]
        assert identifiers.count(TABLE) == len([each for each in fields if each in TABLE_BRACES | NAME_BRACES]), name
        assert literals.count(table.qualified) == len([each for each in fields if each.endswith("_text")]), name
        assert literals.count(TABLE) == len([each for each in fields if each.endswith("_name")]), name


@every_dialect
def test_the_worst_of_names_adds_no_value_and_takes_none_away(dialect: Dialect):
    """A colon in a name is no value's, whichever reader looks for values."""
    for name, section in named(dialect.name).items():
        text = filled(dialect, name).text
        assert value_names(text) == value_names(section.text) == set(sql_text(text)._bindparams), name


def test_headers_of_a_new_sqlserver_queue_lose_no_character():
    """IT-01: nvarchar, in both structures and in everything that holds a message for a while."""
    for name in ("create_queue", "create_queue_heap", "create_delayed", "create_claimed"):
        trees = list(parsed(DIALECTS["sqlserver"], filled(DIALECTS["sqlserver"], f"nservicebus/schema.{name}")))
        types = [
            column.kind.sql("tsql").upper()
            for tree in trees
            for column in tree.find_all(exp.ColumnDef)
            if column.name == "Headers" and column.kind
        ]
        assert types == ["NVARCHAR(MAX)"], name


def test_sqlite_itself_accepts_every_statement():
    dialect = DIALECTS["sqlite"]
    connection = sqlite3.connect(":memory:")
    book = AddressBook(dialect, nginn=NGinnSettings(sequences=True))
    nginn = replace(book.resolve(QueueAddress(f"{TABLE} of NGinn")), layout="nginn")
    made = steps(
        book,
        [book.resolve(QueueAddress(TABLE)), nginn],
        [book.resolve("error")],
        InstallOptions(body_string=True),
    )
    for step in made:
        for command in (*step.commands, *(step.body_string[:1] if step.body_string else ())):
            for statement in dialect.split_script(command.script):
                connection.execute(statement)
    own_table = book.resolve("order_totals")
    connection.execute(f"CREATE TABLE {own_table.qualified} (country TEXT PRIMARY KEY, orders BIGINT)")
    queue = book.resolve(QueueAddress(TABLE))
    tables = book.claim_tables(queue)
    names = {
        "queue": queue,
        "delayed": book.sibling(queue, "Delayed"),
        "claimed": tables.claimed,
        "claims": tables.claims,
        "outbox": book.own("QueueOutbox"),
        "pauses": book.own("QueuePauses"),
        "failures": book.own("QueueFailures"),
        "slots": book.own("QueueSlots"),
        "sequences": book.own("NGMB_SequenceInfo"),
        "order": ", ".join(map(dialect.quote, ("retry_time", "id"))),
        **BROWSED,
        "subscriptions": book.subscriptions,
        "table": own_table,
    } | {index: dialect.quote(f"{index} {TABLE}") for index in NAME_BRACES}
    of_nginn = {
        "queue": nginn,
        "claimed": book.claim_tables(nginn).claimed,
        "subscriptions": book.own("NGMB_Subscriptions"),
    }
    passed_over = ("session.", "schema.create_", "user_tables.", "audit.fix_row_version_type")
    explained = 0
    for name in named("sqlite"):
        if name.partition("/")[2].startswith(passed_over) or name.startswith(passed_over):
            continue
        own = of_nginn if name.startswith("nginn/") or name == "audit.fix_subqueue_index" else {}
        for statement in dialect.split_script(dialect.statement(name, **{**names, **own}).script):
            values = dict.fromkeys(value_names(load_statement("sqlite", name)))
            if "BodyString" not in statement or "ALTER" not in statement:
                connection.execute(f"EXPLAIN {statement}", values).fetchall()
            explained += 1
    assert explained > 120
    connection.close()


LINE_BREAKERS = ["a\nVALUES\nb", "a;\nDROP TABLE error;\nb", "a\nGO\nDROP TABLE error\nGO\nb", "a\r\nb", "a\n--b"]


def resolved_or_refused(dialect: Dialect, name: str):
    """The table, or None when names with line ends are refused: either is safe."""
    book = AddressBook(dialect)
    try:
        table = book.resolve(QueueAddress(name))
        book.check_length(table)
    except AddressError:
        return book, None
    return book, table


@every_dialect
@pytest.mark.parametrize("name", LINE_BREAKERS)
def test_a_line_end_in_a_name_does_not_cut_a_script_in_two(dialect: Dialect, name):
    book, table = resolved_or_refused(dialect, name)
    if table is None:
        return
    for step in steps(book, [table], [], InstallOptions()):
        plain = steps(book, [book.resolve("plain")], [], InstallOptions())
        assert [len(dialect.split_script(command.text)) for command in step.commands] in [
            [len(dialect.split_script(command.text)) for command in other.commands] for other in plain
        ]


@every_dialect
@pytest.mark.parametrize("name", LINE_BREAKERS)
def test_a_line_end_in_a_name_does_not_end_a_comment_of_the_printed_script(dialect: Dialect, name):
    """A DBA runs what `script` prints."""
    book, table = resolved_or_refused(dialect, name)
    if table is None:
        return
    text = script(dialect, steps(book, [table], [], InstallOptions()))
    quoted = {"sqlserver": r"N'(?:[^']|'')*'|\[(?:[^\]]|\]\])*\]"}.get(
        dialect.name, r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
    )
    without_names_and_comments = re.sub(rf"({quoted})|--[^\r\n]*", "", text)
    assert "DROP" not in without_names_and_comments
    assert not re.search(r"(?m)^(?:b|VALUES)", without_names_and_comments)


@pytest.mark.parametrize("name", LINE_BREAKERS)
def test_a_line_end_in_a_name_does_not_disturb_the_repetition_of_a_row(name):
    dialect = DIALECTS["sqlserver"]
    _, table = resolved_or_refused(dialect, name)
    if table is None:
        return
    columns = dialect.optional_columns(frozenset())
    command = dialect.statement("nservicebus/queue.send", queue=table, **columns)
    assert command.repeated(3).script.count("(:id_") == 3
    assert command.repeated(3).script.count(dialect.quote(name)) == 1


def test_a_colon_in_a_name_is_printed_as_it_is():
    dialect = DIALECTS["postgresql"]
    table = AddressBook(dialect).resolve(QueueAddress("at :noon"))
    command = dialect.statement("nservicebus/queue.peek", queue=table)
    assert '"at :noon"' in command.script
    assert value_names(command.text) == {"limit"}


@pytest.mark.parametrize("dialect", [DIALECTS["sqlserver"], DIALECTS["postgresql"]], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("name", ["nservicebus/queue.send", "nservicebus/queue.delay", "outbox.stage"])
@pytest.mark.parametrize("rows", [1, 2, 60])
def test_an_insert_is_repeated_for_several_rows(dialect, name, rows):
    command = filled(dialect, name)
    repeated = command.repeated(rows)
    of_rows = {f"{value}_{number}" for value in command.row_values for number in range(rows)}
    assert value_names(repeated.text) == of_rows | (value_names(command.text) - set(command.row_values))
    assert repeated.queue == command.queue
    (values,) = [each for tree in parsed(dialect, repeated) for each in tree.find_all(exp.Values)]
    assert len(values.expressions) == rows


def test_a_row_is_repeated_with_commas_between_and_the_rest_once():
    assert Command("INSERT\nVALUES\n(:a, 1)\nAS m, :b", "q").repeated(3) == Command(
        "INSERT\nVALUES\n(:a_0, 1),\n(:a_1, 1),\n(:a_2, 1)\nAS m, :b", "q"
    )


def test_the_values_of_repeated_rows_are_numbered_as_the_rows_are():
    command = Command("SELECT 1 WHERE x IN (\nVALUES\n(:key)\n)")
    assert numbered_values("key", [7, 8]) == {"key_0": 7, "key_1": 8}
    assert value_names(command.repeated(2).text) == numbered_values("key", [7, 8]).keys()


def test_only_an_insert_of_values_can_be_repeated():
    with pytest.raises(ValueError, match="VALUES"):
        Command("SELECT 1").repeated(2)


def test_a_missing_and_a_superfluous_value_are_errors():
    command = Command("SELECT :a, :b")
    command.check({"a": 1, "b": 2})
    with pytest.raises(TypeError, match=r"\['b'\]"):
        command.check({"a": 1})
    with pytest.raises(TypeError, match=r"\['c'\]"):
        command.check({"a": 1, "b": 2, "c": 3})
