"""Messages received in a transaction that stays open until their results are written; only PostgreSQL has that."""

import json
from datetime import timedelta

import pyarrow as pa
import pytest

from queue_pipeline.transport import InstallOptions, OutgoingMessage, ReadyMessages, new_message
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.arrow_column import ArrowColumn
from queue_pipeline.transport.dialect import NEVER_EXPIRES, Bounds
from queue_pipeline.transport.errors import ConfigurationError, DatabaseUnavailableError, QueueNotFoundError
from queue_pipeline_tests.support.nginn_bus import ORDERS, settings
from queue_pipeline_tests.support.waiting import eventually

MINUTE = 60.0
PLENTY = Bounds(1_000, 1 << 30)


@pytest.fixture
def transport(postgresql):
    transport = postgresql.transport()
    transport.install("orders", "billing")
    return transport


def send(transport, count, size=0, first=0):
    numbers = range(first, first + count)
    transport.send("orders", [OutgoingMessage(str(n).encode().ljust(size), {"n": str(n)}) for n in numbers])


def take(transport, bounds=PLENTY, owner="me", lease=MINUTE, queue="orders"):
    return transport.open_batches.take(transport.resolve(queue), owner, bounds, lease)


def numbers(batch):
    return [int(body) for body in batch.messages.column("body").to_pylist()]


def bodies(transport, queue):
    return [shown.body for shown in transport.show(queue, 100)]


def results(count, destination="billing"):
    """Results as columns of Arrow's, as a transform leaves them."""
    headers = ArrowColumn(pa.array([json.dumps({"n": str(n), "note": "grüße"}) for n in range(count)], pa.string()))
    contents = ArrowColumn(pa.array([f"result {n}".encode() for n in range(count)], pa.binary()))
    return ReadyMessages(destination, False, [str(n) for n in range(count)], [NEVER_EXPIRES] * count, headers, contents)


def figures(transport, backend):
    table = transport.book.own("QueueMetrics").qualified
    return [tuple(row) for row in backend.sql(transport, f"SELECT queue, owner, attempt, messages, sent FROM {table}")]


class OnPurpose(Exception):
    """Raised by tests inside a batch."""


# --- what is taken -----------------------------------------------------------------------------------------


def test_an_empty_queue_has_no_batch(transport):
    with take(transport) as batch:
        assert batch is None


def test_the_newest_message_is_told_whoever_holds_it(transport):
    queue = transport.resolve("orders")
    assert transport.open_batches.newest(queue) is None
    send(transport, 3)
    newest = transport.open_batches.newest(queue)
    with take(transport) as batch:
        assert batch.messages["row_version"][-1].as_py() == newest
        assert transport.open_batches.newest(queue) == newest
    assert transport.open_batches.newest(queue) is None


def test_messages_come_in_the_order_of_sending_and_are_gone_afterwards(transport):
    send(transport, 300)
    with take(transport) as batch:
        assert numbers(batch) == list(range(300))
        versions = batch.messages.column("row_version").to_pylist()
        assert versions == sorted(set(versions))
        assert batch.claim.first_row_version == versions[0]
    assert transport.peek("orders") == 0


def test_a_message_comes_as_it_was_sent(transport):
    headers = {"note": 'grüße / "quoted" \\ 😀 \n', wire.MESSAGE_ID: "the id"}
    transport.send("orders", [OutgoingMessage(bytes(range(256)), headers), OutgoingMessage(b"", {})])
    shown = transport.show("orders")
    with take(transport) as batch:
        rows = batch.messages.to_pylist()
        assert [json.loads(row["headers"]) for row in rows] == [headers, {}]
        assert [row["body"] for row in rows] == [bytes(range(256)), b""]
        assert [row["id"] for row in rows] == [message.id for message in shown]


def test_a_batch_says_who_received_how_much(transport):
    send(transport, 3, size=100)
    with take(transport, owner="the run") as batch:
        claim = batch.claim
        assert (claim.queue, claim.owner) == (transport.resolve("orders").canonical, "the run")
        assert (claim.attempt, claim.messages, claim.expired) == (1, 3, 0)
        assert claim.bytes == 3 * (100 + len('{"n":"0"}'))
        assert transport.claims.list() == [], "it is written nowhere"


def test_a_batch_is_bounded_by_messages(transport):
    send(transport, 10)
    with take(transport, Bounds(4, 1 << 30)) as batch:
        assert numbers(batch) == [0, 1, 2, 3]
    with take(transport, Bounds(4, 1 << 30)) as batch:
        assert numbers(batch) == [4, 5, 6, 7]
    assert transport.peek("orders") == 2


@pytest.mark.parametrize(("most", "taken"), [(1, 1), (1_000, 1), (1_100, 2), (2_500, 3), (1 << 40, 10)])
def test_a_batch_is_bounded_by_bytes_and_the_first_message_always_taken(transport, most, taken):
    """As a claim is: a message is taken as long as those before it stay under the bound."""
    send(transport, 10, size=1_000)
    with take(transport, Bounds(100, most)) as batch:
        assert numbers(batch) == list(range(taken))
    assert transport.peek("orders") == 10 - taken


def test_null_bodies_come_out_as_such(transport, postgresql):
    table = transport.resolve("orders").qualified
    for body in ("NULL", "'a'", "NULL", "''"):
        postgresql.sql(
            transport, f"INSERT INTO {table} (id, headers, body) VALUES (gen_random_uuid(), '{{}}', {body}) RETURNING 1"
        )
    with take(transport) as batch:
        assert batch.messages.column("body").to_pylist() == [None, b"a", None, b""]


def test_a_batch_of_nothing_but_null_bodies_is_read(transport, postgresql):
    table = transport.resolve("orders").qualified
    postgresql.sql(
        transport, f"INSERT INTO {table} (id, headers) SELECT gen_random_uuid(), '{{}}' FROM generate_series(1, 3)"
    )
    with take(transport) as batch:
        assert batch.messages.column("body").to_pylist() == [None] * 3
        assert batch.claim.bytes == 6
    assert transport.peek("orders") == 0


def test_rows_that_lie_out_of_order_on_the_disk_come_in_order(transport, postgresql, postgres):
    send(transport, 10)
    table = transport.resolve("orders").qualified
    with take(transport, Bounds(5, 1 << 30)) as batch:
        assert numbers(batch) == [0, 1, 2, 3, 4]
    postgres.run_sql(f"VACUUM {table}")
    send(transport, 4, first=10)
    on_disk = [int(seq) for (seq,) in postgresql.sql(transport, f"SELECT seq FROM {table} ORDER BY ctid")]
    assert on_disk != sorted(on_disk), "the later ones have to lie before the others"
    with take(transport) as batch:
        assert numbers(batch) == list(range(5, 14))
        assert batch.messages.column("row_version").to_pylist() == sorted(on_disk)
        assert [json.loads(text)["n"] for text in batch.messages.column("headers").to_pylist()] == [
            str(n) for n in range(5, 14)
        ]
        assert batch.claim.first_row_version == min(on_disk)


def test_what_is_to_be_forwarded_is_told(transport):
    passing = OutgoingMessage(b"1", {wire.FORWARD_DESTINATION: "billing"})
    transport.send("orders", [OutgoingMessage(b"0"), passing, passing])
    with take(transport, Bounds(2, 1 << 30)) as batch:
        assert (batch.claim.messages, batch.forwards) == (2, True)
    with take(transport) as batch:
        assert (batch.claim.messages, batch.forwards) == (1, True)
    send(transport, 1)
    with take(transport) as batch:
        assert not batch.forwards


# --- what has expired --------------------------------------------------------------------------------------


def send_expired(transport, count):
    short = timedelta(milliseconds=1)
    transport.send("orders", [new_message("x", time_to_be_received=short) for _ in range(count)])
    eventually(lambda: transport.status("orders")[0].expired == count)


def test_expired_messages_are_dropped_and_counted(transport):
    send_expired(transport, 5)
    send(transport, 2)
    with take(transport) as batch:
        assert numbers(batch) == [0, 1]
        assert (batch.claim.messages, batch.claim.expired) == (2, 5)
    assert transport.peek("orders") == 0


def test_more_expired_messages_than_fit_do_not_hide_those_behind_them(transport):
    send_expired(transport, 5)
    send(transport, 2)
    with take(transport, Bounds(2, 1 << 30)) as batch:
        assert numbers(batch) == [0]
        assert batch.claim.expired == 5
    assert bodies(transport, "orders") == [b"1"]


def test_a_queue_of_nothing_but_expired_messages_is_emptied_without_a_batch(transport, postgresql):
    send_expired(transport, 5)
    with take(transport, Bounds(2, 1 << 30)) as batch:
        assert batch is None
    assert postgresql.sql(transport, f"SELECT count(*) FROM {transport.resolve('orders').qualified}")[0][0] == 0


def test_a_message_that_does_not_expire_yet_is_received(transport):
    transport.send("orders", new_message("1", time_to_be_received=timedelta(hours=1)))
    with take(transport) as batch:
        assert numbers(batch) == [1]


# --- how it ends -------------------------------------------------------------------------------------------


def test_results_and_figures_are_committed_together_with_the_deletion(transport, postgresql):
    send(transport, 3)
    with take(transport, owner="the run") as batch:
        assert transport.open_batches.write(batch, [results(2), results(1, "orders")]) == 3
        assert transport.peek("billing") == 0
        assert transport.peek("orders") == 0
        assert figures(transport, postgresql) == []
    assert bodies(transport, "billing") == [b"result 0", b"result 1"]
    assert bodies(transport, "orders") == [b"result 0"]
    assert transport.show("billing")[0].headers["note"] == "grüße"
    assert figures(transport, postgresql) == [(transport.resolve("orders").canonical, "the run", 1, 3, 3)]


def test_statements_of_the_caller_commit_with_the_results(transport, postgresql):
    ledger = f"{postgresql.schema}.ledger"
    postgresql.sql(transport, f"CREATE TABLE {ledger} (n int NOT NULL)")
    insert = f"INSERT INTO {ledger} VALUES (?)"

    def look():
        return [int(n) for (n,) in postgresql.sql(transport, f"SELECT n FROM {ledger}")]

    send(transport, 2)
    with pytest.raises(OnPurpose), take(transport) as batch:
        transport.open_batches.write(batch, [], lambda transaction: transaction.execute(insert, (1,)))
        raise OnPurpose
    assert look() == []
    with take(transport) as batch:
        assert transport.open_batches.write(batch, [], lambda transaction: transaction.execute(insert, (2,))) == 0
        assert look() == []
    assert look() == [2]


def test_results_are_written_without_the_table_for_figures(postgresql):
    transport = postgresql.transport()
    transport.install("orders", "billing", options=InstallOptions(metrics=False))
    send(transport, 1)
    with take(transport) as batch:
        assert transport.open_batches.write(batch, [results(1)]) == 1
    assert (transport.peek("orders"), transport.peek("billing")) == (0, 1)


def test_an_exception_puts_everything_back_and_sends_nothing(transport, postgresql):
    send(transport, 3)
    with pytest.raises(OnPurpose), take(transport) as batch:
        transport.open_batches.write(batch, [results(2)])
        raise OnPurpose
    assert (transport.peek("orders"), transport.peek("billing")) == (3, 0)
    assert figures(transport, postgresql) == []
    with take(transport) as batch:
        assert numbers(batch) == [0, 1, 2]
        assert batch.claim.attempt == 1


def test_an_exception_puts_even_expired_messages_back(transport):
    send_expired(transport, 2)
    send(transport, 1)
    with pytest.raises(OnPurpose), take(transport) as batch:
        assert batch.claim.expired == 2
        raise OnPurpose
    assert transport.status("orders")[0].expired == 2


def test_results_for_a_queue_that_is_missing_put_everything_back(transport):
    send(transport, 3)
    with pytest.raises(QueueNotFoundError, match="nowhere"), take(transport) as batch:
        transport.open_batches.write(batch, [results(1), results(1, "nowhere")])
    assert (transport.peek("orders"), transport.peek("billing")) == (3, 0)


def test_two_open_batches_share_no_message_and_neither_is_counted(transport):
    send(transport, 7)
    with take(transport, Bounds(3, 1 << 30), "one") as one, take(transport, Bounds(3, 1 << 30), "two") as two:
        assert (numbers(one), numbers(two)) == ([0, 1, 2], [3, 4, 5])
        assert one.claim.claim_id != two.claim.claim_id
        assert transport.peek("orders") == 1
        with take(transport) as rest:
            assert numbers(rest) == [6]
            with take(transport) as nothing:
                assert nothing is None
    assert transport.peek("orders") == 0


def test_messages_that_are_put_back_are_the_next_ones_again(transport):
    send(transport, 4)
    with pytest.raises(OnPurpose), take(transport, Bounds(2, 1 << 30)):
        with take(transport, Bounds(1, 1 << 30)) as other:
            assert numbers(other) == [2]
        raise OnPurpose
    with take(transport) as batch:
        assert numbers(batch) == [0, 1, 3]


def test_an_open_batch_leaves_claims_and_receivers_the_rest(transport):
    send(transport, 4)
    with take(transport, Bounds(2, 1 << 30)):
        with transport.receive("orders", 1) as received:
            assert [message.body for message in received.messages] == [b"2"]
        claim = transport.claim("orders", "other", 10)
        assert claim.messages == 1


# --- leases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("writes", [True, False], ids=["then writes", "then commits"])
def test_the_server_ends_a_batch_that_is_silent_for_longer_than_its_lease(transport, writes):
    send(transport, 3)
    with pytest.raises(DatabaseUnavailableError), take(transport, lease=0.2) as batch:
        assert numbers(batch) == [0, 1, 2]
        eventually(lambda: transport.peek("orders") == 3)
        if writes:
            transport.open_batches.write(batch, [results(1)])
    assert (transport.peek("orders"), transport.peek("billing")) == (3, 0)
    with take(transport) as again:
        assert numbers(again) == [0, 1, 2]


def test_a_lease_ends_with_its_batch(transport, postgresql):
    """The connection goes back to the pool, and whoever gets it next may take longer."""
    send(transport, 1)
    setting = "SELECT current_setting('idle_in_transaction_session_timeout'), pg_backend_pid()"
    with take(transport, lease=7.5) as batch:
        within, process = batch.transaction.rows(setting)[0]
        assert within == "7500ms"
    after, same = postgresql.sql(transport, setting)[0]
    assert (after, same) == ("0", process)


# --- queues that have none ---------------------------------------------------------------------------------


def test_sqlite_has_no_open_batches(sqlite):
    transport = sqlite.transport()
    transport.install("orders")
    send(transport, 1)
    assert not transport.open_batches.serves(transport.resolve("orders"))
    with pytest.raises(ConfigurationError, match=r"queue orders .*claim its messages"), take(transport):
        pytest.fail("not reached")
    assert transport.peek("orders") == 1


def test_queues_of_nginn_have_no_open_batches(postgresql):
    transport = postgresql.transport(nginn=settings())
    transport.install(ORDERS)
    queue = transport.resolve(ORDERS)
    assert not transport.open_batches.serves(queue)
    with pytest.raises(ConfigurationError) as refused, take(transport, queue=ORDERS):
        pytest.fail("not reached")
    assert str(queue) in str(refused.value)


def test_a_queue_of_nservicebus_on_postgresql_is_served(transport):
    assert transport.open_batches.serves(transport.resolve("orders"))


def test_a_queue_that_is_missing_is_named(transport):
    with pytest.raises(QueueNotFoundError, match="nowhere"), take(transport, queue="nowhere"):
        pytest.fail("not reached")
