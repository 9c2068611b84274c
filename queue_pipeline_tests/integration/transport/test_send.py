from datetime import timedelta

import pytest
from sqlalchemy import create_engine

from queue_pipeline.errors import InvalidMessageError, LayoutChangedError, QueueNotFoundError
from queue_pipeline.transport import (
    InstallOptions,
    Operation,
    OutgoingMessage,
    QueueAddress,
    TransactionMode,
    new_message,
)
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.both_drivers

HOSTILE = "x'; DROP TABLE orders; --"


def bodies(transport, queue):
    return [shown.body for shown in transport.show(queue, 1000)]


def test_unicode_in_header_names_and_values_survives(transport):
    """TT-15: BMP and astral characters, controls and quotes."""
    headers = {"ключ \U0001f680": "значение \U0001f600", "引用": '"\\/\r\n\t', "empty": "", "ünï": "\u2028\ufeff"}
    transport.send("orders", OutgoingMessage(b"", headers))
    with transport.receive("orders") as batch:
        received = batch.messages[0].headers
    assert {name: received[name] for name in headers} == headers


@pytest.mark.parametrize("isolated", [False, True])
@pytest.mark.parametrize("inside_a_receive", [False, True])
def test_operations_are_stored_in_their_destinations_all_or_none(transport, backend, inside_a_receive, isolated):
    """IT-02, IT-03, IT-04: both rows or, with one bad destination, an error that names it and no row at all."""
    if backend.name == "sqlite" and inside_a_receive and isolated:
        pytest.skip("needs a second writer beside the open receive; SQLite has one")
    transport.install("billing", "shipping")
    good = [Operation("billing", new_message("1")), Operation("shipping", new_message("2"))]
    bad = [Operation("billing", new_message("3")), Operation("nowhere", new_message("4"))]

    def dispatch(operations):
        if inside_a_receive:
            with transport.receive("orders") as batch:
                batch.send(operations, isolated=isolated)
        else:
            transport.dispatch(operations)

    dispatch(good)
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        dispatch(bad)
    assert bodies(transport, "billing") == [b"1"]
    assert bodies(transport, "shipping") == [b"2"]


def test_messages_never_expire_unless_they_say_so(transport):
    """IT-08, IT-09: no time to live by default, and the diagnostic header alone does nothing."""
    transport.send("orders", [new_message("1"), OutgoingMessage(b"2", {wire.TIME_TO_BE_RECEIVED: "00:00:00.0010000"})])
    assert [shown.expired for shown in transport.show("orders")] == [False, False]


def test_time_to_be_received_is_counted_from_now_on_the_databases_clock(transport, backend):
    """IT-10: the row expires by itself; a time to live of zero or less is refused instead of stored as expired."""
    transport.send("orders", new_message("soon", time_to_be_received=timedelta(milliseconds=1)))
    transport.send("orders", new_message("later", time_to_be_received=timedelta(days=24)))
    eventually(lambda: [shown.expired for shown in transport.show("orders")] == [True, False])
    for bad in (timedelta(0), timedelta(minutes=-1), timedelta(days=24, milliseconds=1)):
        with pytest.raises(InvalidMessageError, match="24 days"):
            transport.send("orders", new_message("bad", time_to_be_received=bad))
    assert transport.peek("orders") == 2


def test_time_to_live_together_with_a_delay_is_refused(transport):
    """AS-07: with a text that says so, and nothing is stored."""
    message = new_message("{}", time_to_be_received=timedelta(minutes=1), delay=timedelta(minutes=1))
    with pytest.raises(InvalidMessageError, match="delayed delivery with a time to be received is not supported"):
        transport.send("orders", message)
    assert transport.status("orders")[0].delayed == 0


def test_a_header_that_is_no_text_is_refused_before_anything_is_written(transport):
    bad = OutgoingMessage(b"", {"n": 1, wire.MESSAGE_ID: "the-id"})
    with pytest.raises(InvalidMessageError, match=r"header 'n' of message the-id is int"):
        transport.send("orders", [new_message("good"), bad])
    assert transport.peek("orders") == 0


@pytest.mark.parametrize("enlisted", [False, True])
def test_a_bad_header_at_the_end_of_many_messages_undoes_them_all(transport, enlisted):
    messages = [new_message("x" * 500) for _ in range(3000)] + [OutgoingMessage(b"", {"n": 1})]
    if enlisted:
        with transport.transaction() as connection:
            with pytest.raises(InvalidMessageError, match="header 'n'"):
                transport.send("orders", messages, connection)
            transport.send("orders", new_message("the caller goes on"), connection)
        assert bodies(transport, "orders") == [b"the caller goes on"]
    else:
        with pytest.raises(InvalidMessageError, match="header 'n'"):
            transport.send("orders", messages)
        assert transport.peek("orders") == 0


def test_many_messages_keep_their_order_and_their_bytes(transport):
    messages = [OutgoingMessage(bytes([n % 256]) * (n % 700), {"n": str(n)}) for n in range(1500)]
    messages.append(OutgoingMessage(b"\x00" * 3_000_000, {"n": "big"}))
    assert transport.send("orders", messages) == 1501
    received = []
    while len(received) < 1501:
        with transport.receive("orders", 1000) as batch:
            received += list(batch)
    assert [message.headers["n"] for message in received] == [str(n) for n in range(1500)] + ["big"]
    assert [message.body for message in received] == [message.body for message in messages]


def test_a_hostile_address_is_a_quoted_name_and_nothing_else(transport):
    """AS-09: SQL in a reply address names a table that does not exist."""
    for address in (HOSTILE, f"{HOSTILE}@[dbo]]; DROP TABLE orders; --]", '"public"; DROP TABLE orders; --'):
        with pytest.raises(QueueNotFoundError):
            transport.send(address, new_message("{}"))
    assert transport.peek("orders") == 0


@pytest.mark.parametrize("name", ["[orders]", "my.orders", "it's; a $queue & 'more'", "日本 \U0001f600"])
def test_a_queue_can_have_any_name(transport, backend, name):
    """AS-10, AS-11: brackets around a name and special characters in it are taken literally."""
    if backend.is_babelfish and "]" in name:
        pytest.skip("needs ]] in names, which Babelfish cannot parse")
    queue = QueueAddress(name)
    transport.install(queue)
    transport.send(queue, new_message("{}"))
    canonical = transport.resolve(queue).canonical
    with transport.receive(canonical) as batch:
        assert len(batch) == 1


def test_a_body_column_for_people_does_not_disturb_traffic(backend):
    """AS-12: BodyString shows the body, and is never written."""
    transport = backend.transport()
    transport.install("orders", options=InstallOptions(body_string=True))
    transport.install("orders", options=InstallOptions(body_string=True))
    # SQL Server's cast reads UTF-16, Babelfish's the code page of the server.
    encoding = "utf-16-le" if backend.name == "sqlserver" and not backend.is_babelfish else "utf-8"
    transport.send("orders", new_message("legible".encode(encoding)))
    table = transport.resolve("orders").qualified
    assert backend.sql(transport, f"SELECT BodyString FROM {table}")[0][0].rstrip("\0") == "legible"
    claim = transport.claims.claim(transport.resolve("orders"), "test", 10)
    transport.claims.give_back(claim)
    with transport.receive("orders") as batch:
        assert len(batch) == 1


def test_sends_in_the_callers_transaction_appear_only_if_it_commits(transport):
    """AS-15: outside a receive."""
    with pytest.raises(ZeroDivisionError), transport.transaction() as connection:
        transport.send("orders", new_message("rolled back"), connection)
        raise ZeroDivisionError
    with transport.transaction() as connection:
        transport.send("orders", new_message("committed"), connection)
    assert bodies(transport, "orders") == [b"committed"]


def test_sends_in_the_callers_transaction_are_independent_of_the_receive(transport, backend):
    """AS-16, AS-19: in a receive that fails, what the caller itself committed is sent and what it undid is not."""
    if backend.name == "sqlite":
        pytest.skip("needs a second writer beside the open receive; SQLite has one")
    transport.install("billing")
    transport.send("orders", new_message("{}"))
    with pytest.raises(ZeroDivisionError), transport.receive("orders"):
        with transport.transaction() as mine:
            transport.send("billing", new_message("mine"), mine)
        with pytest.raises(KeyError), transport.transaction() as undone:
            transport.send("billing", new_message("undone"), undone)
            raise KeyError
        raise ZeroDivisionError
    assert bodies(transport, "billing") == [b"mine"]
    assert transport.peek("orders") == 1


def test_sends_on_the_callers_connection_end_with_the_callers_transaction(transport, backend):
    """AS-17: an enlisted connection is neither committed nor rolled back by the transport."""
    engine = create_engine(transport.database.engine.url)
    with engine.connect() as connection:
        transport.send("orders", new_message("undone"), transport.enlist(connection))
        connection.rollback()
        transport.send("orders", new_message("done"), transport.enlist(connection))
        connection.commit()
    engine.dispose()
    assert bodies(transport, "orders") == [b"done"]


def test_a_transport_that_only_sends_needs_the_destination_table_and_no_other(backend):
    """TT-27: nothing is opened or created for receiving."""
    installer = backend.transport()
    installer.install(plain_queues=["destination"])
    sender = backend.transport()
    assert sender.send("destination", new_message("{}")) == 1
    assert [status.queue for status in installer.status()] == [installer.resolve("destination").canonical]


def test_a_removed_or_added_recoverable_column_is_noticed(sqlserver):
    """IT-07: the table is looked at again; in the caller's transaction the error says to try again."""
    transport = sqlserver.transport()
    transport.install("orders")
    table = transport.resolve("orders").qualified
    transport.send("orders", new_message("with"))
    sqlserver.sql(transport, f"ALTER TABLE {table} DROP COLUMN Recoverable")
    with pytest.raises(LayoutChangedError, match="try again"), transport.transaction() as connection:
        transport.send("orders", new_message("fails"), connection)
    transport.send("orders", new_message("without"))
    sqlserver.sql(transport, f"DELETE FROM {table}")
    sqlserver.sql(transport, f"ALTER TABLE {table} ADD Recoverable bit NOT NULL")
    transport.send("orders", new_message("with again"))
    assert bodies(transport, "orders") == [b"with again"]


@pytest.mark.parametrize("mode", list(TransactionMode))
def test_every_mode_can_reply_to_the_queue_it_reads(transport, mode):
    transport.send("orders", new_message("ping"))
    with transport.receive("orders", mode=mode) as batch:
        batch.send([Operation("orders", new_message("pong"))])
    assert bodies(transport, "orders") == [b"pong"]
