"""Connections: kept, replaced, lost in the middle, never shared after a fork, and what errors say of them."""

import _thread
import logging
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from urllib.parse import quote

import pyodbc
import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError

from queue_pipeline.transport import Operation, QueueTransport, new_message
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialect import NEVER_EXPIRES, Row
from queue_pipeline.transport.database.drivers import SqlServerDriver
from queue_pipeline.transport.errors import (
    AccessDeniedError,
    CommitUnknownError,
    ConfigurationError,
    DatabaseError,
    DatabaseUnavailableError,
    DoomedTransactionError,
    DriverMissingError,
    TransientDatabaseError,
)
from queue_pipeline_tests.support.backends import PSYCOPG, PYODBC, run_sql
from tools.postgres_cluster import PostgresCluster


@pytest.fixture(params=[PSYCOPG, PYODBC])
def driver(request):
    return request.param


def pid_of(connection):
    return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()


def backend_pid(transport):
    with transport.transaction() as connection:
        return pid_of(connection)


def kill(postgres, pid):
    """End a session of the server's, and wait until it is gone."""
    assert postgres.run_sql(f"SELECT pg_terminate_backend({pid}, 10000)") == "t"


# --- idle connections --------------------------------------------------------------------------------------


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


def test_all_that_died_are_replaced_at_once(postgresql, postgres):
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
            pytest.skip("Babelfish refuses KILL")
    assert transport.send("orders", new_message("{}")) == 1


# --- connections that are lost in the middle ---------------------------------------------------------------


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


def test_a_caller_that_ignored_that_the_server_died_gets_our_error_at_the_end(postgresql, postgres):
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


def test_a_server_killed_in_the_middle_of_a_statement_is_away(postgresql, postgres):
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


def test_a_transaction_of_ours_goes_on_raising_our_error_once_its_connection_is_lost(postgresql, postgres):
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
    assert transport.claims.complete(claim, [Operation("billing", new_message("once"))], read=None) == 1
    assert killed and transport.peek("billing") == 1


def test_a_commit_whose_answer_is_lost_completes_a_claim_once(backend, transport, monkeypatch):
    """The server commits, and nobody hears of it: the claim is gone, which says so."""
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
    assert transport.claims.complete(claim, [Operation("billing", new_message("once"))], read=None) == 1
    assert lost and transport.peek("billing") == 1


def test_a_commit_that_a_late_constraint_refuses_is_no_open_question(postgresql):
    """Nothing was committed, and the error says why."""
    transport = postgresql.transport()
    parent, child = (transport.book.own(name).qualified for name in ("parent", "child"))
    postgresql.sql(transport, f"CREATE TABLE {parent} (n int PRIMARY KEY)")
    postgresql.sql(transport, f"CREATE TABLE {child} (n int REFERENCES {parent} DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(DatabaseError, match="foreign key"), transport.transaction() as connection:
        run_sql(connection, f"INSERT INTO {child} VALUES (?)", (7,))
    assert postgresql.sql(transport, f"SELECT count(*) FROM {child}")[0][0] == 0


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
        assert transport.claims.complete(claim, read=None) == 0, "no error: the idle connection is replaced"


# --- interrupts --------------------------------------------------------------------------------------------


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


# --- victims -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of_the_callers", [False, True], ids=["a statement of ours", "a statement of the caller's"])
def test_a_deadlock_victim_is_retried_without_alarm(postgresql, caplog, of_the_callers):
    transport = postgresql.transport()
    table = transport.book.own("pair").qualified
    postgresql.sql(transport, f"CREATE TABLE {table} (n int PRIMARY KEY, v int NOT NULL)")
    postgresql.sql(transport, f"INSERT INTO {table} VALUES (1, 0), (2, 0)")
    update = Command(f"UPDATE {table} SET v = v + 1 WHERE n = :n")

    def raise_value(transaction, number):
        if of_the_callers:
            transaction.connection.execute(text(update.text), {"n": number})
        else:
            transaction.execute(update, n=number)

    meet, tries = threading.Barrier(2), []

    def cross(first, second):
        met = []

        def work(transaction):
            tries.append(first)
            raise_value(transaction, first)
            if not met:
                met.append(True)
                meet.wait(20)
            raise_value(transaction, second)

        transport.database.run(work)

    threads = [threading.Thread(target=cross, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [tuple(row) for row in postgresql.sql(transport, f"SELECT v FROM {table}")] == [(2,), (2,)]
    assert len(tries) == 3
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_victim_is_tried_so_often_and_no_longer(backend, transport, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.database.database.time.sleep", lambda seconds: None)
    tries = []

    def work(transaction):
        tries.append(transaction)
        raise TransientDatabaseError("again")

    with pytest.raises(TransientDatabaseError):
        transport.database.run(work)
    assert len(tries) == 6
    assert transport.database.engine.pool.checkedout() == 0


def test_a_victim_that_has_waited_for_long_is_not_tried_again(backend, transport, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.database.database.PATIENCE_SECONDS", 0.0)
    tries = []

    def work(transaction):
        tries.append(transaction)
        raise TransientDatabaseError("again")

    with pytest.raises(TransientDatabaseError):
        transport.database.run(work)
    assert len(tries) == 1


def test_a_busy_sqlite_file_is_a_transient_error(sqlite, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.database.database.TRIES", 2)
    setting = sqlite.url + "?timeout=0.01"
    with QueueTransport(setting) as transport:
        transport.install("orders")
        other = sqlite3.connect(transport.database.url.database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TransientDatabaseError):
            transport.send("orders", new_message("{}"))
        assert transport.peek("orders") == 0
        other.execute("ROLLBACK")
        other.close()
        assert transport.send("orders", new_message("{}")) == 1


# --- sessions ----------------------------------------------------------------------------------------------


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


def test_sql_server_sessions_abort_on_error_and_count_rows(sqlserver):
    """An ORM session takes an UPDATE whose rows were not counted for one that found none."""
    options = sqlserver.sql(sqlserver.transport(), "SELECT @@OPTIONS")[0][0]
    assert not options & 512, "NOCOUNT"
    if sqlserver.is_babelfish:
        pytest.skip("Babelfish does not report XACT_ABORT in @@OPTIONS; NOCOUNT was checked")
    assert options & 16384, "XACT_ABORT"


def test_errors_after_the_first_row_are_seen(sqlserver):
    """Every result is read to the end before the commit, so a late error is not committed over."""
    with pytest.raises(DatabaseError, match=r"(?i)zero"), sqlserver.transport().database.transaction() as transaction:
        transaction.rows(Command("SELECT 1 AS n; SELECT 1 / 0 AS n"))


# --- forks -------------------------------------------------------------------------------------------------


def in_a_child(work):
    """What a forked process prints."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return answer.read()


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
    folder = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", program, postgresql.url], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- passwords and other secrets ---------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["p;w}d{", "it's %41 =&?#+", "ünï \U0001f600", "{braces}", " spaces "])
def test_passwords_with_any_character_work_and_are_never_shown(postgres, password, driver):
    role = "odd_password"
    escaped = password.replace("'", "''")
    postgres.run_sql(f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD '{escaped}'")
    url = postgres.url(user=role, password="PLACEHOLDER", driver=driver)
    with QueueTransport(url.replace("PLACEHOLDER", quote(password, safe=""))) as transport:
        with transport.transaction() as connection:
            assert connection.exec_driver_sql("SELECT current_user").scalar_one() == role
        assert password not in repr(transport.settings) + str(transport.database)


def revealed(raised, caplog):
    """All that a person may see of an error: its text, those it came from, and the log."""
    texts, error = [caplog.text], raised.value
    while error is not None:
        texts += [str(error), repr(error)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(texts)


def odbc_setting(postgres, password, name="PostgreSQL Unicode"):
    port = postgres.url().rsplit(":", 1)[1].split("/")[0]
    pairs = f"DRIVER={{{name}}};SERVER=127.0.0.1;PORT={port};DATABASE=postgres;UID=queue_pipeline;PWD={password}"
    return f"postgresql+pyodbc:///?odbc_connect={quote(pairs, safe='')}"


def test_a_wrong_password_is_a_clear_error_without_the_password(postgres, driver, caplog):
    caplog.set_level(logging.DEBUG)
    url = postgres.url(password="very-secret-guess", driver=driver)
    with QueueTransport(url) as transport, pytest.raises(AccessDeniedError, match="check user and password") as raised:
        transport.peek("orders")
    assert "very-secret-guess" not in revealed(raised, caplog)


def test_a_wrong_password_in_an_odbc_string_is_a_clear_error_without_it(postgres, caplog):
    caplog.set_level(logging.DEBUG)
    with (
        QueueTransport(odbc_setting(postgres, "very-secret-guess")) as transport,
        pytest.raises(AccessDeniedError, match="check user and password") as raised,
    ):
        transport.peek("orders")
    assert "very-secret-guess" not in revealed(raised, caplog)


def test_a_database_that_does_not_exist_is_named(postgres, driver, caplog):
    with (
        QueueTransport(postgres.url("no_such_database", driver=driver)) as transport,
        pytest.raises(DatabaseUnavailableError, match=r"no_such_database.*check the name of the database") as raised,
    ):
        transport.peek("orders")
    assert postgres.password not in revealed(raised, caplog)


@pytest.mark.parametrize("host", ["127.0.0.1:9", "no-such-host.invalid"])
def test_an_unreachable_server_is_a_clear_error(caplog, driver, host):
    caplog.set_level(logging.DEBUG)
    scheme = "postgresql+pyodbc" if driver == PYODBC else "postgresql"
    with (
        QueueTransport(f"{scheme}://user:s3cret@{host}/db") as transport,
        pytest.raises(DatabaseUnavailableError, match=f"{host}.*check that it runs") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in revealed(raised, caplog)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("postgresql://user:s3cret@127.0.0.1:9/db?colour=blue", "colour"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?driver=psycopg", "driver"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?ReadOnly=1", "ReadOnly"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?sslmode=sometimes", "sslmode"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?connect_timeout=soon", "connect_timeout"),
        ("postgresql://user:s3cret@127.0.0.1:9/db?port=first", "port"),
        ("mssql://user:s3cret@127.0.0.1:9/db?Encrypt=sometimes", "Encrypt"),
    ],
)
def test_an_option_that_the_driver_cannot_use_is_named_without_the_password(setting, words, caplog):
    caplog.set_level(logging.DEBUG)
    if setting.startswith("mssql"):
        pytest.importorskip("mssql_python_odbc")
    with (
        QueueTransport(setting) as transport,
        pytest.raises(ConfigurationError, match=f"refuses an option of the setting: .*{words}") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in revealed(raised, caplog)


def test_a_driver_and_its_options_can_be_chosen(postgres):
    """The driver is used, and options reach it: psqlodbc itself refuses to write on a read-only connection."""
    url = postgres.url(driver=PYODBC) + "?driver=PostgreSQL+Unicode"
    with QueueTransport(url) as transport, transport.transaction() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    with QueueTransport(f"{url}&ReadOnly=1") as transport, pytest.raises(DatabaseUnavailableError, match="readonly"):
        transport.peek("orders")


def test_options_of_libpq_reach_the_server(postgres):
    with (
        QueueTransport(f"{postgres.url(driver=PSYCOPG)}?application_name=shop&client_encoding=utf-8") as transport,
        transport.transaction() as connection,
    ):
        assert connection.exec_driver_sql("SHOW application_name").scalar_one() == "shop"
        assert connection.exec_driver_sql("SHOW client_encoding").scalar_one() == "UTF8"


def test_the_encoding_of_the_environment_changes_nothing(postgres, monkeypatch):
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with QueueTransport(postgres.url(driver=PSYCOPG)) as transport, transport.transaction() as connection:
        assert connection.execute(text("SELECT :t"), {"t": "\U0001f600"}).scalar_one() == "\U0001f600"


def test_an_odbc_string_reads_and_writes_long_messages(postgresql, postgres):
    """The options that we need are added where they are missing."""
    with QueueTransport(odbc_setting(postgres, postgres.password), schema=postgresql.schema) as transport:
        transport.install("orders")
        transport.send("orders", new_message(b"\x00" * 100_000, headers={"long": "x\n" * 50_000}))
        with transport.receive("orders") as batch:
            assert batch.messages[0].body == b"\x00" * 100_000
            assert batch.messages[0].headers["long"] == "x\n" * 50_000
        assert transport.resolve("orders").canonical == f'"{postgresql.schema}"."orders"'


# --- drivers that are missing ------------------------------------------------------------------------------


def test_an_odbc_driver_that_is_not_installed_is_named(postgres):
    with (
        QueueTransport("postgresql+pyodbc://u:p@127.0.0.1/db?driver=No+Such+Driver") as transport,
        pytest.raises(DriverMissingError, match="No Such Driver"),
    ):
        transport.peek("orders")
    with (
        QueueTransport(odbc_setting(postgres, "s3cret", "no such driver")) as transport,
        pytest.raises(DriverMissingError, match=r"no such driver.*install the ODBC driver") as raised,
    ):
        transport.peek("orders")
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("module", "setting", "words"),
    [
        ("psycopg", "postgresql://user:s3cret@127.0.0.1:9/db", r"pip install 'queue_pipeline\[postgresql\]'"),
        ("pyodbc", "postgresql+pyodbc://user:s3cret@127.0.0.1:9/db", "unixodbc"),
        ("pyodbc", "mssql://user:s3cret@127.0.0.1:9/db", "unixodbc"),
    ],
)
def test_a_python_driver_that_is_not_installed_is_named_with_the_next_step(monkeypatch, module, setting, words):
    monkeypatch.setitem(sys.modules, module, None)
    with QueueTransport(setting) as transport, pytest.raises(DriverMissingError, match=words) as raised:
        transport.peek("orders")
    assert "s3cret" not in str(raised.value)


def test_a_driver_is_loaded_with_the_first_connection():
    program = (
        "import sys, queue_pipeline.transport as t\n"
        "t.QueueTransport('postgresql://h/d'), t.QueueTransport('mssql://h/d')\n"
        "assert not {'psycopg', 'pyodbc'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


# --- SQLite files ------------------------------------------------------------------------------------------


def test_the_folder_of_a_sqlite_file_is_created_with_the_first_connection(tmp_path):
    path = tmp_path / "new" / "folder of it" / "queues.db"
    with QueueTransport(f"sqlite:///{path}") as transport:
        assert not path.parent.exists()
        transport.install("orders")
        assert path.exists()


def test_a_folder_that_cannot_be_created_is_named(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with (
        QueueTransport(f"sqlite:///{tmp_path}/file/queues.db") as transport,
        pytest.raises(DatabaseUnavailableError, match=r"folder of .*file/queues\.db cannot be created.*another path"),
    ):
        transport.peek("orders")


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path):
    path = tmp_path / "queues.db"
    path.write_bytes(b"this is no SQLite file, however long it may be; " * 50)
    with (
        QueueTransport(f"sqlite:///{path}") as transport,
        pytest.raises(DatabaseUnavailableError, match="not a database"),
    ):
        transport.peek("orders")


def test_a_full_disk_is_not_the_fault_of_a_message(sqlite):
    transport = sqlite.transport()
    transport.install("orders")
    event.listen(
        transport.database.engine, "begin", lambda connection: connection.exec_driver_sql("PRAGMA max_page_count = 60")
    )
    with pytest.raises(DatabaseUnavailableError, match=r"orders.*disk is full"):
        transport.send("orders", new_message("x" * 5_000_000))
    assert transport.peek("orders") == 0


# --- SQL Server's way to insert, on a server that is there ---------------------------------------------------


def test_declared_types_carry_every_length(postgresql):
    """pyodbc is told types and lengths as for SQL Server; values of all lengths arrive whole."""
    transport = postgresql.transport()
    if transport.database.engine.dialect.driver != "pyodbc":
        pytest.skip("types are declared to pyodbc")
    transport.install("orders")
    queue = transport.resolve("orders")
    send = transport.database.dialect.statement("nservicebus/queue.send", queue=queue)
    rows = [
        Row(f"00000000-0000-0000-0000-{number:012}", NEVER_EXPIRES, "ü" * size, b"\x00\xff" * size)
        for number, size in enumerate((0, 1, 10, 2_000, 2_001, 4_000, 8_001, 100_000, 1, 0))
    ]
    with transport.database.transaction() as transaction:
        SqlServerDriver().insert(transaction, send, rows, {})
        found = transaction.rows(Command(f"SELECT headers, body FROM {queue.qualified} ORDER BY seq"))
    assert [tuple(row) for row in found] == [(row.headers, row.body) for row in rows]


def test_pyodbc_does_not_pool_underneath():
    assert pyodbc.pooling is False
