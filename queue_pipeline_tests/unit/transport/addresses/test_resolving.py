"""Addresses are resolved to tables: overrides, defaults, names that other readers of SQL understand, lengths."""

import pytest
import sqlglot
from hypothesis import assume, example, given
from sqlglot import exp

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlite import Sqlite
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer
from queue_pipeline_tests.support.databases.hostile_names import (
    SQLGLOT_NAMES,
    dialects,
    is_sqlserver_table,
    names,
    optional_names,
)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("orders", "[home].[own].[orders]"),
        ("orders@[given]", "[home].[given].[orders]"),
        ("orders@given@far", "[far].[given].[orders]"),
        ("orders@[]@far", "[far].[own].[orders]"),
        ("error", "[ops].[failures].[error]"),
        ("error@[given]@[far]", "[ops].[failures].[error]"),
        (QueueAddress("orders", "given"), "[home].[given].[orders]"),
        (QueueAddress("error", "given"), "[ops].[failures].[error]"),
    ],
)
def test_an_override_wins_over_the_address_and_the_address_over_the_default(queue, expected):
    book = AddressBook(
        SqlServer(),
        schema="own",
        catalog="home",
        queue_schemas={"error": "failures"},
        queue_catalogs={"error": "ops"},
    )
    assert book.resolve(queue).qualified == expected


@pytest.mark.parametrize(
    ("dialect", "queue", "qualified", "canonical"),
    [
        (SqlServer(), "orders", "[dbo].[orders]", "orders@[dbo]"),
        (PostgreSql(), "orders", '"public"."orders"', '"public"."orders"'),
        (Sqlite(), "orders", '"orders"', "orders"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_without_any_default_the_dialect_has_one(dialect, queue, qualified, canonical):
    table = AddressBook(dialect).resolve(queue)
    assert (table.qualified, table.canonical) == (qualified, canonical)


def test_postgresql_takes_schemas_in_the_same_order_and_knows_no_catalogs():
    book = AddressBook(PostgreSql(), schema="own", catalog="nowhere", queue_schemas={"error": "failures"})
    assert book.resolve("orders").qualified == '"own"."orders"'
    assert book.resolve("given.orders").qualified == '"given"."orders"'
    assert book.resolve("given.error").qualified == '"failures"."error"'
    assert book.resolve(QueueAddress("orders", "given", "catalog")).catalog is None


def test_a_table_that_was_resolved_once_is_not_resolved_again():
    table = AddressBook(SqlServer(), schema="one").resolve("orders")
    assert AddressBook(SqlServer(), schema="two", queue_schemas={"orders": "three"}).resolve(table) is table


def test_what_belongs_to_a_queue_stands_beside_it():
    book = AddressBook(SqlServer(), schema="own", catalog="home")
    tables = book.claim_tables(book.resolve("orders@given@far"))
    assert tables.claimed.qualified == "[far].[given].[orders.Claimed]"
    assert book.sibling(tables.queue, "Delayed").canonical == "orders.Delayed@[given]@[far]"
    assert tables.claims.qualified == "[home].[own].[QueueClaims]"


def test_a_queue_is_called_by_its_canonical_address():
    assert str(AddressBook(SqlServer(), catalog="db").resolve("orders@sales")) == "orders@[sales]@[db]"


@dialects
@given(
    table=names,
    schema=optional_names,
    catalog=optional_names,
    own_schema=optional_names,
    own_catalog=optional_names,
    override=optional_names,
)
@example("orders", "[x]", "[y]", None, None, None)
@example("orders", None, None, "[x]", "[y]", None)
@example("orders", "given", None, None, None, "[x]")
def test_a_canonical_address_leads_back_to_the_same_table(
    dialect: Dialect, table, schema, catalog, own_schema, own_catalog, override
):
    """Peers and claims know a queue by its canonical address only."""
    assume(dialect.name != "sqlserver" or is_sqlserver_table(table))
    book = AddressBook(dialect, own_schema, own_catalog, {table: override} if override else {})
    found = book.resolve(QueueAddress(table, schema, catalog))
    again = book.resolve(found.canonical)
    assert (again.qualified, again.canonical) == (found.qualified, found.canonical)


@pytest.mark.parametrize("text", ["orders@[[x]]]", "orders@[dbo]@[[x]]]"])
def test_a_schema_whose_own_name_has_brackets_keeps_them(text):
    table = AddressBook(SqlServer(), catalog="db").resolve(text)
    again = AddressBook(SqlServer(), catalog="db").resolve(table.canonical)
    assert "[[x]]]" in table.qualified
    assert again.qualified == table.qualified


@dialects
@given(table=names, schema=names, catalog=names)
def test_another_sql_parser_finds_the_same_names_in_the_quoted_table(dialect: Dialect, table, schema, catalog):
    assume(dialect.name != "sqlserver" or is_sqlserver_table(table))
    qualified = dialect.qualify(QueueAddress(table, schema, catalog if dialect.has_catalogs else None))
    tree = sqlglot.parse_one(f"SELECT 1 FROM {qualified}", dialect=SQLGLOT_NAMES[dialect.name])
    (found,) = tree.find_all(exp.Table)
    expected = {
        "sqlserver": (catalog, schema, table),
        "postgresql": ("", schema, table),
        "sqlite": ("", "", table),
    }
    assert (found.catalog, found.db, found.name) == expected[dialect.name]


@dialects
@given(names)
def test_another_sql_parser_finds_the_same_text_in_a_literal(dialect: Dialect, name):
    tree = sqlglot.parse_one(f"SELECT {dialect.literal(name)}", dialect=SQLGLOT_NAMES[dialect.name])
    (found,) = tree.find_all(exp.Literal, exp.National)
    assert found.name == name


def check(dialect: Dialect, name: str) -> QueueTable:
    book = AddressBook(dialect)
    table = book.resolve(QueueAddress(name))
    book.check_length(table)
    return table


def test_a_postgresql_name_leaves_room_for_the_delayed_table_in_bytes():
    assert check(PostgreSql(), "q" * 47).table == "q" * 47
    assert check(PostgreSql(), "é" * 23).table == "é" * 23
    for name, size in (("q" * 48, 48), ("é" * 24, 48), ("😀" * 12, 48)):
        with pytest.raises(AddressError) as caught:
            check(PostgreSql(), name)
        words = str(caught.value)
        assert name in words and f"{size} bytes" in words and "47" in words and "shorter" in words


def test_a_sqlserver_name_leaves_room_for_the_delayed_table_in_characters():
    """sysname holds 128 UTF-16 units, whatever they encode."""
    assert check(SqlServer(), "q" * 119).table == "q" * 119
    assert check(SqlServer(), "й" * 119).table == "й" * 119
    for name in ("q" * 121, "й" * 121, "😀" * 61):
        with pytest.raises(AddressError, match="shorter"):
            check(SqlServer(), name)


def test_sqlite_takes_names_of_any_length():
    assert check(Sqlite(), "q" * 10_000).table == "q" * 10_000
