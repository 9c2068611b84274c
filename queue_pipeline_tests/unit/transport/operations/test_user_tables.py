"""What is decided about rows of a user's own tables before a database is asked."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text
from sqlglot import exp

from queue_pipeline.errors import AddressError, ConfigurationError
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.drivers import DRIVERS
from queue_pipeline.transport.operations.user_table_sql import RowWriter, TableRows
from queue_pipeline.transport.operations.user_tables import check_rows, folded, plain_values

SQLGLOT_NAMES = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}
WORST = ("k'1]\"?--", 'n;/*{x}*/":name', "c ?😀]] :v0_0 %s\\:", "total")
VALUES = {dialect: DRIVERS[name, driver].values_per_statement for dialect, name, driver in (
    ("sqlserver", "mssql", "pyodbc"), ("postgresql", "postgresql", "psycopg"), ("sqlite", "sqlite", "pysqlite"),
)}  # fmt: skip
"""The most values of a statement."""


def writer(dialect, key=(), add=(), columns=WORST):
    table = AddressBook(dialect, catalog="shop").resolve("totals")
    return RowWriter(dialect, table, TableRows("totals", columns, (), key, add))


def written(dialect, rows, **options):
    """The statements that would be sent, each with its values."""
    sent = list(writer(dialect, **options).writes(rows, VALUES[dialect.name]))
    for command, values in sent:
        command.check(values)
    return sent


# --- what contradicts itself -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"columns": ()}, "table totals: no columns; name those"),
        ({"columns": ("id", " ")}, "a column without a name"),
        ({"columns": ("id", "id")}, "column id is named 2 times"),
        ({"key": ("nr",)}, "key column nr is not among the columns id, total; add it"),
        ({"key": ("id",), "add": ("sum",)}, "add column sum is not among the columns"),
        ({"add": ("total",)}, "total cannot be added up.*give a key"),
        ({"key": ("id", "total"), "add": ("total",)}, "column total is in key and in add; leave it in one"),
        ({"rows": [(1, 2), (1,)]}, "row 1 has 1 values for 2 columns"),
        ({"rows": [(1, 2, 3)]}, "row 0 has 3 values for 2 columns"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(change, complaint):
    fields = {"table": "totals", "columns": ("id", "total"), "rows": [(1, 2)]}
    with pytest.raises(ConfigurationError, match=complaint) as raised:
        check_rows(TableRows(**{**fields, **change}))
    assert "table totals" in str(raised.value)


def test_a_column_name_that_no_database_allows_is_refused():
    with pytest.raises(AddressError):
        check_rows(TableRows("totals", ("a\nb",), []))


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ([1], "column total holds a list; give text, numbers"),
        ({}, "holds a dict"),
        (Decimal("NaN"), "holds the number NaN"),
        (1j, "holds a complex"),
    ],
)
def test_a_value_that_no_column_takes_is_named_by_its_column(value, complaint):
    with pytest.raises(ConfigurationError, match=f"table totals: .*{complaint}"):
        plain_values(TableRows("totals", ("id", "total"), [(1, None), (2, value)]))


@pytest.mark.parametrize("value", ["5", True, b"5", date(2024, 1, 1)])
def test_only_numbers_are_added_up(value):
    with pytest.raises(ConfigurationError, match="column total is to be added up and holds"):
        plain_values(TableRows("totals", ("id", "total"), [(1, value)], ("id",), ("total",)))


def test_a_key_has_to_be_complete():
    with pytest.raises(ConfigurationError, match="column id is part of the key and holds None"):
        plain_values(TableRows("totals", ("id", "total"), [(1, 1), (None, 1)], ("id",)))
    assert plain_values(TableRows("totals", ("id", "total"), [(None, None)])) == [(None, None)]


def test_text_that_would_be_cut_is_refused_where_it_would_be():
    rows = TableRows("notes", ("text",), [("a\0b",)])
    with pytest.raises(ConfigurationError, match="column text holds text with a NUL"):
        plain_values(rows, nul=False)
    assert plain_values(rows) == [("a\0b",)]


def test_values_are_converted_to_types_that_drivers_take():
    moment = datetime(2024, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
    given_values = (moment, datetime(2024, 5, 1), 2**63, -(2**63), bytearray(b"x"), memoryview(b"y"), True, None)
    columns = tuple(f"c{n}" for n in range(len(given_values)))
    assert plain_values(TableRows("t", columns, [given_values])) == [
        (datetime(2024, 5, 1, 10, 30), datetime(2024, 5, 1), Decimal(2**63), -(2**63), b"x", b"y", True, None)
    ]
    assert plain_values(TableRows("t", ("a", "b"), [])) == []


# --- one row a key -----------------------------------------------------------------------------------------


def fold(rows, columns=("id", "name", "total"), key=("id",), add=("total",)):
    return folded(TableRows("totals", columns, rows, key, add), rows)


def test_rows_of_one_key_count_one_after_the_other():
    rows = [(2, "b", 1), (1, "first", 5), (2, "c", None), (1, "last", 7)]
    assert fold(rows) == [(1, "last", 12), (2, "c", 1)]


def test_a_row_alone_keeps_its_null():
    assert fold([(1, "a", None)]) == [(1, "a", None)]


@given(st.lists(st.tuples(st.integers(0, 5), st.text("xyz", max_size=2), st.one_of(st.none(), st.integers()))))
def test_folding_equals_merging_row_by_row_in_ascending_order(rows):
    stored = {}
    for key, name, total in rows:
        stored[key] = (key, name, (stored[key][2] or 0) + (total or 0) if key in stored else total)
    result = fold(rows)
    assert result == [stored[key] for key in sorted(stored)]
    assert all(one[0] < other[0] for one, other in pairwise(result))


def test_keys_and_numbers_of_several_kinds_are_refused():
    with pytest.raises(ConfigurationError, match=r"the key \(id\) holds values that cannot be compared"):
        fold([(1, "a", 1), ("1", "a", 1)])
    with pytest.raises(ConfigurationError, match="columns total hold numbers of several kinds"):
        fold([(1, "a", 1.5), (1, "a", Decimal("1.5"))])


# --- statements --------------------------------------------------------------------------------------------

FORMS = {
    "append": {},
    "merge": {"key": WORST[:2], "add": WORST[3:]},
    "merge without adding": {"key": WORST[:1]},
    "keys": {"key": WORST},
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
@pytest.mark.parametrize("options", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("row", [("k", "n", 1, 2), ("k", "n", None, None)], ids=["whole", "with-nulls"])
def test_the_worst_of_column_names_stay_names(dialect, options, row):
    if None in row and set(WORST[2:]) <= set(options.get("key", ())):
        return  # a key is whole
    identifiers = set()
    for command, values in written(dialect, [row], **options):
        trees = sqlglot.parse(command.script, SQLGLOT_NAMES[dialect.name])
        identifiers |= {each.name for tree in trees for each in tree.find_all(exp.Identifier)}
        marks = [each.name for tree in trees for each in tree.find_all(exp.Placeholder)]
        assert sorted(marks) == sorted(values) == sorted(text(command.text).compile().params)
        assert str(text(command.text)) == command.script
        assert command.table == AddressBook(dialect, catalog="shop").resolve("totals").canonical
        assert None not in values.values(), "a driver would ask the server for its type"
    ours = {"stored", "EXCLUDED", "totals", "public", "dbo", "shop", "rows", "new"}
    assert set(WORST) <= identifiers <= {*WORST, *ours}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))
def test_only_columns_to_add_up_are_added_up(dialect):
    sent = [command.script for command, _ in written(dialect, [("k", "n", 1, 2)], **FORMS["merge"])]
    trees = [tree for script in sent for tree in sqlglot.parse(script, SQLGLOT_NAMES[dialect.name])]
    sums = [each for tree in trees for each in tree.find_all(exp.Add)]
    ours = {"stored", "EXCLUDED", "new"}
    assert [{each.name for each in one.find_all(exp.Identifier)} - ours for one in sums] == [{"total"}]


def test_instants_reach_sql_server_with_all_their_digits():
    dialect = DIALECTS["sqlserver"]
    rows = [(datetime(2024, 1, 2, 3, 4, 5, 678901), 1)]
    ((command, values),) = [sent for sent in written(dialect, rows, columns=("at", "n"), key=("at",)) if sent[1]]
    assert "(CAST(:v0_0 AS datetime2(6)), :v0_1)" in command.text
    assert values == {"v0_0": "2024-01-02T03:04:05.678901", "v0_1": 1}


@pytest.mark.parametrize("width", [1, 4, 60, 300])
@pytest.mark.parametrize("key", [0, 1])
@pytest.mark.parametrize("value", [1, None])
def test_statements_for_sql_server_stay_within_its_limits(width, key, value):
    """2,100 values, and 1,000 rows of a VALUES clause."""
    dialect = DIALECTS["sqlserver"]
    columns = tuple(f"column{n}" for n in range(width))
    rows = [(n, *[value] * (width - 1)) for n in range(700)]
    sent = [values for values in written(dialect, rows, columns=columns, key=columns[:key]) if values[1]]
    numbers = []
    for command, values in sent:
        assert len(values) <= 2_100
        numbers.append(command.text.count("\n("))
    assert sum(numbers) == 700
    assert max(numbers) <= 1_000
    assert min(numbers[:-1]) > 1, "several rows a round trip"


@pytest.mark.parametrize("width", [1, 70, 40_000])
def test_statements_for_postgresql_stay_within_its_limits(width):
    rows = [(0,) * width] * 1_001
    sent = written(DIALECTS["postgresql"], rows[: 1_001 if width < 1_000 else 2], columns=("c",) * width)
    assert all(len(values) <= max(32_767, width) for _, values in sent)
    assert len(sent) == {1: 3, 70: 3, 40_000: 2}[width]


@pytest.mark.parametrize("dialect", [DIALECTS["postgresql"], DIALECTS["sqlite"]], ids=["postgresql", "sqlite"])
def test_the_index_for_a_merge_is_given_as_a_statement(dialect):
    script = writer(dialect, key=("id", 'n"r'), columns=("id", 'n"r')).index().script
    assert script.startswith('CREATE UNIQUE INDEX "totals_key" ON ')
    assert script.endswith('("id", "n""r");')


def test_a_merge_in_one_statement_is_repeated_by_rows_alone():
    rows = [("k", "n", 1, 2), ("l", "n", 3, 4), ("m", "n", None, None)]
    ((command, _),) = written(DIALECTS["postgresql"], rows, **FORMS["merge"])
    assert command.text.count("ON CONFLICT") == 1
    assert command.text.count("(:v2_0, :v2_1, NULL, NULL)\nON CONFLICT") == 1


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (Decimal("5"), 5),
        (Decimal("1E+3"), 1000),
        (Decimal("0.5"), 0.5),
        (Decimal("0.1"), "0.1"),
        (Decimal(2**63), float(2**63)),
        (Decimal("12345678901234567890.5"), "12345678901234567890.5"),
        (datetime(2024, 1, 2, 3, 4, 5), "2024-01-02 03:04:05.000000"),
        (datetime(2024, 1, 2, 3, 4, 5, 6, UTC).replace(tzinfo=None), "2024-01-02 03:04:05.000006"),
        (date(2024, 1, 2), "2024-01-02"),
        (True, True),
        (b"\0", b"\0"),
    ],
)
def test_sqlite_stores_what_it_has_no_type_for_as_text_or_exactly(value, stored):
    ((_, values),) = written(DIALECTS["sqlite"], [(value,)], columns=("c",))
    (found,) = values.values()
    assert (found, type(found)) == (stored, type(stored))
