import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import create_engine

from queue_pipeline.errors import QueueNotFoundError
from queue_pipeline.transport import TransactionMode, new_message
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.waiting import eventually


def move(transport, queue="orders"):
    return transport.move_due(transport.resolve(queue))


def forwarding(destination):
    return wire.encode({wire.FORWARD_DESTINATION: destination})


def store(transport, backend, headers, body, *, milliseconds=-1000, queue="orders"):
    """Store a delayed message the way a peer does: with SQL of its own, under a session in UTC."""
    name = transport.book.sibling(transport.resolve(queue), "Delayed").qualified
    statement = {
        "sqlite": "(Id, Due, Headers, Body) SELECT lower(hex(randomblob(16))), "
        "strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', ? / 1000.0)), ?, ?",
        "postgresql": "(due, headers, body) SELECT "
        "(now() AT TIME ZONE 'UTC') + CAST(? AS integer) * INTERVAL '1 millisecond', CAST(? AS text), CAST(? AS bytea)",
        "sqlserver": "(Due, Headers, Body) SELECT DATEADD(millisecond, ?, GETUTCDATE()), ?, ?",
    }[backend.name]
    backend.sql(transport, f"INSERT INTO {name} {statement}", (milliseconds, headers, body))


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
    due = transport.next_due_seconds(transport.resolve("orders"))
    assert due is not None and due <= 0.1
    assert eventually(lambda: move(transport)) == 1
    assert 86_000 < transport.next_due_seconds(transport.resolve("orders")) <= 86_400
    assert transport.show("orders")[0].body == b"soon"


def test_due_messages_move_in_due_order_in_batches(transport):
    delays = [timedelta(seconds=-n) for n in (3, 9, 1, 7, 5)]
    transport.send("orders", [new_message(str(n), delay=delay) for n, delay in enumerate(delays)])
    assert transport.move_due(transport.resolve("orders"), batch=2) == 5
    assert [shown.body for shown in transport.show("orders")] == [b"1", b"3", b"4", b"0", b"2"]
    assert transport.next_due_seconds(transport.resolve("orders")) is None


def test_a_delayed_send_to_another_queue_arrives_there_without_any_receive(transport, backend):
    """A delayed send of endpoint `orders` to `billing` waits in orders' own table, and leaves the queue alone."""
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    sent = new_message("for billing", headers={"tenant": 'nörth/"1"'}, delay=timedelta(seconds=-1))
    sender.send("billing", sent)
    sender.send("orders", new_message("for orders", delay=timedelta(seconds=-1)))
    assert (transport.status("orders")[0].delayed, transport.status("billing")[0].delayed) == (2, 0)
    assert move(transport) == 2
    assert [shown.body for shown in transport.show("orders")] == [b"for orders"]
    (forwarded,) = transport.show("billing")
    assert forwarded.body == b"for billing"
    assert forwarded.headers == dict(sent.headers)


def test_messages_of_one_id_are_all_sent_on(transport, backend):
    """A sender may send the same message twice; only one call of `dispatch` takes two of an id for one."""
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    message = new_message("twice", delay=timedelta(seconds=-1))
    sender.send("billing", message)
    sender.send("billing", message)
    assert move(transport) == 2
    assert len({shown.headers[wire.MESSAGE_ID] for shown in transport.show("billing")}) == 1
    assert transport.peek("billing") == 2


def test_due_order_is_kept_in_every_queue_across_batches(transport, backend):
    """Whichever queue they are for, however small the batches are."""
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    for n in (3, 9, 1, 7, 5, 2, 8, 6, 4):
        sender.send("orders" if n % 2 else "billing", new_message(str(n), delay=timedelta(seconds=-n)))
    assert transport.move_due(transport.resolve("orders"), batch=2) == 9
    assert [shown.body for shown in transport.show("orders")] == [b"9", b"7", b"5", b"3", b"1"]
    assert [shown.body for shown in transport.show("billing")] == [b"8", b"6", b"4", b"2"]


def test_what_is_spelled_otherwise_without_a_header_or_unreadable_stays_with_the_queue_in_order(transport, backend):
    """Peers write addresses as they were given, in JSON of their own; order holds over all of them."""
    own = transport.resolve("orders").canonical
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in own)
    headers = ["{}", "not JSON", forwarding("orders"), f'{{"{wire.FORWARD_DESTINATION}" : "{escaped}"}}', "", "[1]"]
    for position, text in enumerate(headers):
        store(transport, backend, text, str(position).encode(), milliseconds=position - 60_000)
    transport.send("orders", new_message("last", delay=timedelta(seconds=-1)))
    assert move(transport) == 7
    bodies = [str(position).encode() for position in range(6)] + [b"last"]
    assert [shown.body for shown in transport.show("orders")] == bodies
    assert transport.peek("error") == 0
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"0", b"2", b"3", b"4", b"last"]
        assert all(wire.FORWARD_DESTINATION not in message.headers for message in batch)
    assert [shown.body for shown in transport.show("error")] == [b"1", b"5"]


def test_what_another_mover_put_into_the_queue_is_sent_on_by_a_receive(transport):
    """A .NET endpoint on the same tables moves everything into its input queue."""
    transport.install("billing")
    transport.send("orders", new_message("for billing", headers={wire.FORWARD_DESTINATION: "billing"}))
    transport.send("orders", new_message("for orders", headers={wire.FORWARD_DESTINATION: "orders"}))
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"for orders"]
        assert batch.forwarded == 1
    (forwarded,) = transport.show("billing")
    assert forwarded.body == b"for billing"
    assert wire.FORWARD_DESTINATION not in forwarded.headers


def test_a_claim_forwards_what_is_for_another_queue_before_anyone_sees_it(transport):
    transport.install("billing")
    to_billing = {wire.FORWARD_DESTINATION: transport.resolve("billing").canonical}
    transport.send("orders", [new_message(str(n), headers=to_billing) for n in range(3)])
    transport.send("orders", new_message("own"))
    claim = transport.claims.claim(transport.resolve("orders"), "test", 100)
    assert (claim.messages, claim.forwarded) == (1, 3)
    (batch,) = transport.claim_reader.read(claim)
    assert batch.column("body").to_pylist() == [b"own"]
    assert transport.peek("billing") == 3
    transport.send("orders", new_message("only forwarded", headers=to_billing))
    assert transport.claims.claim(transport.resolve("orders"), "test", 100) is None
    assert transport.peek("billing") == 4


NOWHERE = "nowhere to be found"


def assert_failed(transport):
    (failed,) = transport.show("error")
    assert failed.body == b"lost"
    assert failed.headers[wire.FAILED_QUEUE] == NOWHERE
    assert failed.headers[wire.EXCEPTION_TYPE].endswith("QueueNotFoundError")
    assert wire.parse_timestamp(failed.headers[wire.TIME_OF_FAILURE])
    assert wire.FORWARD_DESTINATION not in failed.headers


def test_a_delayed_message_for_a_queue_that_does_not_exist_ends_in_the_error_queue(transport, backend):
    """AS-06, AP-02: FailedQ is the destination as it was written; here as soon as it is due, without a receive."""
    store(transport, backend, forwarding(NOWHERE), b"lost")
    assert move(transport) == 1
    assert transport.peek("orders") == 0
    assert_failed(transport)


@pytest.mark.parametrize("mode", list(TransactionMode))
def test_a_message_for_a_missing_queue_that_another_mover_moved_ends_in_the_error_queue(transport, mode):
    """AS-06, AP-02: at the first receive, not at the second."""
    transport.send("orders", new_message("lost", headers={wire.FORWARD_DESTINATION: NOWHERE}))
    with transport.receive("orders", mode=mode) as batch:
        assert len(batch) == 0
    assert_failed(transport)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_delays_are_right_in_any_session_time_zone(postgresql, zone):
    """Writer and mover may run in different zones; the row is due when it says."""
    transport = postgresql.transport()
    transport.install("orders")

    engine = create_engine(transport.database.engine.url)
    with engine.begin() as connection:
        run_sql(connection, f"SET TIME ZONE '{zone}'")
        transport.send("orders", new_message("a", delay=timedelta(seconds=30)), connection)
        transport.send("orders", new_message("b", delay=timedelta(seconds=-1)), connection)
        transport.send("orders", new_message("c", time_to_be_received=timedelta(minutes=30)), connection)
    engine.dispose()
    assert move(transport) == 1
    assert 20 < transport.next_due_seconds(transport.resolve("orders")) <= 30
    assert [shown.expired for shown in transport.show("orders")] == [False, False]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_what_a_peer_stored_is_due_at_its_time_for_a_mover_in_any_zone(postgresql, zone):
    """The reference stores UTC wall-clock time; under a session in UTC that is the right instant."""
    transport = postgresql.transport()
    transport.install("orders", "billing")
    store(transport, postgresql, "{}", b"due")
    store(transport, postgresql, forwarding("billing"), b"due")
    store(transport, postgresql, "{}", b"later", milliseconds=30_000)
    # The pool hands out the connection that was used last, in the zone that it was left in.
    postgresql.sql(transport, f"SET TIME ZONE '{zone}'")
    assert postgresql.sql(transport, "SHOW TIME ZONE")[0][0] == zone
    assert move(transport) == 2
    assert 20 < transport.next_due_seconds(transport.resolve("orders")) <= 30
    assert (transport.peek("orders"), transport.peek("billing")) == (1, 1)


def test_the_zone_of_a_role_changes_nothing(postgresql, postgres):
    """Every session of the transport is in UTC, whatever the server, the database or the role says."""
    transport = postgresql.transport()
    transport.install("orders")
    postgres.run_sql("ALTER ROLE CURRENT_USER SET TimeZone = 'America/New_York'")
    try:
        elsewhere = postgresql.transport()
        store(elsewhere, postgresql, "{}", b"a peer's")
        elsewhere.send("orders", new_message("ours", delay=timedelta(seconds=-1)))
        assert move(postgresql.transport()) == 2
    finally:
        postgres.run_sql("ALTER ROLE CURRENT_USER RESET TimeZone")


def test_a_queue_without_a_delayed_table_says_so(backend):
    transport = backend.transport()
    transport.install(plain_queues=["plain"])
    with pytest.raises(QueueNotFoundError, match=r"plain\.Delayed.*queue-pipeline install.*plain"):
        move(transport, "plain")


def test_movers_do_not_wait_for_each_other(transport, backend, needs_row_locks):
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    sender.send("orders", [new_message(str(n), delay=timedelta(seconds=-2)) for n in range(4)])
    sender.send("billing", [new_message(str(n), delay=timedelta(seconds=-1)) for n in range(2)])
    orders = transport.resolve("orders")
    delayed = transport.book.sibling(orders, "Delayed")
    with transport.database.transaction() as slow:
        command = transport.database.shapes.statement(slow, "nservicebus/queue.move_due", orders, delayed=delayed)
        assert slow.count(command, limit=2) == 2
        assert move(transport) == 4
    assert (transport.peek("orders"), transport.peek("billing")) == (4, 2)


def test_several_movers_at_once_move_every_message_once(transport, backend):
    transport.install("billing")
    sender = backend.transport(endpoint="orders")
    for queue in ("orders", "billing"):
        sender.send(queue, [new_message(f"{queue} {n}", delay=timedelta(seconds=-1)) for n in range(150)])
    movers = [backend.transport() for _ in range(3)]
    with ThreadPoolExecutor(len(movers)) as pool:
        counts = list(pool.map(lambda mover: mover.move_due(mover.resolve("orders"), batch=20), movers, timeout=60))
    # One that passes over what another holds may end while that one still works; what is left is moved by the next.
    assert sum(counts) + move(transport) == 300
    with transport.receive("orders", 1000) as batch:
        bodies = {"orders": [message.body for message in batch]}
    # Without locks on what was found, a mover may take the next rows for those that another one moved meanwhile.
    assert batch.forwarded == 0 or backend.is_babelfish
    bodies["billing"] = [shown.body for shown in transport.show("billing", 1000)]
    for queue, found in bodies.items():
        assert sorted(found) == sorted(f"{queue} {n}".encode() for n in range(150))


def test_a_message_of_another_process_arrives_while_a_mover_watches(transport, backend):
    """AS-08: whichever process stored it, and whatever else waits; the mover looks twice a second."""
    transport.send("orders", new_message("tomorrow", delay=timedelta(days=1)))
    started = time.monotonic()
    mover = DueMover([(backend.transport(), "orders")])
    mover.poll()
    store(transport, backend, "{}", b"soon", milliseconds=300)

    def arrived():
        assert mover.poll() <= 0.5
        return transport.peek("orders")

    eventually(arrived)
    assert time.monotonic() - started >= 0.3
    assert [shown.body for shown in transport.show("orders")] == [b"soon"]
    assert (mover.moved, mover.last_error) == (1, None)


def test_a_mover_looks_twice_a_second_and_when_the_next_message_is_due(transport):
    """AS-08: a long delay does not hide a shorter one that is stored later."""
    mover = DueMover([(transport, "orders")])
    transport.send("orders", new_message("tomorrow", delay=timedelta(days=1)))
    assert 0 < mover.poll() <= 0.5
    transport.send("orders", new_message("soon", delay=timedelta(seconds=2)))

    def moved():
        assert mover.poll() <= 0.5
        return mover.moved

    assert eventually(moved) == 1
    assert [shown.body for shown in transport.show("orders")] == [b"soon"]


def test_a_mover_passes_over_queues_without_a_delayed_table(transport, backend):
    transport.install(plain_queues=["plain"])
    transport.send("orders", new_message("x", delay=timedelta(seconds=-1)))
    mover = DueMover([(transport, "plain"), (transport, "missing"), (transport, "orders")])
    mover.poll()
    assert (mover.moved, mover.last_error) == (1, None)
