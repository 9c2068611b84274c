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
from sqlalchemy import text as sql_text
from sqlglot import exp

from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database import statements
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.statements import (
    Section,
    braces,
    load_statement,
    numbered_values,
    sections,
    sql_folder,
    value_names,
)
from queue_pipeline.transport.errors import AddressError
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.operations.install import InstallOptions, script, steps

PACKAGE = Path(__file__).parents[4] / "queue_pipeline"
SQLGLOT_NAMES = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}

# Legal on every database, and as bad as can be: ends every kind of quote and comment, and looks like a value.
TABLE = "o'r]d\"e;r--s /*?*/ :claim_id {queue} 😀 ]]--"
SCHEMA = "s'c]h\"e;m--a ? :owner 😀"
CATALOG = "c'a]t\"a;l--og ? :id 😀"

TABLE_BRACES = {
    "queue",
    "delayed",
    "claimed",
    "claims",
    "outbox",
    "pauses",
    "failures",
    "slots",
    "subscriptions",
    "sequences",
    "table",
    "replacement",
}
NAME_BRACES = {
    "account",
    "claimed_index",
    "claims_index",
    "due_index",
    "expires_index",
    "index",
    "key_index",
    "subqueue_index",
    "outbox_index",
    "row_version_index",
    "schema",
    "sequence",
    "id_sequence",
    "row_version_sequence",
}
# Columns that some tables of SQL Server have and some have not, its catalog, and the order of an NGinn queue.
OPTIONAL_BRACES = {"all_columns", "columns", "correlation_id", "reply_to_address", "sys"}
# Lists of quoted names that a statement on a user's own table is composed of.
LIST_BRACES = {"changes", "keys", "match"}
KNOWN_BRACES = TABLE_BRACES | NAME_BRACES | OPTIONAL_BRACES | LIST_BRACES | {"order"}

# One name for one thing. Times are in milliseconds, but for `seconds` and `minutes`.
VALUES = {
    "address",
    "after",
    "generation",
    "body",
    "body_is_null",
    "by",
    "bytes",
    "claim_id",
    "delay",
    "endpoint",
    "error",
    "expired",
    "died",
    "first",
    "headers",
    "id",
    "keep",
    "key",
    "last",
    "lease",
    "lease_end",
    "limit",
    "lock",
    "message_type",
    "messages",
    "milliseconds",
    "minutes",
    "name",
    "new_claim_id",
    "new_owner",
    "offset",
    "owner",
    "group_number",
    "slot",
    "process",
    "proof",
    "publisher",
    "queue",
    "reason",
    "row",
    "row_version",
    "schema",
    "scope",
    "seconds",
    "sequence",
    "state",
    "subscriber",
    "task",
    "text",
    "topic",
    "with_body",
}

# What not every dialect has, and why.
ONLY_SQLSERVER = {
    "user_tables.merge_open": "the other two merge by the columns of an index",
    "user_tables.merge_fill": "the other two merge by the columns of an index",
    "user_tables.merge_close": "the other two merge by the columns of an index",
    "session.catalog": "addresses name the database there",
    "nservicebus/schema.create_queue_heap": "the other two know no heap",
    "audit.fix_row_version_index_beside": "an index is clustered or not there",
    "session.scope_check": "XACT_ABORT ends a transaction without the caller's knowledge",
    "session.scope_open": "XACT_ABORT ends a transaction without the caller's knowledge",
}
ONLY_POSTGRESQL = {
    "nginn/claimed.take": "the others note messages and move them in two statements",
    "nservicebus/queue.copy": "the others know no COPY",
    "outbox.copy": "the others know no COPY",
    "audit.sequence": "a sequence of 32 bits runs out",
    "audit.fix_sequence_type": "a sequence of 32 bits runs out",
    "audit.fix_dead_rows": "only there do dead rows stay until a vacuum",
    "session.encoding": "the others store every character in the columns of queues",
}
ONLY_SQLITE = {
    "nginn/claimed.extended": "its clock goes on between two statements",
    "nginn/claimed.lease_end": "its clock goes on between two statements",
    "nservicebus/claimed.take_delete": "it cannot insert what a DELETE returns",
    "nservicebus/queue.move_due_delete": "it cannot insert what a DELETE returns",
}
NOT_SQLITE = {
    "nginn/schema.grant": "it has no accounts",
    "schema.grant": "it has no accounts",
    "nservicebus/schema.grant": "it has no accounts",
    "schema.lock": "its write lock is enough",
    "audit.size": "free pages belong to the whole file",
    "audit.fix_page_bloat": "free pages belong to the whole file",
    "audit.fix_body_type": "it stores any type in any column",
    "audit.fix_expires_type": "it stores any type in any column",
    "audit.fix_headers_type": "it stores any type in any column",
    "audit.fix_id_type": "it stores any type in any column",
}
NOT_SQLSERVER = {
    "user_tables.key_index": "a merge works without one there",
    "nginn/bus.sequence_lock": "sequence_open locks there itself",
}
NOT_POSTGRESQL = {
    "nservicebus/claimed.drop_expired": "take drops expired messages there itself",
    "nginn/claimed.note": "take does both there",
    "nginn/claimed.move": "take does both there",
}
# What a dialect's own code runs, with values of its own, and why.
OWN_VALUES = {
    ("postgresql", "nservicebus/claimed.take"): "counts what may be on its way to another queue",
    ("sqlite", "nginn/claimed.extend"): "binds the end of the lease, which it asks for first",
}

every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))


def _files(dialect: str) -> list[Path]:
    return sorted(Path(str(sql_folder() / dialect)).rglob("*.sql"))


def named(dialect: str) -> dict[str, Section]:
    return {section.name: section for section in sections(dialect)}


def short(name: str) -> str:
    return name.rpartition(".")[2]


def base(brace: str) -> str:
    """`queue` of `queue_text` and `queue_name`."""
    stem = re.sub("_(text|name)$", "", brace)
    return stem if stem in TABLE_BRACES else brace


def filled(dialect: Dialect, name: str, *, legacy: bool = True) -> Command:
    """The statement as the transport would send it for a queue of the worst name."""
    book = AddressBook(dialect, schema=SCHEMA, catalog=CATALOG)
    table = book.resolve(QueueAddress(TABLE))
    bases = {base(each) for each in braces(dialect.name, name)}
    # Once as a table of version 1 and once as one from which the old columns were dropped.
    columns = dialect.optional_columns(
        frozenset({"recoverable", "correlationid", "replytoaddress"} if legacy else ()),
        {"receive": "deleted", "take": "deleted", "show": "q", "page": "q"}.get(short(name), "m"),
    )
    names = {each: table for each in bases & TABLE_BRACES} | {
        each: dialect.quote(TABLE) for each in bases & NAME_BRACES
    }
    if name.startswith("user_tables."):
        key, changed = dialect.quote("a"), dialect.quote("b")
        columns = {
            "columns": f"{key}, {changed}",
            "keys": key,
            "match": f"stored.{key} = new.{key}",
            "changes": dialect.change(changed, add=True),
        }
    order = ", ".join(map(dialect.quote, ("retry_time", "id")))
    return dialect.statement(name, **{"queue": table, **names, **columns, "order": order})


# --- the loader --------------------------------------------------------------------------------------------


def test_a_missing_section_is_an_error_that_names_file_and_section():
    with pytest.raises(KeyError, match=r"sql/sqlite/claims\.sql has no section 'nothing'"):
        load_statement("sqlite", "claims.nothing")
    with pytest.raises(KeyError, match=r"sql/sqlite/nothing\.sql does not exist"):
        load_statement("sqlite", "nothing.open")
    with pytest.raises(KeyError, match="names no section"):
        load_statement("sqlite", "claims")


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


# --- the files ---------------------------------------------------------------------------------------------


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


# --- values ------------------------------------------------------------------------------------------------


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


def test_the_values_of_a_dialect_of_its_own_differ_indeed():
    for dialect, name in OWN_VALUES:
        assert value_names(load_statement(dialect, name)) not in values_by_name()[name].values()


def test_a_section_of_both_layouts_takes_the_same_values_in_both():
    """Shared code names it by the queue's layout, or could."""
    found = values_by_name()
    both = {name.removeprefix("nginn/") for name in found if f"nservicebus/{name.removeprefix('nginn/')}" in found}
    # Only PostgreSQL claims in one statement, and its own code runs it.
    both = {name for name in both if f"nginn/{name}" in found} - {"claimed.take"}
    assert {"queue.send", "queue.peek", "claimed.read", "claimed.split"} <= both
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


# --- what the package asks for -----------------------------------------------------------------------------


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


# --- what other readers of SQL make of them ----------------------------------------------------------------

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
        dialect,
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
    command = dialect.statement("nservicebus/queue.send", queue=table, **columns)
    assert command.repeated(3).script.count("(:id_") == 3
    assert command.repeated(3).script.count(dialect.quote(name)) == 1


def test_a_colon_in_a_name_is_printed_as_it_is():
    dialect = DIALECTS["postgresql"]
    table = AddressBook(dialect).resolve(QueueAddress("at :noon"))
    command = dialect.statement("nservicebus/queue.peek", queue=table)
    assert '"at :noon"' in command.script
    assert value_names(command.text) == {"limit"}


# --- repetition --------------------------------------------------------------------------------------------


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
