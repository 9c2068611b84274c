import pytest

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.layouts.nginn.endpoint import is_endpoint, parse_endpoint
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings


@pytest.fixture(params=sorted(DIALECTS))
def book(request):
    return AddressBook(DIALECTS[request.param], nginn=NGinnSettings(aliases=("db", "Main")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sql://db/Orders", ("db", "Orders")),
        ("sql://my alias.1/_Orders$2", ("my alias.1", "_Orders$2")),
        (f"sql://db/{'a' * 41}", ("db", "a" * 41)),
    ],
)
def test_an_endpoint_is_an_alias_and_a_table(text, expected):
    assert parse_endpoint(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Orders", "is no endpoint"),
        ("SQL://db/Orders", "is no endpoint"),
        ("sql://db", "is no endpoint"),
        ("sql://db/", "is no endpoint"),
        ("sql:///Orders", "is no endpoint"),
        ("sql://db/a/b", "is no endpoint"),
        ("http://db/Orders", "is no endpoint"),
        ("sql://db/My Orders", "letters, digits and _"),
        ("sql://db/1st", "letters, digits and _"),
        ("sql://db/a;b", "letters, digits and _"),
        ("sql://db/a]b", "letters, digits and _"),
        ("sql://db/a.b", "letters, digits and _"),
        (f"sql://db/{'a' * 42}", "51 characters"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text, problem):
    with pytest.raises(AddressError, match=problem):
        parse_endpoint(text)


@pytest.mark.parametrize(("text", "expected"), [("sql://x", True), ("SQL://x", False), ("orders", False), (5, False)])
def test_an_endpoint_is_recognised_by_how_it_begins(text, expected):
    assert is_endpoint(text) is expected


def test_an_endpoint_is_a_table_of_this_database_under_a_known_alias(book):
    table = book.resolve("sql://db/Orders")
    assert (table.table, table.layout, table.canonical) == ("Orders", "nginn", "sql://db/Orders")
    assert table == book.resolve("sql://Main/Orders")
    assert table != book.resolve("Orders")


def test_an_unknown_alias_is_refused_with_those_that_are_known(book):
    with pytest.raises(AddressError, match=r"'main' is not known to mean this database \(known: db, Main\)"):
        book.resolve("sql://main/Orders")


def test_without_aliases_none_is_known():
    with pytest.raises(AddressError, match=r"known: none"):
        AddressBook(DIALECTS["sqlite"]).resolve("sql://db/Orders")


@pytest.mark.parametrize(
    ("endpoint", "local"),
    [
        ("sql://db/Orders", True),
        ("SQL://DB/ORDERS", True),
        ("sql://Main/orders", True),
        ("sql://main/orders", False),
        ("sql://db/Other", False),
        ("sql://far/Orders", False),
        ("http://server/Orders", False),
        ("Orders", False),
    ],
)
def test_endpoints_of_this_queue_are_recognised(book, endpoint, local):
    assert book.is_local(endpoint, book.resolve("sql://db/Orders")) is local
