"""Rows that other programs wrote: values that a database holds and no program here knows stop no queue."""

import uuid

import pytest

from queue_pipeline.transport import OutgoingMessage, TransactionMode, new_message
from queue_pipeline.transport.addresses.queues import DELAYED_SUFFIX
from queue_pipeline_tests.support.databases.hostile_rows import stored
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, Bus, body_of, number_of
from queue_pipeline_tests.support.nginn.nginn_bus import settings as nginn_settings

MOMENTS = ["infinity", "20000-01-01", "9999-12-31 23:59:59.999999"]
PAST = ["-infinity", "0044-03-15 BC", "0001-01-01"]
INVALID = b'{"own":"\xff"}'


@pytest.fixture
def at_infinity(postgresql):
    """Messages that never expire, between ones that have, and ordinary ones."""
    transport = postgresql.transport()
    transport.install("orders")
    insert = (
        f"INSERT INTO {transport.resolve('orders').qualified} (id, expires, headers, body) VALUES (?, ?, '{{}}', ?)"
    )
    for moment in [*MOMENTS, None, *PAST]:
        postgresql.sql(transport, insert, (uuid.uuid4(), moment, str(moment).encode()))
    return transport


LIVING = [b"infinity", b"20000-01-01", b"9999-12-31 23:59:59.999999", b"None"]


@pytest.mark.parametrize("mode", TransactionMode)
def test_infinite_times_of_expiry_are_received(at_infinity, mode):
    with at_infinity.receive("orders", 100, mode=mode) as batch:
        assert [message.body for message in batch] == LIVING
        assert batch.expired == len(PAST)


def test_infinite_times_of_expiry_are_claimed(at_infinity):
    assert [shown.expired for shown in at_infinity.show("orders", 100)] == [False] * 4 + [True] * 3
    assert at_infinity.status("orders")[0].expired == len(PAST)
    claim = at_infinity.claim("orders", "me", 100)
    assert (claim.messages, claim.expired) == (len(LIVING), len(PAST))
    found = [body for part in at_infinity.claim_reader.read(claim) for body in part.column("body").to_pylist()]
    assert found == LIVING


def test_a_delayed_message_may_be_due_at_any_time(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    orders = transport.resolve("orders")
    delayed = transport.book.sibling(orders, DELAYED_SUFFIX).qualified
    for moment in ["-infinity", "infinity", "20000-01-01"]:
        insert = f"INSERT INTO {delayed} (id, headers, body, due) VALUES (?, '{{}}', ?, ?)"
        postgresql.sql(transport, insert, (uuid.uuid4(), moment.encode(), moment))
    assert transport.next_due_seconds(orders) < 0
    assert transport.status("orders")[0].delayed == 3
    assert transport.move_due(orders) == 1
    assert transport.next_due_seconds(orders) > 10**11
    assert [shown.body for shown in transport.show("orders")] == [b"-infinity"]


@pytest.mark.parametrize("column", ["insert_time", "retry_time", "last_processed"])
@pytest.mark.parametrize("moment", ["infinity", "-infinity", "20000-01-01"])
def test_messages_of_nginn_may_have_infinite_times(postgresql, column, moment):
    transport = postgresql.transport(nginn=nginn_settings())
    transport.install(ORDERS, BILLING)
    bus = Bus(postgresql, transport)
    for number in range(3):
        bus.insert(body_of(number), unique_id=f"m{number}")
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET {column} = ? WHERE unique_id = 'm1'", (moment,))
    assert len(transport.show(ORDERS, 10)) == 3
    claim = transport.claim(ORDERS, "me", 10)
    bodies = [body for part in transport.claim_reader.read(claim) for body in part.column("body").to_pylist()]
    assert sorted(map(number_of, bodies)) == [0, 1, 2]
    transport.claims.give_back(claim)
    for subqueue in "RXFI":
        bus.execute(f"UPDATE {bus.table(ORDERS)} SET subqueue = '{subqueue}'")
        assert transport.status(ORDERS)[0].queue == ORDERS
        transport.nginn.failed(transport.resolve(ORDERS))
        transport.next_due_seconds(transport.resolve(ORDERS))
    with transport.receive(ORDERS, 10) as batch:
        assert sorted(number_of(message.body) for message in batch) == [0, 1, 2]


@pytest.mark.parametrize("mode", TransactionMode)
def test_bytes_that_are_no_text_are_poison_of_their_own(sqlite, mode):
    transport = with_invalid_row(sqlite)
    with transport.receive("orders", 10, mode=mode) as batch:
        assert [message.body for message in batch] == [b"before", b"after"]
        assert batch.poisoned == 1
    assert stored(transport, sqlite, "error") == [(INVALID, b"bad")]


def test_rows_that_are_not_unicode_can_be_shown_and_returned_unchanged(sqlite):
    transport = with_invalid_row(sqlite)
    assert [shown.problem is not None for shown in transport.show("orders")] == [False, True, False]
    with transport.receive("orders", 10):
        pass
    (failed,) = transport.failed.list("error")
    assert "not Unicode" in failed.problem


@pytest.mark.parametrize("column", ["Id", "Headers", "Body"])
@pytest.mark.parametrize("value", [b"{}", "{}", 5, 1.5])
def test_a_column_of_sqlite_holds_any_type(sqlite, column, value):
    """A person with a shell writes bodies as text."""
    transport = sqlite.transport()
    transport.install("orders")
    values = {"Id": str(uuid.uuid4()), "Headers": "{}", "Body": b"{}", column: value}
    marks = ", ".join("?" * len(values))
    table = transport.resolve("orders").qualified
    for _ in range(2):
        sqlite.sql(transport, f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values()))
    transport.send("orders", OutgoingMessage(b"other", {}))
    assert len(transport.show("orders")) == 3
    claim = transport.claim("orders", "me", 10)
    assert sum(part.num_rows for part in transport.claim_reader.read(claim)) == 3
    transport.claims.give_back(claim)
    for mode in TransactionMode:
        with transport.receive("orders", 1, mode=mode) as batch:
            assert len(batch.messages) <= 1


def with_invalid_row(sqlite):
    transport = sqlite.transport()
    transport.install("orders")
    transport.send("orders", new_message("before"))
    table = transport.resolve("orders").qualified
    insert = f"INSERT INTO {table} (Id, Headers, Body) VALUES (?, CAST(? AS TEXT), ?)"
    sqlite.sql(transport, insert, (str(uuid.uuid4()), INVALID, b"bad"))
    transport.send("orders", new_message("after"))
    return transport
