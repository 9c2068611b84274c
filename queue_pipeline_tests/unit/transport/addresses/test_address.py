import re

import pytest
import sqlglot
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sqlglot import exp

from queue_pipeline.transport.addresses import address
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlite import Sqlite
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer
from queue_pipeline.transport.errors import AddressError

SQLGLOT_NAMES = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}

hostile = st.sampled_from(
    ["]", "[", '"', "'", "@", ".", ";", "--", "/*", "?", "%", "\\", "{queue}", " ", "😀", "]]", '""']
)
ordinary = st.characters(exclude_categories=["Cs", "Cc"])
names = st.lists(hostile | ordinary, min_size=1, max_size=8).map("".join).filter(lambda name: name.strip() != "")
optional_names = st.none() | names
# A schema or catalog wholly in brackets is the quoted form of another name (UT-10), so it does not come back.
names_not_in_brackets = names.filter(lambda name: not re.fullmatch(r"\[.*\]", name, re.DOTALL))


def is_sqlserver_table(name: str) -> bool:
    """An address of that family ends its table at the first "@"; "#" in front makes a table temporary."""
    return "@" not in name and not name.startswith("#")


# --- the SQL Server family ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "schema", "catalog", "expected"),
    [
        ("my.table", None, None, "my.table"),
        ("my.table", "my.schema", None, "my.table@[my.schema]"),
        ("my.table", "[my.schema]", None, "my.table@[my.schema]"),
        ("my.table", "my.schema", "my.catalog", "my.table@[my.schema]@[my.catalog]"),
        ("my.table", "my.schema", "[my.catalog]", "my.table@[my.schema]@[my.catalog]"),
        ("my.table", "[my.schema]", "[my.catalog]", "my.table@[my.schema]@[my.catalog]"),
        ("my.table", None, "my.catalog", "my.table@[]@[my.catalog]"),
        ("my.table", None, "[my.catalog]", "my.table@[]@[my.catalog]"),
    ],
)
def test_an_address_names_the_parts_that_it_has(table, schema, catalog, expected):
    """UT-10: a part that is already in brackets is not bracketed twice."""
    assert address.format_sqlserver(address.sqlserver_address(table, schema, catalog)) == expected


@pytest.mark.parametrize(
    ("text", "table", "schema", "catalog"),
    [
        ("my.table", "my.table", None, None),
        ("my.table@[my.schema]", "my.table", "my.schema", None),
        ("my.table@[my.sch@ma]", "my.table", "my.sch@ma", None),
        ("my.table@[my.sch[[]ma]", "my.table", "my.sch[[]ma", None),
        ("my.table@my.schema", "my.table", "my.schema", None),
        ("my.table@[my.schema]@[my.catalog]", "my.table", "my.schema", "my.catalog"),
        ("my.table@[my.schema]@[my.c@talog]", "my.table", "my.schema", "my.c@talog"),
        ("my.table@[my.schema]@[my.c[[]talog]", "my.table", "my.schema", "my.c[[]talog"),
        ("my.table@[my.schema]@my.catalog", "my.table", "my.schema", "my.catalog"),
        ("my.table@my.schema@my.catalog", "my.table", "my.schema", "my.catalog"),
        ("my.table@[]@[my.catalog]", "my.table", None, "my.catalog"),
        ("my.table@[]@my.catalog", "my.table", None, "my.catalog"),
        ("my.table@my]schema", "my.table", "my]schema", None),
        ("my.table@my]]schema", "my.table", "my]]schema", None),
        ("my.table@[my]]schema]", "my.table", "my]schema", None),
        ("my.table@my[schema", "my.table", "my[schema", None),
    ],
)
def test_an_address_is_read_into_its_parts(text, table, schema, catalog):
    """UT-11: sixteen texts of the reference's own."""
    assert address.parse_sqlserver(text) == QueueAddress(table, schema, catalog)


@pytest.mark.parametrize(
    ("text", "schema", "catalog"),
    [
        # All closing brackets of a part are counted, not only those right before the "@".
        ("orders@[a]b]@cat", "[a]b]@cat", None),
        ("orders@[a]b@c]", "[a]b", "c]"),
        # The search for the end of a part begins at its second character.
        ("orders@@cat", "@cat", None),
    ],
)
def test_a_malformed_address_means_the_table_that_peers_take_it_for(text, schema, catalog):
    assert address.parse_sqlserver(text) == QueueAddress("orders", schema, catalog)


@pytest.mark.parametrize("text", ["my.tb[e@[my.[sch@ma]@[my.c@ta]]og]", "Sales@[dbo]@[nservicebus]"])
def test_a_canonical_address_is_left_as_it_is(text):
    """UT-12: whatever the defaults are."""
    book = AddressBook(SqlServer(), schema="other", catalog="elsewhere")
    assert book.resolve(text).canonical == text


@pytest.mark.parametrize(("name", "quoted"), [("abc", "[abc]"), ("a[bc", "[a[bc]"), ("a]bc", "[a]]bc]"), ("", "[]")])
def test_quoting_a_name_and_unquoting_it_are_inverse(name, quoted):
    """UT-13: the cases with a name; there is no name None here."""
    assert address.bracket(name) == quoted
    assert address.unbracket(quoted) == name


@pytest.mark.parametrize("name", ["abc", "[abc", "abc]", "[", "]", "", "a[b]c"])
def test_a_name_that_is_not_wholly_in_brackets_is_not_unquoted(name):
    """UT-13: unquoting."""
    assert address.unbracket(name) == name


def test_the_table_part_is_never_unquoted():
    assert address.parse_sqlserver("[Sales]@[dbo]") == QueueAddress("[Sales]", "dbo")
    assert AddressBook(SqlServer()).resolve("[Sales]").qualified == "[dbo].[[Sales]]]"


@given(
    table=names.filter(is_sqlserver_table),
    schema=st.none() | names_not_in_brackets,
    catalog=st.none() | names_not_in_brackets,
)
@example(table="my.tb[e", schema="my.[sch@ma", catalog="my.c@ta]og")
@example(table="]", schema="]", catalog="[")
def test_what_is_written_for_sqlserver_reads_back_the_same(table, schema, catalog):
    written = QueueAddress(table, schema, catalog)
    assert address.parse_sqlserver(address.format_sqlserver(written)) == written


@given(names)
def test_nothing_in_a_name_ends_its_brackets(name):
    quoted = address.bracket(name)
    assert re.fullmatch(r"\[(?:[^\]]|\]\])*\]", quoted, re.DOTALL)
    assert quoted[1:-1].replace("]]", "]") == name
    assert address.unbracket(quoted) == name


# --- the PostgreSQL family ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table", "schema"),
    [
        ("orders", "orders", None),
        ("my.error", "error", "my"),
        ('"my.error"', "my.error", None),
        ('"public"."My.Endpoint"', "My.Endpoint", "public"),
        ('sales."orders"', "orders", "sales"),
        ('"sa""les"."or""ders"', 'or"ders', 'sa"les'),
        ('"a.b".c.d', "c.d", "a.b"),
        (".orders", "orders", None),
    ],
)
def test_a_postgresql_address_is_cut_at_its_first_dot_outside_quotes(text, table, schema):
    assert address.parse_postgresql(text) == QueueAddress(table, schema)


def test_a_postgresql_address_is_written_quoted_with_the_schema_first():
    assert address.format_postgresql(QueueAddress("My.Endpoint", "public")) == '"public"."My.Endpoint"'
    assert address.format_postgresql(QueueAddress('or"ders')) == '"or""ders"'


def test_the_name_of_an_endpoint_is_not_parsed_so_its_dots_stay_in_the_table():
    table = AddressBook(PostgreSql()).resolve(QueueAddress("My.Endpoint"))
    assert table.canonical == '"public"."My.Endpoint"'
    assert table.table == "My.Endpoint"


@given(table=names, schema=optional_names)
def test_what_is_written_for_postgresql_reads_back_the_same(table, schema):
    written = QueueAddress(table, schema)
    assert address.parse_postgresql(address.format_postgresql(written)) == written


@given(names)
def test_nothing_in_a_name_ends_its_double_quotes(name):
    quoted = address.double_quote(name)
    assert re.fullmatch(r'"(?:[^"]|"")*"', quoted, re.DOTALL)
    assert quoted[1:-1].replace('""', '"') == name
    assert address.undouble_quote(quoted) == name


# --- SQLite ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("orders", "orders"),
        ("my.orders@home", "my.orders@home"),
        ("[orders]", "[orders]"),
        ('"my.error"', "my.error"),
        ('"a""b"', 'a"b'),
        ('"', '"'),
        ('a"b', 'a"b'),
    ],
)
def test_a_sqlite_address_is_a_table_name(text, table):
    assert address.parse_sqlite(text) == QueueAddress(table)


def test_a_sqlite_address_with_a_schema_is_refused_by_name():
    with pytest.raises(AddressError, match="SQLite has none"):
        address.parse_sqlite('"public"."orders"')


@given(names)
@example('"a"')
@example('"a"b"')
@example('""')
def test_what_is_written_for_sqlite_reads_back_the_same(name):
    assert address.parse_sqlite(address.format_sqlite(QueueAddress(name))) == QueueAddress(name)


# --- what no address may be --------------------------------------------------------------------------------

parsers = pytest.mark.parametrize(
    "parse", [address.parse_sqlserver, address.parse_postgresql, address.parse_sqlite], ids=lambda f: f.__name__
)
dialects = pytest.mark.parametrize("dialect", [SqlServer(), PostgreSql(), Sqlite()], ids=lambda dialect: dialect.name)


@parsers
@pytest.mark.parametrize("text", ["", " ", "\t\n"])
def test_an_empty_address_is_refused(parse, text):
    with pytest.raises(AddressError, match="empty"):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (address.parse_sqlserver, "@[dbo]"),
        (address.parse_postgresql, "dbo."),
        (address.parse_postgresql, '""'),
        (address.parse_sqlite, '""'),
    ],
)
def test_an_address_without_a_table_is_refused(parse, text):
    with pytest.raises(AddressError, match="names no table"):
        parse(text)


@parsers
def test_a_nul_character_is_refused(parse):
    with pytest.raises(AddressError, match="NUL"):
        parse("a\0b")


@dialects
@pytest.mark.parametrize("table", ["a\0b", "", "  "])
def test_a_table_that_no_database_can_have_is_refused_in_parts_as_in_text(dialect, table):
    with pytest.raises(AddressError):
        AddressBook(dialect).resolve(QueueAddress(table))


@dialects
def test_text_that_is_no_unicode_is_refused(dialect):
    # What Python makes of an argument on the command line that is not UTF-8.
    book = AddressBook(dialect)
    with pytest.raises(AddressError):
        book.check_length(book.resolve("caf\udce9"))


@pytest.mark.parametrize("table", ["a@b", "a@", "@"])
def test_a_sqlserver_table_with_an_at_sign_is_refused(table):
    """Its canonical address would name another table, and claims are found again by that address."""
    with pytest.raises(AddressError):
        AddressBook(SqlServer()).resolve(QueueAddress(table))


@pytest.mark.parametrize("table", ["#orders", "##orders"])
def test_a_sqlserver_table_that_would_be_temporary_is_refused(table):
    """A name with # makes a temporary table, brackets or not: gone with its connection, and its messages too."""
    book = AddressBook(SqlServer())
    with pytest.raises(AddressError):
        book.check_length(book.resolve(table))


# --- resolution --------------------------------------------------------------------------------------------


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
def test_another_reader_of_sql_finds_the_same_names_in_the_quoted_table(dialect: Dialect, table, schema, catalog):
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
def test_another_reader_of_sql_finds_the_same_text_in_a_literal(dialect: Dialect, name):
    tree = sqlglot.parse_one(f"SELECT {dialect.literal(name)}", dialect=SQLGLOT_NAMES[dialect.name])
    (found,) = tree.find_all(exp.Literal, exp.National)
    assert found.name == name


# --- length ------------------------------------------------------------------------------------------------


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
