"""Transactions that the caller shares with queues: own statements and own connections."""

import contextlib

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from queue_pipeline.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    DoomedTransactionError,
    QueueNotFoundError,
)
from queue_pipeline.transport import Operation, TransactionMode, new_message
from queue_pipeline.transport.database.engine import open_engine
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.databases.sessions import kill, pid_of

pytestmark = pytest.mark.both_drivers

SCOPE = TransactionMode.TRANSACTION_SCOPE


@pytest.fixture
def ledger(backend, transport):
    """A table of the caller's own."""
    table = transport.book.own("ledger").qualified
    backend.sql(transport, f"CREATE TABLE {table} (n int NOT NULL)")
    return table


def numbers(backend, transport, table):
    return [row[0] for row in backend.sql(transport, f"SELECT n FROM {table} ORDER BY n")]


def add(connection, table, number):
    run_sql(connection, f"INSERT INTO {table} (n) VALUES (?)", (number,))


# --- statements that failed ---------------------------------------------------------------------------------


def uses_freetds(backend):
    """It begins no new transaction after the server ended one: a later statement of the caller's is committed."""
    return "FreeTDS" in str(backend.url)


def test_a_failed_statement_that_was_ignored_dooms_the_transaction(backend, transport, ledger):
    """Also on SQLite, which would go on: what is tested there holds on a server."""
    transport.send("orders", new_message("{}"))
    with pytest.raises(DoomedTransactionError), transport.receive("orders", mode=SCOPE) as batch:
        add(batch.connection, ledger, 1)
        with contextlib.suppress(DBAPIError):
            run_sql(batch.connection, f"INSERT INTO {ledger} (n) VALUES (NULL)")
        with contextlib.suppress(DBAPIError):
            add(batch.connection, ledger, 2)
    assert transport.peek("orders") == 1
    assert numbers(backend, transport, ledger) == ([] if not uses_freetds(backend) else [2])


def test_a_failed_statement_of_the_raw_driver_dooms_the_transaction(backend, transport, ledger):
    if backend.name == "sqlite":
        pytest.skip("needs a server; SQLite undoes a failed statement alone, and its transaction goes on whole")
    with pytest.raises(DoomedTransactionError), transport.transaction() as connection:
        transport.send("orders", new_message("{}"), connection)
        raw = connection.connection.driver_connection
        for statement in (f"INSERT INTO {ledger} (n) VALUES (NULL)", f"INSERT INTO {ledger} (n) VALUES (1)"):
            with contextlib.suppress(*transport.database.driver_errors):
                raw.cursor().execute(statement)
    assert transport.peek("orders") == 0
    assert numbers(backend, transport, ledger) == ([] if not uses_freetds(backend) else [1])


def test_a_failed_send_that_was_ignored_dooms_the_transaction(backend, transport, ledger):
    with pytest.raises(DoomedTransactionError), transport.transaction() as connection:
        add(connection, ledger, 1)
        with contextlib.suppress(QueueNotFoundError):
            transport.send("nowhere", new_message("{}"), connection)
    assert numbers(backend, transport, ledger) == []


def test_what_failed_in_a_savepoint_is_undone_there_and_the_rest_is_committed(backend, transport, ledger):
    if backend.name == "sqlserver":
        pytest.skip("needs savepoints that outlive an error; XACT_ABORT ends the whole transaction")
    with transport.transaction() as connection:
        add(connection, ledger, 1)
        with contextlib.suppress(DBAPIError), connection.begin_nested():
            add(connection, ledger, 2)
            run_sql(connection, f"INSERT INTO {ledger} (n) VALUES (NULL)")
        with contextlib.suppress(QueueNotFoundError), connection.begin_nested():
            add(connection, ledger, 3)
            transport.send("nowhere", new_message("{}"), connection)
        transport.send("orders", new_message("{}"), connection)
    assert numbers(backend, transport, ledger) == [1]
    assert transport.peek("orders") == 1


def test_an_error_that_leaves_the_block_is_passed_on_unchanged(backend, transport, ledger):
    with pytest.raises(DBAPIError), transport.transaction() as connection:
        add(connection, ledger, 1)
        run_sql(connection, f"INSERT INTO {ledger} (n) VALUES (NULL)")
    assert numbers(backend, transport, ledger) == []
    assert transport.database.engine.pool.checkedout() == 0


# --- callers that end the transaction -----------------------------------------------------------------------

ENDS = [Connection.commit, Connection.rollback, Connection.close, Connection.invalidate]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_a_caller_that_ends_the_transaction_inside_gets_an_error(backend, transport, ledger, end):
    with pytest.raises(DoomedTransactionError, match="commit or rollback"), transport.transaction() as connection:
        add(connection, ledger, 1)
        end(connection)
    assert numbers(backend, transport, ledger) == ([1] if end is Connection.commit else [])
    assert transport.database.engine.pool.checkedout() == 0


@pytest.mark.parametrize("end", ENDS[:2], ids=lambda end: end.__name__)
def test_work_after_a_transaction_that_the_caller_ended_is_rolled_back(backend, transport, ledger, end):
    """SQLAlchemy begins another transaction by itself, which is none that the transport began."""
    transport.send("orders", new_message("{}"))
    with pytest.raises(DoomedTransactionError), transport.receive("orders", mode=SCOPE) as batch:
        end(batch.connection)
        add(batch.connection, ledger, 2)
        batch.send([Operation("orders", new_message("after"))])
    assert numbers(backend, transport, ledger) == []
    assert transport.peek("orders") == (0 if end is Connection.commit else 1)


def test_a_closed_connection_cannot_be_joined(transport):
    with transport.transaction() as connection:
        pass
    with pytest.raises(ConfigurationError, match="the connection is closed"):
        transport.send("orders", new_message("{}"), connection)


# --- connections of the caller's own ------------------------------------------------------------------------


def test_the_caller_ends_what_it_began(backend, transport, engines, ledger):
    """AS-17: a connection of the caller's is neither committed nor rolled back by the transport."""
    with engines().connect() as connection:
        assert transport.enlist(connection) is connection
        add(connection, ledger, 1)
        transport.send("orders", new_message("undone"), connection)
        connection.rollback()
        add(connection, ledger, 2)
        transport.send("orders", new_message("done"), connection)
        connection.commit()
    assert numbers(backend, transport, ledger) == [2]
    with transport.receive("orders", 10) as batch:
        assert [message.body for message in batch] == [b"done"]


def test_a_send_on_an_idle_connection_begins_the_callers_transaction(transport, engines):
    with engines().connect() as connection:
        transport.send("orders", [new_message("a"), new_message("b")], connection)
        assert connection.in_transaction()
    assert transport.peek("orders") == 0, "it was closed without a commit"


@pytest.mark.parametrize("kind", ["driver", "engine", "session", "text"])
def test_what_is_no_connection_is_refused_with_the_next_step(transport, kind):
    engine = transport.database.engine
    with engine.connect() as connection, Session(connection) as session:
        given = {
            "driver": connection.connection.driver_connection,
            "engine": engine,
            "session": session,
            "text": "postgresql://host/db",
        }[kind]
        with pytest.raises(ConfigurationError, match=r"cannot be joined; .*session\.connection\(\)"):
            transport.send("orders", new_message("{}"), given)


def test_a_connection_of_another_database_is_refused(backend, transport, postgres, tmp_path):
    setting = postgres.url() if backend.name == "sqlite" else f"sqlite:///{tmp_path}/other.db"
    other = open_engine(database_url(setting))
    with (
        other.connect() as connection,
        pytest.raises(ConfigurationError, match=r"cannot be joined, it must be one of") as raised,
    ):
        transport.send("orders", new_message("{}"), connection)
    assert postgres.password not in str(raised.value)
    other.dispose()


def test_a_connection_over_another_driver_is_refused(postgresql, postgres):
    theirs = "psycopg" if "+pyodbc" in postgresql.url else "pyodbc"
    transport = postgresql.transport()
    engine = open_engine(database_url(postgres.url(driver=theirs)))
    with (
        engine.connect() as connection,
        pytest.raises(ConfigurationError, match=rf"postgresql\+{theirs} cannot be joined"),
    ):
        transport.enlist(connection)
    engine.dispose()


def test_a_broken_connection_of_the_caller_raises_our_error(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    engine = open_engine(database_url(postgresql.url))
    with engine.connect() as connection:
        kill(postgres, pid_of(connection))
        for _ in range(2):
            with pytest.raises(DatabaseUnavailableError):
                transport.send("orders", new_message("{}"), connection)
        connection.rollback()
        transport.send("orders", new_message("{}"), connection)
        connection.commit()
    engine.dispose()
    assert transport.peek("orders") == 1
