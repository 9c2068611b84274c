"""Connections: kept, replaced, set up, given back after an interrupt, and never shared after a fork."""

import _thread
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pyodbc
import pytest
from sqlalchemy.exc import DBAPIError

from queue_pipeline.errors import ConfigurationError, DatabaseError, DatabaseUnavailableError
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.database.command import Command
from queue_pipeline_tests.support.databases.forks import in_a_child
from queue_pipeline_tests.support.databases.sessions import backend_pid, kill, pid_of

pytestmark = pytest.mark.both_drivers

# --- idle connections ---------------------------------------------------------------------------------------


def test_connections_are_kept_and_reused(postgresql):
    transport = postgresql.transport()
    assert backend_pid(transport) == backend_pid(transport)


def test_a_connection_that_died_is_replaced_without_an_error(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    broken = backend_pid(transport)
    kill(postgres, broken)
    transport.send("orders", new_message("{}"))
    assert transport.peek("orders") == 1
    assert backend_pid(transport) != broken


def test_a_connection_that_is_in_use_when_its_transport_closes_is_closed_when_it_returns(postgresql):
    """A thread that a run left behind returns its connection late, to a pool that nothing disposes of any more."""
    transport = postgresql.transport()
    user = transport.database.engine.connect()
    raw = user.connection.dbapi_connection
    transport.close()
    assert not raw.closed
    user.close()
    assert raw.closed


def test_all_dead_connections_are_replaced_at_once(postgresql, postgres):
    transport = postgresql.transport()
    users = [transport.database.engine.connect() for _ in range(4)]
    pids = [pid_of(user) for user in users]
    for user in users:
        user.close()
    for pid in pids:
        kill(postgres, pid)
    users = [transport.database.engine.connect() for _ in range(4)]
    assert {pid_of(user) for user in users}.isdisjoint(pids)
    for user in users:
        user.close()


def test_a_session_of_sql_server_that_was_killed_is_replaced_without_an_error(sqlserver):
    transport, other = sqlserver.transport(), sqlserver.transport()
    transport.install("orders")
    broken = sqlserver.sql(transport, "SELECT @@SPID")[0][0]
    with other.database.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        try:
            connection.exec_driver_sql(f"KILL {broken}")
        except DBAPIError:
            if not sqlserver.is_babelfish:
                raise
            pytest.skip("needs KILL, which Babelfish refuses")
    assert transport.send("orders", new_message("{}")) == 1


def test_pyodbc_does_not_pool_underneath(monkeypatch):
    monkeypatch.setattr(pyodbc, "pooling", True)
    with QueueTransport("postgresql+pyodbc://user@127.0.0.1:1/shop") as transport:
        assert transport.database.engine.driver == "pyodbc"
    assert pyodbc.pooling is False


# --- interrupts ---------------------------------------------------------------------------------------------


def test_an_interrupt_inside_gives_the_connection_back_rolled_back(backend, transport):
    pool = transport.database.engine.pool
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt), transport.transaction() as connection:
            transport.send("orders", new_message("{}"), connection)
            raise KeyboardInterrupt
    assert pool.checkedout() == 0
    assert transport.peek("orders") == 0
    assert transport.send("orders", new_message("{}")) == 1


def test_an_interrupt_in_the_middle_of_a_statement_leaves_nothing_behind(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    with pytest.raises(KeyboardInterrupt), transport.transaction() as connection:
        transport.send("orders", new_message("{}"), connection)
        pid = pid_of(connection)
        later = threading.Timer(0.3, _thread.interrupt_main)
        later.start()
        try:
            # pyodbc hears of it once the server has answered.
            connection.exec_driver_sql("SELECT pg_sleep(1)").all()
        finally:
            later.join()
    assert transport.database.engine.pool.checkedout() == 0
    assert transport.peek("orders") == 0
    held = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state LIKE 'idle in transaction%'"
    assert postgres.run_sql(held) == "0"


# --- sessions -----------------------------------------------------------------------------------------------


def test_sessions_run_at_read_committed_in_utc(postgresql, postgres):
    postgres.run_sql("ALTER ROLE queue_pipeline SET default_transaction_isolation = 'serializable'")
    postgres.run_sql("ALTER ROLE queue_pipeline SET timezone = 'Asia/Tokyo'")
    try:
        with postgresql.transport().transaction() as connection:
            assert connection.exec_driver_sql("SHOW transaction_isolation").scalar_one() == "read committed"
            assert connection.exec_driver_sql("SHOW timezone").scalar_one() == "UTC"
    finally:
        postgres.run_sql("ALTER ROLE queue_pipeline RESET ALL")


def test_a_session_that_cannot_be_set_up_is_our_error_and_no_connection_is_kept(backend, monkeypatch):
    """The settings run when a connection is taken from the pool, before SQLAlchemy knows of a transaction."""
    transport = backend.transport()
    with monkeypatch.context() as patch:
        patch.setattr(transport.database.dialect, "session", lambda: ["SELECT nonsense FROM nowhere"])
        with pytest.raises((DatabaseUnavailableError, ConfigurationError), match="nowhere"):
            transport.peek("orders")
    assert transport.database.engine.pool.checkedout() == 0
    transport.install("orders")
    assert transport.peek("orders") == 0


def test_sql_server_sessions_count_rows(sqlserver):
    """An ORM session takes an UPDATE whose rows were not counted for one that found none."""
    assert not options_of(sqlserver) & 512, "NOCOUNT"


def test_sql_server_sessions_abort_on_error(sqlserver):
    if sqlserver.is_babelfish:
        pytest.skip("needs a server that reports XACT_ABORT in @@OPTIONS; Babelfish does not")
    assert options_of(sqlserver) & 16384, "XACT_ABORT"


def options_of(sqlserver):
    return sqlserver.sql(sqlserver.transport(), "SELECT @@OPTIONS")[0][0]


def test_errors_after_the_first_row_are_seen(sqlserver):
    """Every result is read to the end before the commit, so a late error is not committed over."""
    with pytest.raises(DatabaseError, match=r"(?i)zero"), sqlserver.transport().database.transaction() as transaction:
        transaction.rows(Command("SELECT 1 AS n; SELECT 1 / 0 AS n"))


# --- forks --------------------------------------------------------------------------------------------------


def test_a_forked_child_does_not_use_the_parents_connections(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    parent = backend_pid(transport)
    assert int(in_a_child(lambda: backend_pid(transport))) != parent
    assert backend_pid(transport) == parent


def test_parent_and_child_go_on_with_the_same_transport(backend, transport):
    transport.send("orders", [new_message("1"), new_message("2")])

    def work():
        transport.send("orders", new_message("3"))
        with transport.receive("orders", 1) as batch:
            return batch.messages[0].body

    assert in_a_child(work) == str(b"1")
    with transport.receive("orders", 10) as batch:
        assert [message.body for message in batch] == [b"2", b"3"]


def test_a_child_that_ends_as_programs_do_leaves_the_parents_sockets_open(postgresql):
    """Its destructors run, and must not take leave of the server in the parent's name."""
    program = textwrap.dedent("""
        import os, sys
        from queue_pipeline.transport import QueueTransport
        transport = QueueTransport(sys.argv[1])
        def pid():
            with transport.transaction() as connection:
                return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        before = pid()
        child = os.fork()
        if child == 0:
            assert pid() != before
            sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert pid() == before
    """)
    folder = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", program, postgresql.url], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
