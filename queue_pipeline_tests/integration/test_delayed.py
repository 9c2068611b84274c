import time
from datetime import timedelta

import pytest

from queue_pipeline.transport import TransactionMode, new_message
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.errors import QueueNotFoundError
from queue_pipeline_tests.support.waiting import eventually


def move(transport, queue="orders"):
    return transport.delayed.move_due(transport.resolve(queue))


def test_a_delayed_message_arrives_no_earlier_than_its_time(transport):
    """AS-04, XT-05: stored first, moved when it is due, received as any other."""
    started = time.monotonic()
    transport.send("orders", new_message("later", delay=timedelta(seconds=0.5)))
    assert transport.peek("orders") == 0
    eventually(lambda: move(transport))
    assert time.monotonic() - started >= 0.5
    with transport.receive("orders") as batch:
        (message,) = batch
    assert message.body == b"later"
    assert wire.FORWARD_DESTINATION not in message.headers
    assert batch.queue.canonical == transport.resolve("orders").canonical


def test_a_due_time_in_the_past_is_due_now(transport):
    """AS-05: negative delays of any length."""
    transport.send("orders", [new_message("past", delay=timedelta(days=-400, milliseconds=-7))])
    assert move(transport) == 1
    assert transport.peek("orders") == 1


def test_a_long_delay_stored_first_does_not_hide_a_short_one(transport):
    """AS-08: the next due time is that of the earliest."""
    transport.send("orders", new_message("tomorrow", delay=timedelta(days=1)))
    transport.send("orders", new_message("soon", delay=timedelta(milliseconds=100)))
    due = transport.delayed.next_due_seconds(transport.resolve("orders"))
    assert due is not None and due <= 0.1
    assert eventually(lambda: move(transport)) == 1
    assert 86_000 < transport.delayed.next_due_seconds(transport.resolve("orders")) <= 86_400
    assert transport.show("orders")[0].body == b"soon"


def test_due_messages_move_in_due_order_in_batches(transport):
    delays = [timedelta(seconds=-n) for n in (3, 9, 1, 7, 5)]
    transport.send("orders", [new_message(str(n), delay=delay) for n, delay in enumerate(delays)])
    assert transport.delayed.move_due(transport.resolve("orders"), batch=2) == 5
    assert [shown.body for shown in transport.show("orders")] == [b"1", b"3", b"4", b"0", b"2"]
    assert transport.delayed.next_due_seconds(transport.resolve("orders")) is None


def test_another_endpoints_delayed_table_forwards_on_receive(transport, backend):
    """A delayed send of endpoint `orders` to `billing` goes through orders' own tables."""
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    sender.send("billing", new_message("for billing", delay=timedelta(seconds=-1)))
    sender.send("orders", new_message("for orders", delay=timedelta(seconds=-1)))
    assert (transport.status("orders")[0].delayed, transport.status("billing")[0].delayed) == (2, 0)
    assert move(transport) == 2
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"for orders"]
        assert batch.forwarded == 1
    (forwarded,) = transport.show("billing")
    assert forwarded.body == b"for billing"
    assert wire.FORWARD_DESTINATION not in forwarded.headers


def test_a_claim_forwards_what_is_for_another_queue_before_anyone_sees_it(transport, backend):
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    sender.send("billing", [new_message(str(n), delay=timedelta(seconds=-1)) for n in range(3)])
    transport.send("orders", new_message("own"))
    move(transport)
    claim = transport.claims.claim(transport.resolve("orders"), "test", 100)
    assert (claim.messages, claim.forwarded) == (1, 3)
    (batch,) = transport.claim_reader.read(claim)
    assert batch.column("body").to_pylist() == [b"own"]
    assert transport.peek("billing") == 3
    sender.send("billing", new_message("only forwarded", delay=timedelta(seconds=-1)))
    move(transport)
    assert transport.claims.claim(transport.resolve("orders"), "test", 100) is None
    assert transport.peek("billing") == 4


@pytest.mark.parametrize("mode", list(TransactionMode))
def test_a_delayed_message_for_a_queue_that_does_not_exist_ends_in_the_error_queue(transport, backend, mode):
    """AS-06, AP-02: FailedQ is the destination as it was written; here at the first receive, not the second."""
    sender = backend.transport(endpoint="orders")
    sender.send("orders", new_message("lost", delay=timedelta(seconds=-1)))
    name = transport.book.sibling(transport.resolve("orders"), "Delayed").qualified
    column = "headers" if backend.name == "postgresql" else "Headers"
    nowhere = "nowhere to be found"
    own = transport.resolve("orders").canonical
    rows = backend.sql(transport, f"SELECT {column} FROM {name}")
    changed = wire.encode({**wire.decode(rows[0][0]), wire.FORWARD_DESTINATION: nowhere})
    assert own in wire.decode(rows[0][0])[wire.FORWARD_DESTINATION]
    with transport.transaction() as transaction:
        transaction.execute(f"UPDATE {name} SET {column} = ?", (changed,))
    move(transport)
    with transport.receive("orders", mode=mode) as batch:
        assert len(batch) == 0
    (failed,) = transport.show("error")
    assert failed.body == b"lost"
    assert failed.headers[wire.FAILED_QUEUE] == nowhere
    assert failed.headers[wire.EXCEPTION_TYPE].endswith("QueueNotFoundError")
    assert wire.parse_timestamp(failed.headers[wire.TIME_OF_FAILURE])


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_delays_are_right_in_any_session_time_zone(postgresql, zone):
    """Writer and mover may run in different zones; the row is due when it says."""
    transport = postgresql.transport()
    transport.install("orders")

    def elsewhere():
        connection = transport.database.dialect.connect(transport.database.url)
        connection.execute(f"SET TIME ZONE '{zone}'")
        connection.commit()
        return connection

    connection = elsewhere()
    transport.send("orders", new_message("a", delay=timedelta(seconds=30)), transport.enlist(connection))
    transport.send("orders", new_message("b", delay=timedelta(seconds=-1)), transport.enlist(connection))
    transport.send("orders", new_message("c", time_to_be_received=timedelta(minutes=30)), transport.enlist(connection))
    connection.commit()
    connection.close()
    assert move(transport) == 1
    assert 20 < transport.delayed.next_due_seconds(transport.resolve("orders")) <= 30
    assert [shown.expired for shown in transport.show("orders")] == [False, False]


def test_a_queue_without_a_delayed_table_says_so(backend):
    transport = backend.transport()
    transport.install(plain_queues=["plain"])
    with pytest.raises(QueueNotFoundError, match=r"plain\.Delayed.*queue-pipeline install.*plain"):
        move(transport, "plain")


def test_movers_do_not_wait_for_each_other(transport, backend, needs_row_locks):
    transport.send("orders", [new_message(str(n), delay=timedelta(seconds=-1)) for n in range(4)])
    orders, dialect = transport.resolve("orders"), transport.database.dialect
    delayed = transport.book.sibling(orders, "Delayed")
    with transport.transaction() as slow:
        columns = transport.database.shapes.columns(slow, orders)
        assert dialect.move_due(slow, orders, delayed, columns, 2) == 2
        assert move(transport) == 2
    assert transport.peek("orders") == 4
