import ast
import re
import sqlite3
import string
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from queue_pipeline.transport.address import QueueAddress
from queue_pipeline.transport.addressing import AddressBook
from queue_pipeline.transport.dialect import Dialect
from queue_pipeline.transport.dialects import DIALECTS
from queue_pipeline.transport.dialects.sqlserver import ROWS_PER_INSERT
from queue_pipeline.transport.errors import AddressError
from queue_pipeline.transport.install import InstallOptions, script, steps
from queue_pipeline.transport.nginn.settings import NGinnSettings
from queue_pipeline.transport.statements import (
    Command,
    load_statement,
    placeholders,
    sql_folder,
    statement_names,
)

PACKAGE = Path(__file__).parents[2] / "queue_pipeline"
SQLGLOT_NAMES = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}

# Legal on every database, and as bad as can be: ends every kind of quote and comment, and looks like a parameter.
TABLE = "o'r]d\"e;r--s /*?*/ {queue} 😀 ]]--"
SCHEMA = "s'c]h\"e;m--a ? 😀"
CATALOG = "c'a]t\"a;l--og ? 😀"

TABLE_PLACEHOLDERS = {
    "queue",
    "delayed",
    "claimed",
    "claims",
    "outbox",
    "pauses",
    "failures",
    "receivers",
    "subscriptions",
    "sequences",
    "table",
    "replacement",
}
NAME_PLACEHOLDERS = {
    "account",
    "claimed_index",
    "claims_index",
    "due_index",
    "expires_index",
    "index",
    "key_index",
    "subqueue_index",
    "outbox_index",
    "column",
    "row_version_index",
    "schema",
    "sequence",
}
COLUMN_PLACEHOLDERS = {"columns", "correlation_id", "order", "reply_to_address", "sys"}
# Lists that a statement on a user's own table is composed of, from quoted names and from marks for parameters.
LIST_PLACEHOLDERS = {"changes", "keys", "mark", "marks", "match"}

# What not every dialect has, and why.
ONLY_SQLSERVER = {
    "table_moment": "drivers cut the digits of a time there",
    "table_merge_match": "the other two merge by the columns of an index",
    "catalog": "addresses name the database there",
    "nservicebus/create_queue_heap": "the other two know no heap",
    "nservicebus/mend_row_version_index_beside": "an index is clustered or not there",
    "scope_check": "XACT_ABORT ends a transaction behind the caller's back",
    "scope_open": "XACT_ABORT ends a transaction behind the caller's back",
}
ONLY_POSTGRESQL = {
    "nginn/claim_take": "the others note messages and move them in two statements",
    "nservicebus/copy": "the others know no COPY",
    "outbox_copy": "the others know no COPY",
    "nservicebus/describe_sequence": "a sequence of 32 bits runs out",
    "nservicebus/mend_sequence_type": "a sequence of 32 bits runs out",
    "nservicebus/mend_dead_rows": "only there do dead rows stay until a vacuum",
}
ONLY_SQLITE = {
    "nginn/claim_extended": "its clock goes on between two statements",
    "nginn/lease_end": "its clock goes on between two statements",
    "nservicebus/claim_take_delete": "it cannot insert what a DELETE returns",
    "nservicebus/move_due_delete": "it cannot insert what a DELETE returns",
}
NOT_SQLITE = {
    "nginn/grant": "it has no accounts",
    "grant_table": "it has no accounts",
    "nservicebus/grant": "it has no accounts",
    "install_lock": "its write lock is enough",
    "nservicebus/describe_size": "free pages belong to the whole file",
    "nservicebus/mend_page_bloat": "free pages belong to the whole file",
    "nservicebus/mend_body_type": "it stores any type in any column",
    "nservicebus/mend_expires_type": "it stores any type in any column",
    "nservicebus/mend_headers_type": "it stores any type in any column",
    "nservicebus/mend_id_type": "it stores any type in any column",
}
NOT_SQLSERVER = {
    "table_key_index": "a merge does not refuse to work without one there",
    "nginn/sequence_lock": "sequence_open locks there itself",
}
NOT_POSTGRESQL = {
    "nservicebus/claim_drop_expired": "claim_take drops expired messages there itself",
    "nginn/claim_note": "claim_take does both there",
    "nginn/claim_move": "claim_take does both there",
}

# Values that a statement takes; every other statement takes none.
PARAMETERS = {
    "claim_adopt": 5,
    "claim_begin": 3,
    "claim_branch": 5,
    "claim_fail": 4,
    "claim_fence": 3,
    "claim_hold": 3,
    "claim_list": 2,
    "claim_open": 7,
    "claim_release": 4,
    "claim_release_owner": 2,
    "claim_renew": 4,
    "claim_shrink": 6,
    "claim_take_over": 3,
    "claim_totals": 1,
    "failures_clear": 1,
    "failures_record": 2,
    "install_lock": 1,
    "nginn/claim_complete": 3,
    "nginn/claim_drop": 1,
    "nginn/claim_drop_one": 2,
    "nginn/claim_extend": 2,
    "nginn/claim_extended": 2,
    "nginn/claim_fail_row": 3,
    "nginn/claim_forget_lost": 1,
    "nginn/claim_marked": 2,
    "nginn/claim_middle": 2,
    "nginn/claim_move": 1,
    "nginn/claim_note": 4,
    "nginn/claim_parts": 3,
    "nginn/claim_postpone_row": 3,
    "nginn/claim_read": 3,
    "nginn/claim_read_headers": 3,
    "nginn/claim_retry_row": 4,
    "nginn/claim_return": 1,
    "nginn/claim_separate": 4,
    "nginn/claim_sizes": 3,
    "nginn/claim_sort": 1,
    "nginn/claim_split": 3,
    "nginn/claim_take": 4,
    "nginn/claim_tried": 1,
    "nginn/count_delayed": 1,
    "nginn/failed_drop_one": 1,
    "nginn/failed_list": 2,
    "nginn/failed_retry_one": 1,
    "nginn/lease_end": 1,
    "nginn/list_queues": 1,
    "nginn/message": 1,
    "nginn/move_due": 1,
    "nginn/outbox_delay": 3,
    "nginn/outbox_send": 3,
    "nginn/peek": 1,
    "nginn/purge": 2,
    "nginn/purge_processed": 2,
    "nginn/receive": 1,
    "nginn/row_fail": 2,
    "nginn/row_postpone": 2,
    "nginn/row_refuse": 2,
    "nginn/row_release": 1,
    "nginn/row_retry": 3,
    "nginn/send": 4,
    "nginn/sequence_end": 1,
    "nginn/sequence_lock": 1,
    "nginn/sequence_open": 2,
    "nginn/sequence_save": 2,
    "nginn/show": 1,
    "nginn/statistics": 1,
    "nginn/status": 1,
    "nginn/store_delayed": 4,
    "nginn/subscription_add": 4,
    "nginn/subscription_expire": 3,
    "nginn/subscription_list": 2,
    "nginn/subscription_remove": 3,
    "nservicebus/claim_drop": 1,
    "nservicebus/claim_drop_expired": 1,
    "nservicebus/claim_drop_one": 2,
    "nservicebus/claim_forwarded": 2,
    "nservicebus/claim_marked": 2,
    "nservicebus/claim_middle": 2,
    "nservicebus/claim_parts": 3,
    "nservicebus/claim_read": 3,
    "nservicebus/claim_read_headers": 3,
    "nservicebus/claim_return": 1,
    "nservicebus/claim_separate": 4,
    "nservicebus/claim_sizes": 3,
    "nservicebus/claim_split": 3,
    "nservicebus/claim_take": 3,
    "nservicebus/claim_take_delete": 1,
    "nservicebus/count_delayed": 1,
    "nservicebus/dead_letter": 5,
    "nservicebus/failed_body": 1,
    "nservicebus/failed_drop": 1,
    "nservicebus/failed_page": 3,
    "nservicebus/failed_take": 1,
    "nservicebus/find_due": 2,
    "nservicebus/list_queues": 1,
    "nservicebus/move_due": 1,
    "nservicebus/move_due_delete": 1,
    "nservicebus/outbox_delay": 3,
    "nservicebus/outbox_send": 3,
    "nservicebus/peek": 1,
    "nservicebus/purge": 1,
    "nservicebus/receive": 1,
    "nservicebus/send": 4,
    "nservicebus/show": 1,
    "nservicebus/status": 2,
    "nservicebus/store_delayed": 4,
    "nservicebus/take_delayed": 1,
    "outbox_abandon": 3,
    "outbox_clear": 1,
    "outbox_reports": 2,
    "outbox_stage": 7,
    "pause_add": 3,
    "pause_remove": 1,
    "receivers_expire": 1,
    "receivers_gate": 1,
    "receivers_list": 2,
    "receivers_occupied": 1,
    "receivers_release": 3,
    "receivers_release_owner": 1,
    "receivers_renew": 3,
    "receivers_take": 4,
    "scope_check": 1,
    "scope_open": 1,
    "subscription_add": 3,
    "subscription_remove": 2,
    "table_moment": 1,
}
# PostgreSQL counts what may be on its way to another queue.
OWN_PARAMETERS = {"postgresql": {"nservicebus/claim_take": 4}}

every_statement = pytest.mark.parametrize(
    ("dialect", "name"), [(dialect, name) for dialect in DIALECTS for name in statement_names(dialect)]
)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))


def source(dialect: str, name: str) -> str:
    return (sql_folder() / dialect / f"{name}.sql").read_text(encoding="utf-8")


def filled(dialect: Dialect, name: str, *, legacy: bool = True) -> Command:
    """The statement as the transport would send it for a queue of the worst name."""
    book = AddressBook(dialect, schema=SCHEMA, catalog=CATALOG)
    table = book.resolve(QueueAddress(TABLE))
    bases = {re.sub("_(text|name)$", "", each) for each in placeholders(dialect.name, name)}
    # Once as a table of version 1 and once as one from which the old columns were dropped.
    columns = dialect.optional_columns(
        frozenset({"recoverable", "correlationid", "replytoaddress"} if legacy else ()),
        {"send": "m", "dead_letter": "m", "claim_return": "m", "move_due": "m", "show": "q"}.get(
            name.rpartition("/")[2], "deleted"
        ),
    )
    names = {base: table for base in bases & TABLE_PLACEHOLDERS} | {
        base: dialect.quote(TABLE) for base in bases & NAME_PLACEHOLDERS
    }
    if name == "subscription_subscribers":
        columns = {"marks": "?, ?"}
    if name.startswith("table_"):
        changed = dialect.quote("b")
        columns = {
            "columns": f"{dialect.quote('a')}, {changed}",
            "keys": dialect.quote("a"),
            "match": f"{dialect.quote('a')} = ?",
            "mark": "?",
            "marks": "?, ?",
            "changes": f"{changed} = ?",
        }
    order = ", ".join(map(dialect.quote, ("retry_time", "id")))
    return dialect.statement(name, **{"queue": table, **names, **columns, "order": order})


# --- the files ---------------------------------------------------------------------------------------------


def test_there_are_statements_for_every_dialect():
    assert set(DIALECTS) == {"sqlserver", "postgresql", "sqlite"}
    for dialect in DIALECTS:
        assert len(statement_names(dialect)) > 40


@every_statement
def test_a_statement_opens_with_a_comment_that_says_why(dialect, name):
    lines = source(dialect, name).splitlines()
    comment = " ".join(
        line[2:].strip() for line in lines[: next(n for n, line in enumerate(lines) if line[:2] != "--")]
    )
    assert len(comment.split()) >= 4, "says nothing"
    assert comment.endswith("."), "is no sentence"


@every_statement
def test_a_comment_is_not_sent(dialect, name):
    text = load_statement(dialect, name)
    assert text.strip()
    assert "--" not in text


@every_statement
def test_braces_hold_known_names_only(dialect, name):
    text = load_statement(dialect, name)
    fields = [field for field in string.Formatter().parse(text) if field[1] is not None]
    assert all(spec == "" and conversion is None for _, _, spec, conversion in fields)
    known = TABLE_PLACEHOLDERS | NAME_PLACEHOLDERS | COLUMN_PLACEHOLDERS | LIST_PLACEHOLDERS
    known |= {f"{table}_{form}" for table in TABLE_PLACEHOLDERS for form in ("text", "name")}
    assert {field for _, field, _, _ in fields} <= known
    assert "{{" not in text and "}}" not in text
    assert text.count("{") == text.count("}") == len(fields)


@every_statement
def test_no_brace_stands_inside_a_literal_or_quotes(dialect, name):
    """A quoted name inside further quotes would end them."""
    for quoted in re.findall(r"""'[^']*'|"[^"]*"|\[[^\]]*\]""", load_statement(dialect, name)):
        assert "{" not in quoted


def test_every_dialect_has_the_same_statements_but_for_a_few():
    names = {dialect: set(statement_names(dialect)) for dialect in DIALECTS}
    expected = {
        "sqlserver": set(ONLY_SQLSERVER) | set(NOT_SQLITE) | set(NOT_POSTGRESQL),
        "postgresql": set(ONLY_POSTGRESQL) | set(NOT_SQLITE) | set(NOT_SQLSERVER),
        "sqlite": set(ONLY_SQLITE) | set(NOT_POSTGRESQL) | set(NOT_SQLSERVER),
    }
    common = set.intersection(*names.values())
    assert {dialect: found - common for dialect, found in names.items()} == expected


@every_statement
def test_values_are_parameters(dialect, name):
    text = load_statement(dialect, name)
    numbered = [int(number) for number in re.findall(r"\?(\d+)", text)]
    count = max(numbered) if numbered else text.count("?")
    assert count == OWN_PARAMETERS.get(dialect, {}).get(name, PARAMETERS.get(name, 0))
    if numbered:
        assert set(numbered) == set(range(1, count + 1)) and len(numbered) == text.count("?")


def test_every_statement_with_parameters_is_there():
    assert set(PARAMETERS) <= {name for dialect in DIALECTS for name in statement_names(dialect)}


@every_statement
def test_every_statement_is_used(dialect, name):
    used = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    last = name.rpartition("/")[2]
    # Some are asked for by a part: create_{table}, mend_{column}_type, mend_{index}_beside.
    asked_by = [
        last,
        last.removeprefix("create_"),
        re.sub("^mend_(.*?)(?:_type|_beside)?$", r"\1", last),
    ]
    assert any(re.search(rf"\b{each}\b", used) for each in asked_by), "nobody asks for it"


# --- what other readers of SQL make of them ----------------------------------------------------------------

# Valid where they are meant for, and beyond sqlglot: each is rewritten to something that means the same to a parser.
BEYOND_SQLGLOT = {
    "tsql": [
        # What OUTPUT returns comes back as a statement of its own, see `parsed`.
        (r"\bPRIMARY KEY NONCLUSTERED\b", "PRIMARY KEY"),
    ],
    "postgres": [],
    # Numbered parameters.
    "sqlite": [(r"\?\d+", "?")],
}
# Not DML, and kept by sqlglot as text.
MAY_STAY_TEXT = re.compile(r"(?:GRANT|VACUUM|SET|ALTER SEQUENCE|EXEC)\b|ALTER TABLE .* REBUILD$", re.DOTALL)


# A part of a merge, see table_merge_set.sql: it stands alone in its file, and in a SET or a WHERE when it is sent.
PART_OF_A_STATEMENT = re.compile(r'["\[]')


def parsed(dialect: Dialect, command: Command) -> Iterator[Any]:
    reader, text = SQLGLOT_NAMES[dialect.name], command.text
    if PART_OF_A_STATEMENT.match(text):
        text = f"UPDATE stored SET {text}"
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


@every_statement
@pytest.mark.parametrize("legacy", [True, False], ids=["old-table", "new-table"])
def test_a_statement_parses_with_the_worst_of_names_in_it(dialect, name, legacy):
    for tree in parsed(DIALECTS[dialect], filled(DIALECTS[dialect], name, legacy=legacy)):
        for command in tree.find_all(exp.Command):
            assert MAY_STAY_TEXT.match(command.sql(SQLGLOT_NAMES[dialect])), "not understood"


@every_statement
def test_the_worst_of_names_is_one_name(dialect, name):
    """Every brace becomes one identifier or one literal that says exactly what it was filled with."""
    trees = list(parsed(DIALECTS[dialect], filled(DIALECTS[dialect], name)))
    if any(tree.find(exp.Command) for tree in trees):
        return  # kept as text, so there is nothing to look into
    identifiers = [each.name for tree in trees for each in tree.find_all(exp.Identifier)]
    literals = [each.name for tree in trees for each in tree.find_all(exp.Literal, exp.National)]
    fields = [field for _, field, _, _ in string.Formatter().parse(load_statement(dialect, name)) if field]
    expected = [each for each in fields if each in TABLE_PLACEHOLDERS | NAME_PLACEHOLDERS]
    assert identifiers.count(TABLE) == len(expected)
    table = AddressBook(DIALECTS[dialect], SCHEMA, CATALOG).resolve(QueueAddress(TABLE))
    texts = [each for each in fields if each.endswith("_text")]
    assert literals.count(table.qualified) == len(texts)
    assert literals.count(TABLE) == len([each for each in fields if each.endswith("_name")])


def test_headers_of_a_new_sqlserver_queue_lose_no_character():
    """IT-01: nvarchar, in both structures and in everything that holds a message for a while."""
    for name in ("create_queue", "create_queue_heap", "create_delayed", "create_claimed"):
        trees = list(parsed(DIALECTS["sqlserver"], filled(DIALECTS["sqlserver"], f"nservicebus/{name}")))
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
        dialect,
        book,
        [book.resolve(QueueAddress(TABLE)), nginn],
        [book.resolve("error")],
        InstallOptions(body_string=True),
    )
    for step in made:
        for command in step.commands:
            for statement in dialect.split_script(command.text):
                connection.execute(statement)
    own_table = book.resolve("order_totals")
    connection.execute(dialect.statement("example_order_totals", table=own_table).text)
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
        "receivers": book.own("QueueReceivers"),
        "sequences": book.own("NGMB_SequenceInfo"),
        "order": ", ".join(map(dialect.quote, ("retry_time", "id"))),
        "subscriptions": book.subscriptions,
        "marks": "NULL, NULL",
        "table": own_table,
        "replacement": dialect.quote("replacement"),
    } | {index: dialect.quote(f"{index} {TABLE}") for index in NAME_PLACEHOLDERS}
    for name in statement_names("sqlite"):
        if name == "session" or name.startswith(
            (
                "create_",
                "table_",
                "nservicebus/create_",
                "nginn/create_",
                "nservicebus/mend_row_version_type",
            )
        ):
            continue
        own = {
            "queue": nginn,
            "claimed": book.claim_tables(nginn).claimed,
            "subscriptions": book.own("NGMB_Subscriptions"),
        }
        own = own if name.startswith("nginn/") else {}
        for statement in dialect.split_script(dialect.statement(name, **{**names, **own}).text):
            connection.execute(f"EXPLAIN {statement}", [None] * PARAMETERS.get(name, 0)).fetchall()
    connection.close()


# --- names that would end a line ---------------------------------------------------------------------------

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
    for step in steps(dialect, book, [table], [], InstallOptions()):
        plain = steps(dialect, book, [book.resolve("plain")], [], InstallOptions())
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
    text = script(dialect, steps(dialect, book, [table], [], InstallOptions()))
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
    command = dialect.statement("nservicebus/send", queue=table, **columns)
    assert command.repeated(3).text.count("(CAST(? AS uniqueidentifier)") == 3
    assert command.repeated(3).text.count(dialect.quote(name)) == 1


# --- repetition --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nservicebus/send", "nservicebus/store_delayed"])
@pytest.mark.parametrize("rows", [1, 2, 60])
def test_an_insert_is_repeated_for_several_rows(name, rows):
    dialect = DIALECTS["sqlserver"]
    command = filled(dialect, name)
    repeated = command.repeated(rows)
    # The worst of names holds a question mark of its own, once for each time that it is named.
    named = sum(part.count("?") for part in (TABLE, SCHEMA, CATALOG))
    assert repeated.text.count("?") == PARAMETERS[name] * rows + named
    assert repeated.queue == command.queue
    (values,) = [each for tree in parsed(dialect, repeated) for each in tree.find_all(exp.Values)]
    assert len(values.expressions) == rows
    if rows == 1:
        assert repeated == command


def test_a_row_is_repeated_with_commas_between_and_the_rest_once():
    assert Command("INSERT\nVALUES\n(?)\nAS m", "q").repeated(3) == Command(
        "INSERT\nVALUES\n(?),\n(?),\n(?)\nAS m", "q"
    )


def test_only_an_insert_of_values_can_be_repeated():
    with pytest.raises(ValueError, match="VALUES"):
        Command("SELECT 1").repeated(2)


@pytest.mark.parametrize("name", ["send", "store_delayed"])
def test_many_rows_stay_under_the_length_at_which_pyodbc_describes_parameters(name):
    """Beyond 4,000 characters it asks the server for their types, which loses work on some servers."""
    dialect = DIALECTS["sqlserver"]
    book = AddressBook(dialect, catalog="c" * 64)
    table = book.resolve("q" * 119 + "@" + "s" * 64)
    columns = dialect.optional_columns(frozenset({"recoverable"}))
    command = dialect.statement(f"nservicebus/{name}", queue=table, delayed=table, **columns)
    assert len(command.repeated(ROWS_PER_INSERT).text) < 4_000


# --- layers ------------------------------------------------------------------------------------------------


def modules(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            found |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def texts(path: Path) -> Iterator[str]:
    """Every string of a module that is no docstring and no description of an attribute."""
    tree = ast.parse(path.read_text())
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


@pytest.mark.parametrize("path", modules(PACKAGE / "transport"), ids=relative)
def test_the_transport_knows_databases_only(path):
    roots = {name.split(".")[0] for name in imported(path)}
    assert roots.isdisjoint({"dagster", "pyspark", "pandas", "click", "rich"})
    ours = {name for name in imported(path) if name.startswith("queue_pipeline")}
    assert all(name.startswith("queue_pipeline.transport") for name in ours), "a layer above"


SQL_IN_PYTHON = re.compile(
    r"\bselect\b.*(?:\bfrom\b|\d)|\binsert\s+into\b|\bdelete\s+from\b|\bupdate\s+\S+\s+set\b|\bmerge\s+into\b|"
    r"^\s*(?:(?:create|alter|drop|truncate)\s+(?:table|index|unique|schema|sequence)|begin|pragma|exec|grant)\b",
    re.IGNORECASE | re.DOTALL,
)
# Asking whether a connection lives, and beginning a transaction, need no file.
SQL_ALLOWED = {"SELECT 1", "BEGIN", "BEGIN IMMEDIATE"}


@pytest.mark.parametrize("path", modules(PACKAGE), ids=relative)
def test_statements_stand_in_files_and_not_in_python(path):
    assert [text for text in texts(path) if SQL_IN_PYTHON.search(text) and text not in SQL_ALLOWED] == []


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
def test_the_search_for_statements_in_python_finds_them(text):
    assert SQL_IN_PYTHON.search(text)


@pytest.mark.parametrize("path", modules(PACKAGE), ids=relative)
def test_header_names_are_spelled_out_in_one_module_only(path):
    spelled = [text for text in texts(path) if "NServiceBus." in text or "$.diagnostics" in text]
    if relative(path) == "queue_pipeline/transport/headers.py":
        assert len(spelled) > 10
    else:
        assert spelled == []
