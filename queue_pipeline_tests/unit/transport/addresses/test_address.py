"""Addresses as text: each family writes and reads them, and refuses what none may be."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses import address
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer
from queue_pipeline_tests.support.databases.hostile_names import (
    dialects,
    is_sqlserver_table,
    names,
    names_not_in_brackets,
    optional_names,
)


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


parsers = pytest.mark.parametrize(
    "parse", [address.parse_sqlserver, address.parse_postgresql, address.parse_sqlite], ids=lambda f: f.__name__
)


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
