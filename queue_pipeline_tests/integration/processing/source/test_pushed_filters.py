"""A queue that is read with filters in the database gives the messages that Spark would choose of all of them."""

import operator
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringStartsWith,
)
from sqlalchemy import event

from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.source.browse_reader import BrowseOptions, BrowseReader
from queue_pipeline.processing.source.pushed_filters import MOST_VALUES
from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline_tests.support.browse_source import read
from queue_pipeline_tests.support.databases.failed import raw

ORDERS = "sql://shop/BusOrders"
COMPARISONS = {
    EqualTo: operator.eq,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
}
COLUMNS = ("row_version", "id", "message_id", "message_type", "sent", "expires", "expired", "problem")
pytestmark = pytest.mark.both_drivers


@pytest.fixture(scope="module")
def day():
    return datetime(2026, 3, 4, 12, 0, 0, 250_000, tzinfo=UTC)


@pytest.fixture
def transport(backend, day):
    """Queues of both layouts, with messages that expire, that have expired, and that cannot be read."""
    transport = backend.transport(nginn=NGinnSettings(aliases=("shop",), endpoint="sql://shop/Web"))
    transport.install("orders", ORDERS)
    for queue in ("orders", ORDERS):
        transport.send(queue, [order(n) for n in range(4)])
        transport.send(queue, [order(4 + n, time_to_be_received=timedelta(hours=1 + n)) for n in range(2)])
    raw(transport, "no JSON", queue="orders")
    orders, bus = (transport.resolve(queue).qualified for queue in ("orders", ORDERS))
    expires = "Expires" if backend.name != "postgresql" else "expires"
    number = "seq" if backend.name == "postgresql" else "RowVersion"
    past = {"sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 hour')", "postgresql": "now() - interval '1 hour'"}
    past["sqlserver"] = "DATEADD(hour, -1, GETUTCDATE())"
    backend.sql(transport, f"UPDATE {orders} SET {expires} = {past[backend.name]} WHERE {number} = 5")
    backend.sql(transport, f"UPDATE {bus} SET unique_id = NULL WHERE id = 2")
    backend.sql(transport, f"UPDATE {bus} SET msg_text = NULL WHERE id = 3")
    if backend.name != "sqlserver":
        # There the clock of the table is the server's own.
        backend.sql(transport, f"UPDATE {bus} SET insert_time = ? WHERE id = 4", (f"{day:%Y-%m-%d %H:%M:%S}.250",))
    return transport


def order(n, **options):
    return new_message(f'{{"n": {n}}}', message_type="Shop.Order, Shop" if n % 2 else "Shop.Offer, Shop", **options)


def holds(filter_, row):
    """What Spark says of a filter and a row: true, false, or None where something is NULL."""
    if isinstance(filter_, Not):
        found = holds(filter_.child, row)
        return None if found is None else not found
    value = row[filter_.attribute[0]]
    if isinstance(filter_, IsNull | IsNotNull):
        return (value is None) is isinstance(filter_, IsNull)
    if isinstance(filter_, EqualNullSafe):
        return value == filter_.value
    if value is None:
        return None
    if isinstance(filter_, In):
        return True if value in filter_.value else None if None in filter_.value else False
    if isinstance(filter_, StringStartsWith):
        return value.startswith(filter_.value)
    if isinstance(filter_, StringContains):
        return filter_.value in value
    return None if filter_.value is None else COMPARISONS[type(filter_)](value, filter_.value)


def values_near(name, rows):
    """The values of a column, and values beside them."""
    found = list(dict.fromkeys(row[name] for row in rows if row[name] is not None))
    if name in ("sent", "expires"):
        step = timedelta(microseconds=1)
        return [value + by for value in found or [datetime.now(UTC)] for by in (-step, timedelta(), step)]
    if name == "row_version":
        return [value + by for value in (found[0], found[2], found[-1]) for by in (-1, 0, 1)] + [-(2**63), 2**63 - 1]
    if name == "expired":
        return [True, False]
    return [*found, *(value.upper() for value in found), "", "%", "'", "00000000-0000-0000-0000-000000000000"]


def filters_on(name, rows):
    column, values = (name,), values_near(name, rows)
    yield from (IsNull(column), IsNotNull(column), In(column, tuple(values[:3])), In(column, (*values[:2], None)))
    yield from (Not(In(column, tuple(values[:3]))), Not(In(column, (*values[:2], None))), In(column, (None,)))
    for value in values:
        yield from (EqualTo(column, value), Not(EqualTo(column, value)), EqualNullSafe(column, value))
        if name != "expired":
            yield from (kind(column, value) for kind in COMPARISONS)
    if isinstance(values[0], str):
        for value in dict.fromkeys(values):
            yield from (StringStartsWith(column, value[:length]) for length in (1, 5, 9, 40))
            yield from (Not(StringStartsWith(column, value[:3])), StringContains(column, value[1:3]))


@pytest.mark.parametrize("queue", ["orders", ORDERS], ids=["nservicebus", "nginn"])
def test_filters_in_the_database_and_in_spark_find_the_same_messages(transport, queue):
    everything, _ = read(transport, queue, columns=COLUMNS)
    assert len(everything) == 6 + (queue == "orders")
    filters = [one for name in COLUMNS for one in filters_on(name, everything)]
    assert len(filters) > 500
    for filter_ in filters:
        found, left = read(transport, queue, filter_, columns=COLUMNS)
        assert left in ([], [filter_])
        kept = [row["row_version"] for row in found if all(holds(one, row) for one in left)]
        assert kept == [row["row_version"] for row in everything if holds(filter_, row)], filter_


@pytest.mark.parametrize(
    ("queue", "name", "value", "text", "is_left"),
    [
        ("orders", "row_version", 31_415_926, "m.row_version > ", False),
        ("orders", "id", "00000000-0000-0000-0000-000000000000", "m.id = ", False),
        ("orders", "expires", datetime(2026, 1, 1, tzinfo=UTC), "m.expires > ", False),
        ("orders", "expired", True, "m.expired = ", False),
        (ORDERS, "row_version", 31_415_926, "m.row_version > ", False),
        (ORDERS, "sent", datetime(2026, 1, 1, tzinfo=UTC), "m.sent > ", True),
        (ORDERS, "message_id", "0" * 32, "m.message_id = ", True),
    ],
)
def test_the_statement_that_is_sent_holds_the_condition_and_binds_its_value(
    transport, queue, name, value, text, is_left
):
    sent = []
    kind = EqualTo if text.endswith("= ") else GreaterThan
    settings = executor_settings(transport)
    heard = settings.open().database.engine
    listener = lambda *arguments: sent.append(arguments[2:4])  # noqa: E731 - it is removed again
    event.listen(heard, "before_cursor_execute", listener)
    try:
        _, left = read(transport, queue, kind((name,), value), columns=["row_version"])
    finally:
        event.remove(heard, "before_cursor_execute", listener)
    statements = [(statement, str(values)) for statement, values in sent if "row_version" in statement]
    assert statements, sent
    for statement, values in statements:
        assert f"AND {text}" in statement
        bound = int(value.timestamp() * 1000) if isinstance(value, datetime) else int(value) if value is True else value
        assert str(bound) in values
        assert str(bound) not in statement or bound == 1
    assert bool(left) is is_left


def test_more_values_than_a_statement_takes_are_left_to_spark(transport):
    fewer, more = (In(("row_version",), tuple(range(number))) for number in (MOST_VALUES, MOST_VALUES + 1))
    assert read(transport, "orders", fewer, more, columns=["row_version"])[1] == [more]


def test_more_values_in_all_than_a_statement_takes_are_left_to_spark(transport):
    """SQL Server takes 2,100: five lists, each of which it would take, are too many."""
    lists = [Not(In(("row_version",), tuple(range(-number - 400, -number)))) for number in range(0, 4_000, 400)]
    one = EqualTo(("expired",), False)
    rows, left = read(transport, "orders", *lists, one, columns=["row_version"])
    assert len(rows) == 6 and left == lists[1:]


@pytest.mark.parametrize("queue", ["orders", ORDERS], ids=["nservicebus", "nginn"])
def test_bodies_that_the_schema_does_not_have_stay_in_the_database(transport, queue):
    """A reader that gives none would do the same for Spark, so the messages themselves are looked at."""
    browser, table = transport.browser, transport.resolve(queue)
    with_bodies, without = (list(browser.scan(table, with_body=asked)) for asked in (True, False))
    assert {one.body for one in without} == {b""} and any(one.body for one in with_bodies)
    for one, same in zip(without, with_bodies, strict=True):
        assert (one.message_type, one.problem, one.expires) == (same.message_type, same.problem, same.expires)


def test_a_driver_accepts_filters_where_only_executors_know_the_database(transport, monkeypatch):
    monkeypatch.delenv("QUEUE_PIPELINE_DATABASE", raising=False)
    monkeypatch.setenv("QUEUE_PIPELINE_EXECUTOR_DATABASE", "environment")
    settings = executor_settings(transport)
    for queue, column in (("orders", "row_version"), (ORDERS, "message_id")):
        reader = BrowseReader(settings, BrowseOptions(queue=queue), T.StructType())
        kept = EqualTo((column,), 1 if column == "row_version" else "x")
        assert list(reader.pushFilters([kept])) == ([] if queue == "orders" else [kept])
