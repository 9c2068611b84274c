"""Rows of the user's own tables, in the transaction that completes a claim."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from queue_pipeline.errors import (
    ConfigurationError,
    DatabaseError,
    QueueNotFoundError,
    TableNotFoundError,
    UniqueIndexMissingError,
)
from queue_pipeline.transport import Operation, OutgoingMessage, TableRows, new_message
from queue_pipeline.transport.claims.completion import Completion

pytestmark = pytest.mark.both_drivers

TYPES = {
    "sqlite": {"text": "TEXT", "whole": "INTEGER", "exact": "NUMERIC", "real": "REAL", "flag": "INTEGER"}
    | {"moment": "TEXT", "day": "TEXT", "data": "BLOB"},
    "postgresql": {"text": "text", "whole": "bigint", "exact": "numeric(30, 6)", "real": "double precision"}
    | {"flag": "boolean", "moment": "timestamp", "day": "date", "data": "bytea"},
    "sqlserver": {"text": "nvarchar(200)", "whole": "bigint", "exact": "decimal(30, 6)", "real": "float"}
    | {"flag": "bit", "moment": "datetime2(6)", "day": "date", "data": "varbinary(max)"},
}
COLUMNS = ("id", "text", "whole", "exact", "real", "flag", "moment", "day", "data")


@pytest.fixture
def tables(transport):
    return transport.user_tables


@pytest.fixture
def totals(transport, backend):
    """A table of the user's own: name and day are its key."""
    types = TYPES[backend.name]
    name = transport.book.own("totals").qualified
    backend.sql(
        transport,
        f"CREATE TABLE {name} (name {types['text']} NOT NULL, day int NOT NULL, total {types['whole']}, "
        f"note {types['text']}, amount {types['exact']}, PRIMARY KEY (name, day))",
    )
    return "totals"


def write(transport, rows):
    with transport.transaction() as connection:
        return transport.user_tables.write(connection, rows)


def read(transport, backend, columns, table="totals", order="1, 2"):
    name = transport.book.own(table).qualified
    rows = backend.sql(transport, f"SELECT {', '.join(columns)} FROM {name} ORDER BY {order}")
    return [tuple(row) for row in rows]


def merge(rows, columns=("name", "day", "total"), key=("name", "day"), add=("total",)):
    return TableRows("totals", columns, rows, key, add)


# --- append ------------------------------------------------------------------------------------------------


@pytest.fixture
def everything(transport, backend):
    types = TYPES[backend.name]
    columns = ", ".join(f"{name} {types[name]}" for name in COLUMNS[1:])
    backend.sql(transport, f"CREATE TABLE {transport.book.own('everything').qualified} (id int NOT NULL, {columns})")


def test_values_of_every_kind_come_back_as_they_were(transport, backend, everything):
    moment = datetime(2024, 5, 1, 12, 30, 15, 123456)
    rows = [
        (1, "grüße 'quoted' 😀", 2**62, Decimal("123456789.000001"), 0.1, True, moment, date(2024, 2, 29), b"\0\xff"),
        (2, "", -1, Decimal("-0.5"), -1e300, False, moment.replace(tzinfo=UTC), date(1999, 12, 31), b""),
        (3, *[None] * 8),
        (4, "x" * 150, 0, Decimal("1E+3"), 2.5, True, datetime(1970, 1, 1), date(2024, 1, 1), b"y" * 9_000),
    ]
    assert write(transport, TableRows("everything", COLUMNS, rows)) == 4
    found = read(transport, backend, COLUMNS, "everything", "id")
    if backend.name == "sqlite":
        # It has no types for these: they are text that sorts, and numbers.
        found = [
            (
                *row[:3],
                Decimal(str(row[3])),
                *row[4:6],
                datetime.fromisoformat(row[6]),
                date.fromisoformat(row[7]),
                row[8],
            )
            if row[1] is not None
            else row
            for row in found
        ]
    expected = [tuple(v.replace(tzinfo=None) if isinstance(v, datetime) else v for v in row) for row in rows]
    assert [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row[:5]) for row in found] == [
        row[:5] for row in expected
    ]
    assert [None if row[5] is None else bool(int(row[5])) for row in found] == [row[5] for row in expected]
    assert [row[6:] for row in found] == [row[6:] for row in expected]


def test_an_instant_is_stored_as_utc_in_a_column_with_a_zone(transport, backend):
    kind = {"sqlite": "TEXT", "postgresql": "timestamptz", "sqlserver": "datetimeoffset(6)"}[backend.name]
    name = transport.book.own("moments").qualified
    backend.sql(transport, f"CREATE TABLE {name} (at {kind})")
    moment = datetime.fromisoformat("2024-05-01T12:30:15.123456+02:00")
    write(transport, TableRows("moments", ("at",), [(moment,)]))
    text = {
        "sqlite": "at",
        "postgresql": "to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
        "sqlserver": "CONVERT(varchar(26), SWITCHOFFSET(at, '+00:00'), 121)",
    }[backend.name]
    assert backend.sql(transport, f"SELECT {text} FROM {name}")[0][0] == "2024-05-01 10:30:15.123456"


def test_many_rows_are_appended_in_order_and_in_several_statements(transport, backend, everything):
    rows = [(n, f"row {n}", None if n % 7 == 0 else n) for n in range(1_234)]
    assert write(transport, TableRows("everything", ("id", "text", "whole"), rows)) == 1_234
    assert read(transport, backend, ("id", "text", "whole"), "everything", "id") == rows


def test_no_rows_are_nothing_to_write(transport, backend, totals):
    assert write(transport, merge([])) == 0
    assert write(transport, TableRows("totals", ("name",), [])) == 0
    assert read(transport, backend, ("name",), order="1") == []


def test_a_table_is_named_by_an_address(transport, backend, totals):
    table = transport.book.own("totals").canonical
    assert write(transport, TableRows(table, ("name", "day"), [("a", 1)])) == 1
    assert read(transport, backend, ("name", "day")) == [("a", 1)]


def test_appending_a_key_twice_is_an_error_that_names_the_table(transport, totals):
    with pytest.raises(DatabaseError, match=r"table .*totals"):
        write(transport, TableRows("totals", ("name", "day"), [("a", 1), ("a", 1)]))


# --- merge -------------------------------------------------------------------------------------------------


def test_a_merge_inserts_replaces_and_adds_up(transport, backend, totals):
    columns = ("name", "day", "total", "note", "amount")
    first = [("b", 1, 5, "old", Decimal("0.10")), ("a", 1, 1, "kept", None)]
    assert write(transport, merge(first, columns, add=("total", "amount"))) == 2
    second = [("b", 1, 7, "new", Decimal("0.20")), ("c", 9, None, None, Decimal("1.5"))]
    assert write(transport, merge(second, columns, add=("total", "amount"))) == 2
    found = [
        (*row[:4], None if row[4] is None else round(Decimal(str(row[4])), 6))
        for row in read(transport, backend, columns)
    ]
    assert found == [
        ("a", 1, 1, "kept", None),
        ("b", 1, 12, "new", Decimal("0.30")),
        ("c", 9, None, None, Decimal("1.5")),
    ]


def test_a_null_counts_as_nothing_when_it_is_added_up(transport, backend, totals):
    write(transport, merge([("a", 1, None), ("b", 1, 5)]))
    write(transport, merge([("a", 1, 3), ("b", 1, None)]))
    assert read(transport, backend, ("name", "total"), order="1") == [("a", 3), ("b", 5)]


def test_a_null_replaces_what_is_not_added_up(transport, backend, totals):
    write(transport, merge([("a", 1, "old")], ("name", "day", "note"), add=()))
    write(transport, merge([("a", 1, None)], ("name", "day", "note"), add=()))
    assert read(transport, backend, ("name", "note"), order="1") == [("a", None)]


def test_rows_of_one_key_are_merged_one_after_the_other(transport, backend, totals):
    rows = [("a", 1, 1, "first"), ("b", 1, 10, "b"), ("a", 1, 2, "second"), ("a", 1, 3, "last")]
    assert write(transport, merge(rows, ("name", "day", "total", "note"))) == 4
    assert write(transport, merge(rows, ("name", "day", "total", "note"))) == 4
    assert read(transport, backend, ("name", "total", "note"), order="1") == [("a", 12, "last"), ("b", 20, "b")]


def test_a_row_with_only_key_columns_is_inserted_once(transport, backend, totals):
    keys = [("b", 2), ("a", 1), ("b", 2)]
    assert write(transport, merge(keys, ("name", "day"), add=())) == 3
    assert write(transport, merge([*keys, ("c", 3)], ("name", "day"), add=())) == 4
    assert read(transport, backend, ("name", "day")) == [("a", 1), ("b", 2), ("c", 3)]


def test_many_rows_are_merged(transport, backend, totals):
    count = 200 if backend.is_babelfish else 1_500
    rows = [(f"name {n % 500}", n % 3, n, "note") for n in range(count)]
    for _ in range(2):
        write(transport, merge(rows, ("name", "day", "total", "note")))
    ((keys, total),) = read(transport, backend, ("count(*)", "sum(total)"), order="1")
    assert keys == len({row[:2] for row in rows})
    assert int(total) == 2 * sum(range(count))


def test_names_that_need_quotes_are_quoted(transport, backend):
    quote, text = transport.database.dialect.quote, TYPES[backend.name]["text"]
    # Babelfish cannot read an escaped bracket.
    columns = ("the key", "select", "ü 'b' c") if backend.is_babelfish else ("the key", "select", "ü 'b' \"c\" ]d;--")
    name = transport.book.own("odd name").qualified
    backend.sql(
        transport,
        f"CREATE TABLE {name} ({quote(columns[0])} {text} PRIMARY KEY, "
        f"{quote(columns[1])} int, {quote(columns[2])} int)",
    )
    for _ in range(2):
        write(transport, TableRows("odd name", columns, [("a", 1, 2)], columns[:1], columns[2:]))
    assert [tuple(row) for row in backend.sql(transport, f"SELECT * FROM {name}")] == [("a", 1, 4)]


def test_concurrent_merges_add_up_exactly(backend, transport, totals):
    """Four at once on the same new keys, in different orders: nothing is lost, and nothing is left waiting."""
    names = [f"name {n}" for n in range(10)]

    def add(worker):
        rows = [(name, 1, worker + 1) for name in (names if worker % 2 else reversed(names))]
        for _ in range(5):
            transport.database.run(lambda own: transport.user_tables.write(own.connection, merge(rows)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(add, range(4)))
    assert read(transport, backend, ("name", "total"), order="1") == sorted(
        (name, 5 * (1 + 2 + 3 + 4)) for name in names
    )


# --- with a claim ------------------------------------------------------------------------------------------


def claim_some(transport):
    transport.send("orders", [OutgoingMessage(str(n).encode(), {"n": str(n)}) for n in range(3)])
    return transport.claim("orders", "me", 10)


def test_rows_are_there_exactly_if_the_claim_was_completed(transport, backend, totals, tables):
    claim = claim_some(transport)
    rows = merge([("a", 1, 5)])

    def work(transaction):
        assert tables.write(transaction, rows) == 1

    with pytest.raises(QueueNotFoundError):
        transport.claims.complete(Completion(claim, [Operation("nowhere", new_message("x"))], work=work, read=None))
    assert read(transport, backend, ("name",), order="1") == []
    assert (
        transport.claims.complete(Completion(claim, [Operation("orders", new_message("x"))], work=work, read=None)) == 1
    )
    assert read(transport, backend, ("name", "day", "total")) == [("a", 1, 5)]


def test_completions_of_four_workers_add_up_exactly(backend, transport, totals):
    transport.send("orders", [OutgoingMessage(b"1", {}) for _ in range(40)])

    def work_off(worker):
        done = 0
        while claim := transport.claim("orders", f"worker {worker}", 2):
            rows = merge([("all", 1, claim.messages), (f"worker {worker}", 1, claim.messages)])
            transport.claims.complete(
                Completion(claim, work=lambda own, rows=rows: transport.user_tables.write(own, rows), read=None)
            )
            done += claim.messages
        return done

    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(work_off, range(4)))
    assert sum(counts) == 40
    found = dict(read(transport, backend, ("name", "total"), order="1"))
    assert found.pop("all") == 40
    assert sum(found.values()) == 40


# --- what is missing ---------------------------------------------------------------------------------------


def test_a_missing_table_has_to_be_created_by_the_user(transport):
    for key in ((), ("id",)):
        with pytest.raises(TableNotFoundError, match=r"table .*nowhere") as raised:
            write(transport, TableRows("nowhere", ("id", "total"), [(1, 2)], key))
        assert "does not exist; create it with your own migration" in str(raised.value)
        assert "queue-pipeline" not in str(raised.value)


def test_a_missing_column_is_named_with_its_table(transport, totals):
    with pytest.raises(DatabaseError, match=r"(?i)table .*totals.*nonsense"):
        write(transport, TableRows("totals", ("name", "nonsense"), [("a", 1)]))


def test_a_merge_without_a_unique_index_says_which_to_create(transport, backend, totals):
    if backend.name == "sqlserver":
        pytest.skip("needs a database that merges by a unique index; SQL Server does without")
    rows = TableRows("totals", ("name", "note", "day"), [("a", "n", 1)], ("name", "note"))
    with pytest.raises(
        UniqueIndexMissingError, match=r"table totals: no unique index covers the key \(name, note\)"
    ) as raised:
        write(transport, rows)
    statement = str(raised.value).partition("migration: ")[2]
    backend.sql(transport, statement)
    assert write(transport, rows) == 1


def test_text_that_postgresql_would_cut_is_refused(postgresql):
    transport = postgresql.transport()
    postgresql.sql(transport, f"CREATE TABLE {transport.book.own('notes').qualified} (note text)")
    with pytest.raises(ConfigurationError, match="table notes: column note holds text with a NUL"):
        write(transport, TableRows("notes", ("note",), [("a\0b",)]))
