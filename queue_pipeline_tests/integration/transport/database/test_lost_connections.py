"""Connections that are lost inside a transaction: no message is lost or duplicated; errors say what is known."""

import threading

import pytest
from sqlalchemy.exc import DBAPIError

from queue_pipeline.errors import (
    CommitUnknownError,
    DatabaseError,
    DatabaseUnavailableError,
    DoomedTransactionError,
)
from queue_pipeline.transport import Operation, QueueTransport, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES, Row
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.databases.sessions import BOTH_DRIVERS, backend_pid, kill, pid_of
from tools.postgres_cluster import PostgresCluster

pytestmark = pytest.mark.both_drivers


def test_a_connection_lost_in_the_middle_loses_no_message(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders", "billing")
    transport.send("orders", new_message("{}"))
    with pytest.raises(DatabaseUnavailableError), transport.receive("orders") as batch:
        kill(postgres, pid_of(batch._transaction.connection))
        batch.send([Operation("billing", new_message("{}"))])
    assert (transport.peek("orders"), transport.peek("billing")) == (1, 0)


def test_our_statements_raise_our_error_when_the_server_dies_inside(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    with (
        pytest.raises(DatabaseUnavailableError, match=r"orders.*check that it runs"),
        transport.transaction() as connection,
    ):
        kill(postgres, pid_of(connection))
        transport.send("orders", new_message("{}"), connection)
    assert transport.peek("orders") == 0


def test_our_statements_raise_our_error_after_the_caller_ignored_that_the_server_died(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    with (
        pytest.raises(DatabaseUnavailableError, match="the connection broke inside the transaction"),
        transport.transaction() as connection,
    ):
        kill(postgres, pid_of(connection))
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT 1")
        assert connection.invalidated
        transport.send("orders", new_message("{}"), connection)
    assert transport.peek("orders") == 0


def test_a_caller_that_ignored_the_death_of_the_server_gets_our_error_at_the_end(postgresql, postgres):
    transport = postgresql.transport()
    with pytest.raises((DoomedTransactionError, DatabaseUnavailableError)), transport.transaction() as connection:
        kill(postgres, pid_of(connection))
        with pytest.raises(DBAPIError):
            connection.exec_driver_sql("SELECT 1")
    with pytest.raises((DoomedTransactionError, DatabaseUnavailableError)), transport.transaction() as connection:
        kill(postgres, pid_of(connection))
        raw = connection.connection.cursor()
        with pytest.raises(transport.database.driver_errors):
            raw.execute("SELECT 1")
    assert backend_pid(transport)


def test_a_server_that_died_before_the_end_was_noticed_and_nothing_is_committed(postgresql, postgres):
    """The last look before the commit finds it, so that the outcome is known."""
    transport = postgresql.transport()
    transport.install("orders")
    with (
        pytest.raises(DatabaseUnavailableError, match="check that it runs") as raised,
        transport.transaction() as connection,
    ):
        transport.send("orders", new_message("{}"), connection)
        kill(postgres, pid_of(connection))
    assert not isinstance(raised.value, CommitUnknownError)
    assert transport.peek("orders") == 0


def test_a_server_killed_in_the_middle_of_a_statement_is_unavailable(postgresql, postgres):
    transport = postgresql.transport()
    with (
        pytest.raises(DatabaseUnavailableError, match="check that it runs"),
        transport.database.transaction() as transaction,
    ):
        pid = pid_of(transaction.connection)
        later = threading.Timer(0.2, postgres.run_sql, [f"SELECT pg_terminate_backend({pid})"])
        later.start()
        try:
            transaction.rows(Command("SELECT pg_sleep(30)"))
        finally:
            later.join()
    assert backend_pid(transport) != pid


def test_a_transaction_keeps_raising_our_error_once_its_connection_is_lost(postgresql, postgres):
    """Whatever way the driver is spoken to, and however often."""
    transport = postgresql.transport()
    transport.install("orders")
    queue = transport.resolve("orders")
    send = transport.database.dialect.statement("nservicebus/queue.send", queue=queue)
    rows = [Row("5f0d7f9c-6d0e-4d43-9b0f-0a6f2f3c1d2e", NEVER_EXPIRES, "{}", b"")]
    with pytest.raises(DoomedTransactionError), transport.database.transaction() as transaction:
        kill(postgres, pid_of(transaction.connection))
        for _ in range(2):
            with pytest.raises(DatabaseUnavailableError):
                transaction.rows(Command("SELECT 1"))
            with pytest.raises(DatabaseUnavailableError):
                transaction.read(Command("SELECT 1"))
            with pytest.raises(DatabaseUnavailableError):
                transaction.insert(send, rows)
    assert transport.peek("orders") == 0


def test_a_server_killed_before_the_commit_leaves_the_outcome_open(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    queue = transport.resolve("orders")
    with pytest.raises(CommitUnknownError, match="wholly done or wholly undone"):  # noqa: SIM117
        with transport.database.transaction() as transaction:
            transport.sender.send(queue, new_message("{}"), transaction)
            kill(postgres, pid_of(transaction.connection))
    assert transport.peek("orders") == 0


def test_a_commit_that_is_cut_off_completes_a_claim_once(postgresql, postgres, monkeypatch):
    """The server dies between the statements and the commit, and the claim is looked up."""
    transport = postgresql.transport()
    transport.install("orders", "billing")
    transport.send("orders", new_message("{}"))
    claim = transport.claim("orders", "me", 10)
    killed, genuine = [], Database._commit

    def commit(self, connection):
        if not killed:
            killed.append(pid_of(connection))
            kill(postgres, killed[0])
        genuine(self, connection)

    monkeypatch.setattr(Database, "_commit", commit)
    assert transport.claims.complete(Completion(claim, [Operation("billing", new_message("once"))], read=None)) == 1
    assert killed and transport.peek("billing") == 1


def test_a_commit_whose_answer_is_lost_completes_a_claim_once(backend, transport, monkeypatch):
    """The server commits, and its answer is lost: the claim is gone, which says so."""
    transport.install("billing")
    transport.send("orders", new_message("{}"))
    claim = transport.claim("orders", "me", 10)
    lost = []

    def commit(connection, genuine=transport.database.engine.dialect.do_commit):
        genuine(connection)
        if not lost:
            lost.append(connection)
            raise transport.database.engine.dialect.dbapi.OperationalError("08S01", "the connection is lost")

    monkeypatch.setattr(transport.database.engine.dialect, "do_commit", commit)
    assert transport.claims.complete(Completion(claim, [Operation("billing", new_message("once"))], read=None)) == 1
    assert lost and transport.peek("billing") == 1


def test_a_commit_that_a_deferred_constraint_refuses_has_a_known_outcome(postgresql):
    """Nothing was committed, and the error says why."""
    transport = postgresql.transport()
    parent, child = (transport.book.own(name).qualified for name in ("parent", "child"))
    postgresql.sql(transport, f"CREATE TABLE {parent} (n int PRIMARY KEY)")
    postgresql.sql(transport, f"CREATE TABLE {child} (n int REFERENCES {parent} DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(DatabaseError, match="foreign key"), transport.transaction() as connection:
        run_sql(connection, f"INSERT INTO {child} VALUES (?)", (7,))
    assert postgresql.sql(transport, f"SELECT count(*) FROM {child}")[0][0] == 0


@BOTH_DRIVERS
def test_the_database_going_away_and_coming_back_is_noticed(driver):
    """A cluster of its own, stopped at once in the middle: errors are clear, nothing committed is lost."""
    with PostgresCluster(driver=driver) as cluster, QueueTransport(cluster.url()) as transport:
        transport.install("orders")
        transport.send("orders", [new_message(str(n)) for n in range(3)])
        claim = transport.claims.claim(transport.resolve("orders"), "me", 2)
        cluster.stop("immediate")
        with pytest.raises(DatabaseUnavailableError):
            transport.peek("orders")
        cluster.start()
        assert transport.peek("orders") == 1
        cluster.restart()
        assert transport.claims.complete(Completion(claim, read=None)) == 0, "no error: the idle connection is replaced"
