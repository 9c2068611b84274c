import contextlib
from datetime import timedelta

import pyodbc
import pytest
from sqlalchemy.exc import DBAPIError

from queue_pipeline.errors import (
    ConfigurationError,
    DoomedTransactionError,
    QueueNotFoundError,
)
from queue_pipeline.transport import Operation, OutgoingMessage, TransactionMode, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.backends import run_sql

pytestmark = pytest.mark.both_drivers

ALL_MODES = list(TransactionMode)
TRANSACTIONAL = [mode for mode in TransactionMode if mode is not TransactionMode.UNRELIABLE]
ATOMIC = [TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, TransactionMode.TRANSACTION_SCOPE]


def receive_all(transport, queue="orders"):
    with transport.receive(queue, 1000) as batch:
        return list(batch)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_an_available_message_is_handed_over_intact(transport, mode):
    """TT-01: native id, header value and body bytes arrive as they were sent, in every mode."""
    transport.send("orders", OutgoingMessage(b"\x01\x02\x03", {"MyHeader": "MyValue"}))
    with transport.receive("orders", mode=mode) as batch:
        (message,) = batch
    assert message.id
    assert message.headers["MyHeader"] == "MyValue"
    assert message.body == b"\x01\x02\x03"
    assert transport.peek("orders") == 0


@pytest.mark.parametrize("mode", ALL_MODES)
def test_a_batch_knows_the_address_that_it_was_received_from(transport, mode):
    """TT-02: the canonical receive address."""
    transport.send("orders", new_message("{}"))
    with transport.receive("orders", mode=mode) as batch:
        assert batch.queue.canonical == transport.resolve("orders").canonical


@pytest.mark.parametrize("mode", TRANSACTIONAL)
def test_a_failure_puts_the_messages_back_where_they_were(transport, mode):
    transport.send("orders", [new_message(str(n)) for n in range(5)])
    with pytest.raises(ZeroDivisionError), transport.receive("orders", 3, mode) as batch:
        assert [message.body for message in batch] == [b"0", b"1", b"2"]
        raise ZeroDivisionError
    returned = []
    while batch := receive_all(transport):
        returned += [message.body for message in batch]
    assert returned == [b"0", b"1", b"2", b"3", b"4"]


def test_a_failure_in_unreliable_mode_loses_the_messages_and_only_there(transport):
    transport.send("orders", [new_message(str(n)) for n in range(2)])
    with (
        pytest.raises(ZeroDivisionError),
        transport.receive("orders", 1, TransactionMode.UNRELIABLE) as batch,
    ):
        assert len(batch) == 1
        raise ZeroDivisionError
    assert [message.body for message in receive_all(transport)] == [b"1"]


@pytest.mark.parametrize("mode", ATOMIC)
def test_sends_of_a_failed_batch_are_not_emitted(transport, mode):
    """TT-09: sends share the receiving transaction."""
    transport.install("billing")
    transport.send("orders", new_message("{}"))
    with pytest.raises(ZeroDivisionError), transport.receive("orders", mode=mode) as batch:
        batch.send([Operation("billing", new_message("ghost"))])
        raise ZeroDivisionError
    assert transport.peek("billing") == 0
    assert transport.peek("orders") == 1


@pytest.mark.parametrize("mode", ATOMIC)
def test_sends_of_a_successful_batch_appear_with_its_commit(transport, mode):
    transport.install("billing")
    transport.send("orders", new_message("{}"))
    with transport.receive("orders", mode=mode) as batch:
        batch.send([Operation("billing", new_message("result"))])
        assert transport.peek("billing") == 0
    assert transport.peek("billing") == 1


def test_receive_only_sends_at_once_so_that_ghosts_can_exist(transport):
    transport.install("billing")
    transport.send("orders", new_message("{}"))
    with (
        pytest.raises(ZeroDivisionError),
        transport.receive("orders", mode=TransactionMode.RECEIVE_ONLY) as batch,
    ):
        batch.send([Operation("billing", new_message("ghost"))])
        assert transport.peek("billing") == 1
        raise ZeroDivisionError
    assert (transport.peek("billing"), transport.peek("orders")) == (1, 1)


@pytest.mark.parametrize("mode", ALL_MODES)
def test_isolated_sends_survive_the_failure_of_the_batch(transport, backend, mode):
    """TT-10, UT-15: isolated operations go out on their own, default ones with the batch."""
    if backend.name == "sqlite" and mode in ATOMIC:
        pytest.skip("needs a second writer beside the open receive; SQLite has one")
    transport.install("billing")
    transport.send("orders", new_message("{}"))
    with pytest.raises(ZeroDivisionError), transport.receive("orders", mode=mode) as batch:
        batch.send([Operation("billing", new_message("isolated"))], isolated=True)
        if mode in ATOMIC:
            batch.send([Operation("billing", new_message("default"))])
        raise ZeroDivisionError
    assert [message.body for message in receive_all(transport, "billing")] == [b"isolated"]


def test_the_callers_own_statements_commit_or_roll_back_with_the_receive(transport, backend):
    """TT-30, AS-14: transaction_scope hands out the connection and the transaction."""
    mode = TransactionMode.TRANSACTION_SCOPE
    ledger = transport.book.own("ledger").qualified
    backend.sql(transport, f"CREATE TABLE {ledger} (n int NOT NULL)")
    transport.send("orders", [new_message("1"), new_message("2")])
    with pytest.raises(ZeroDivisionError), transport.receive("orders", 1, mode) as batch:
        run_sql(batch.connection, f"INSERT INTO {ledger} (n) VALUES (?)", (1,))
        raise ZeroDivisionError
    assert backend.sql(transport, f"SELECT count(*) FROM {ledger}")[0][0] == 0
    with transport.receive("orders", 1, mode) as batch:
        cursor = batch.connection.connection.cursor()
        cursor.execute(f"INSERT INTO {ledger} (n) VALUES (7)")
        cursor.close()
    assert backend.sql(transport, f"SELECT n FROM {ledger}")[0][0] == 7
    assert transport.peek("orders") == 1


def test_statements_of_the_user_are_refused_outside_transaction_scope(transport):
    with (
        pytest.raises(ConfigurationError, match="transaction_scope"),
        transport.receive("orders", mode=TransactionMode.RECEIVE_ONLY) as batch,
    ):
        assert batch.connection is None


def test_a_swallowed_error_never_commits_half_a_transaction(transport):
    transport.send("orders", new_message("{}"))
    with (
        pytest.raises(DoomedTransactionError),
        transport.receive("orders", mode=TransactionMode.TRANSACTION_SCOPE) as batch,
        contextlib.suppress(DBAPIError),
    ):
        run_sql(batch.connection, "INSERT INTO no_such_table VALUES (1)")
    assert transport.peek("orders") == 1


def test_an_error_inside_a_savepoint_of_the_callers_undoes_the_savepoint_alone(transport, backend):
    if backend.name == "sqlserver":
        pytest.skip("needs savepoints that outlive an error; XACT_ABORT ends the whole transaction")
    ledger = transport.book.own("ledger").qualified
    backend.sql(transport, f"CREATE TABLE {ledger} (n int NOT NULL)")
    transport.send("orders", new_message("{}"))
    with transport.receive("orders", mode=TransactionMode.TRANSACTION_SCOPE) as batch:
        run_sql(batch.connection, f"INSERT INTO {ledger} (n) VALUES (1)")
        with contextlib.suppress(DBAPIError), batch.connection.begin_nested():
            run_sql(batch.connection, f"INSERT INTO {ledger} (n) VALUES (2)")
            run_sql(batch.connection, f"INSERT INTO {ledger} (n) VALUES (NULL)")
        run_sql(batch.connection, f"INSERT INTO {ledger} (n) VALUES (3)")
    assert [row[0] for row in backend.sql(transport, f"SELECT n FROM {ledger} ORDER BY n")] == [1, 3]
    assert transport.peek("orders") == 0


def test_an_error_swallowed_on_the_raw_connection_never_commits_what_came_after(transport, backend):
    if backend.name == "sqlite":
        pytest.skip("needs a server; SQLite undoes a failed statement alone, and its transaction goes on whole")
    ledger = transport.book.own("ledger").qualified
    backend.sql(transport, f"CREATE TABLE {ledger} (n int NOT NULL)")
    transport.send("orders", new_message("{}"))
    with (
        pytest.raises(DoomedTransactionError),
        transport.receive("orders", mode=TransactionMode.TRANSACTION_SCOPE) as batch,
    ):
        connection = batch.connection.connection.driver_connection
        for statement in (f"INSERT INTO {ledger} (n) VALUES (NULL)", f"INSERT INTO {ledger} (n) VALUES (1)"):
            with contextlib.suppress(*transport.database.driver_errors):
                connection.execute(statement)
        is_freetds = isinstance(connection, pyodbc.Connection) and "tds" in connection.getinfo(pyodbc.SQL_DRIVER_NAME)
    assert transport.peek("orders") == 1
    # FreeTDS begins no new transaction: it commits a statement that follows an ignored error on its own.
    assert backend.sql(transport, f"SELECT count(*) FROM {ledger}")[0][0] == (1 if is_freetds else 0)


def test_messages_come_oldest_first_and_no_more_than_asked_for(transport):
    """IT-06: a batch asks once; what is not there does not come, and the next receive finds the queue empty."""
    transport.send("orders", [new_message(str(n)) for n in range(46)])
    with transport.receive("orders", 40) as batch:
        assert [int(message.body) for message in batch] == list(range(40))
    with transport.receive("orders", 1000) as batch:
        assert [int(message.body) for message in batch] == list(range(40, 46))
    with transport.receive("orders", 1000) as batch:
        assert len(batch) == 0


@pytest.mark.parametrize("mode", ALL_MODES)
def test_a_row_with_unreadable_headers_is_moved_to_the_error_queue_byte_for_byte(transport, backend, mode):
    """AS-01, AP-03: whatever is wrong with the headers, the good message behind them is still received."""
    corrupted = ["not json", "null", "[1]", '{"a":1}', '{"a"', "<xml/>", "\u4e2d"]
    for text in corrupted:
        insert_raw(transport, backend, text, b"\x00\xff")
    insert_raw(transport, backend, "null", None)
    transport.send("orders", new_message("good"))
    good = []
    while not good:
        with transport.receive("orders", 3, mode) as batch:
            good = list(batch)
    assert [message.body for message in good] == [b"good"]
    assert transport.peek("orders") == 0
    found = transport.show("error", 100)
    assert [(shown.raw_headers, shown.body) for shown in found] == [
        *((text, b"\x00\xff") for text in corrupted),
        ("null", b""),
    ]
    assert raw_bodies(transport, backend, "error")[-1] is None


def test_poison_whose_id_is_already_in_the_error_queue_is_kept_too(transport, backend):
    identity = "6a2f41a3-c54c-4ce8-97cb-8a5a3bd6ef6b"
    for _ in range(2):
        insert_raw(transport, backend, "broken", b"x", identity)
        with transport.receive("orders") as batch:
            assert len(batch) == 0 and batch.poisoned == 1
    assert transport.peek("error") == 2


@pytest.mark.parametrize("mode", ALL_MODES)
def test_an_expired_message_is_dropped_and_the_next_one_received(transport, backend, mode):
    """AS-02: the expired one is never handed over, and the table ends empty."""
    insert_raw(transport, backend, "{}", b"expired", expired=True)
    transport.send("orders", new_message("alive", time_to_be_received=timedelta(hours=1)))
    with transport.receive("orders", mode=mode) as batch:
        assert [message.body for message in batch] == [b"alive"]
    assert transport.peek("orders") == 0
    assert transport.peek("error") == 0


def test_messages_without_an_id_or_headers_are_accepted(transport, backend):
    insert_raw(transport, backend, "", b"bare", "0b4c9d6e-9a1e-4f0b-8a9b-6a0d7a1f6c11")
    insert_raw(transport, backend, '{"a":null}', b"null value")
    first, second = receive_all(transport)
    assert first.message_id == "0b4c9d6e-9a1e-4f0b-8a9b-6a0d7a1f6c11"
    assert "a" not in second.headers


def test_receiving_works_without_the_delayed_infrastructure(backend):
    """XT-03: a plain queue is enough to send and receive."""
    transport = backend.transport()
    transport.install(plain_queues=["plain"])
    transport.send("plain", new_message("{}"))
    with transport.receive("plain") as batch:
        assert len(batch) == 1


def test_a_missing_queue_is_named_with_the_command_that_creates_it(transport):
    with pytest.raises(QueueNotFoundError, match="queue-pipeline install") as raised, transport.receive("nowhere"):
        pass
    assert "nowhere" in str(raised.value)


def test_a_batch_size_of_zero_is_refused(transport):
    with pytest.raises(ConfigurationError, match="at least one"), transport.receive("orders", 0):
        pass


def insert_raw(transport, backend, headers, body, identity="5f0d7f9c-6d0e-4d43-9b0f-0a6f2f3c1d2e", expired=False):
    """Write a row past all checks, as a broken sender would."""
    table = transport.resolve("orders").qualified
    if backend.name == "postgresql":
        identity = "gen_random_uuid()" if identity.startswith("5f0d7f9c") else f"'{identity}'"
        past = "now() - interval '1 hour'" if expired else "NULL"
        value = "NULL" if body is None else f"decode('{body.hex()}', 'hex')"
        columns, row = "id, expires, headers, body", f"{identity}, {past}, ?, {value}"
    elif backend.name == "sqlite":
        past = "'2001-01-01 00:00:00.000'" if expired else "NULL"
        value = "NULL" if body is None else f"x'{body.hex()}'"
        columns, row = "Id, Expires, Headers, Body", f"'{identity}', {past}, ?, {value}"
    else:
        past = "'2001-01-01'" if expired else "NULL"
        value = "NULL" if body is None else f"0x{body.hex()}"
        columns, row = "Id, Recoverable, Expires, Headers, Body", f"'{identity}', 1, {past}, ?, {value}"
    backend.sql(transport, f"INSERT INTO {table} ({columns}) VALUES ({row})", (headers,))


def raw_bodies(transport, backend, queue):
    order = "seq" if backend.name == "postgresql" else "RowVersion"
    return [
        row[0]
        for row in backend.sql(transport, f"SELECT body FROM {transport.resolve(queue).qualified} ORDER BY {order}")
    ]


def test_what_version_1_kept_in_columns_is_used_where_the_headers_lack_it(sqlserver):
    transport = sqlserver.transport()
    transport.install("orders")
    table = transport.resolve("orders").qualified
    sqlserver.sql(
        transport,
        f"INSERT INTO {table} (Id, CorrelationId, ReplyToAddress, Recoverable, Headers, Body) "
        f"VALUES (NEWID(), 'corr', 'client@dbo', 1, N'{{}}', 0x01); SELECT 1",
    )
    with transport.receive("orders") as batch:
        (message,) = batch
    assert message.headers[wire.CORRELATION_ID] == "corr"
    assert message.headers[wire.REPLY_TO_ADDRESS] == "client@dbo"
