import os
import sqlite3
import threading

import pyodbc
import pytest

from queue_pipeline.transport import Operation, QueueTransport, new_message
from queue_pipeline.transport.database import CommitUnknownError
from queue_pipeline.transport.errors import (
    AccessDeniedError,
    ConfigurationError,
    DatabaseUnavailableError,
    DriverMissingError,
    TransientDatabaseError,
)
from queue_pipeline_tests.support.backends import PSYCOPG, PYODBC
from queue_pipeline_tests.support.postgres_cluster import PostgresCluster


@pytest.fixture(params=[PSYCOPG, PYODBC])
def driver(request):
    return request.param


def backend_pid(transport):
    with transport.transaction() as transaction:
        return transaction.rows("SELECT pg_backend_pid()")[0][0]


def test_connections_are_kept_and_reused(postgresql):
    transport = postgresql.transport()
    assert backend_pid(transport) == backend_pid(transport)


def test_a_broken_connection_is_replaced(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    broken = backend_pid(transport)
    postgres.run_sql(f"SELECT pg_terminate_backend({broken})")
    transport.send("orders", new_message("{}"))
    assert transport.peek("orders") == 1
    assert backend_pid(transport) != broken


def test_a_connection_lost_in_the_middle_loses_no_message(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    transport.send("orders", new_message("{}"))
    with pytest.raises(DatabaseUnavailableError), transport.receive("orders") as batch:
        pid = batch.transaction.rows("SELECT pg_backend_pid()")[0][0]
        postgres.run_sql(f"SELECT pg_terminate_backend({pid})")
        batch.transaction.rows("SELECT 1")
    assert transport.peek("orders") == 1


def test_a_server_killed_in_the_middle_of_a_statement_is_away(postgresql, postgres):
    transport = postgresql.transport()
    with pytest.raises(DatabaseUnavailableError, match="check that it runs"), transport.transaction() as transaction:
        pid = transaction.rows("SELECT pg_backend_pid()")[0][0]
        kill = threading.Timer(0.2, postgres.run_sql, [f"SELECT pg_terminate_backend({pid})"])
        kill.start()
        try:
            transaction.rows("SELECT pg_sleep(30)")
        finally:
            kill.join()
    assert backend_pid(transport) != pid


def test_a_server_killed_before_the_commit_leaves_the_outcome_open(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    with pytest.raises(CommitUnknownError), transport.transaction() as transaction:
        transport.send("orders", new_message("{}"), transaction)
        pid = transaction.rows("SELECT pg_backend_pid()")[0][0]
        postgres.run_sql(f"SELECT pg_terminate_backend({pid}, 10000)")
    assert transport.peek("orders") == 0


def test_a_commit_that_is_cut_off_completes_a_claim_once(postgresql, postgres, monkeypatch):
    """The server dies between the statements and the commit, and the claim is looked up."""
    transport = postgresql.transport()
    transport.install("orders", "billing")
    transport.send("orders", new_message("{}"))
    claim = transport.claim("orders", "me", 10)
    database, killed = type(transport.database), []
    genuine = database._commit

    def commit(self, connection):
        if not killed:
            killed.append(connection.execute("SELECT pg_backend_pid()").fetchall()[0][0])
            postgres.run_sql(f"SELECT pg_terminate_backend({killed[0]}, 10000)")
        genuine(self, connection)

    monkeypatch.setattr(database, "_commit", commit)
    assert transport.claims.complete(claim, [Operation("billing", new_message("once"))]) == 1
    assert killed and transport.peek("billing") == 1


def test_sessions_run_at_read_committed_in_utc(postgresql, postgres):
    postgres.run_sql("ALTER ROLE queue_pipeline SET default_transaction_isolation = 'serializable'")
    postgres.run_sql("ALTER ROLE queue_pipeline SET timezone = 'Asia/Tokyo'")
    try:
        with postgresql.transport().transaction() as transaction:
            assert transaction.rows("SHOW transaction_isolation")[0][0] == "read committed"
            assert transaction.rows("SHOW timezone")[0][0] == "UTC"
    finally:
        postgres.run_sql("ALTER ROLE queue_pipeline RESET ALL")


def test_sql_server_sessions_abort_on_error_and_count_silently(sqlserver):
    with sqlserver.transport().transaction() as transaction:
        options = transaction.rows("SELECT @@OPTIONS")[0][0]
    assert options & 512, "NOCOUNT"
    if sqlserver.is_babelfish:
        pytest.skip("Babelfish does not report XACT_ABORT in @@OPTIONS; NOCOUNT was checked")
    assert options & 16384, "XACT_ABORT"


def test_a_connection_factory_supplies_the_connections(backend):
    """AS-13, AP-07: the user's own open connections are used, with the session settings that statements rely on."""
    plain = backend.transport()
    plain.install("orders")
    opened = []

    def connect():
        opened.append(plain.database.dialect.connect(plain.database.url))
        return opened[-1]

    transport = backend.transport(connect=connect)
    transport.send("orders", new_message("{}"))
    with transport.receive("orders") as batch:
        assert len(batch) == 1
        assert batch.transaction.connection in opened
    assert opened


def test_an_odbc_string_finds_its_dialect_by_itself(postgresql, postgres):
    """The fourth form of the setting; driver options that we need are added when they are missing."""
    url = postgres.url(driver=PSYCOPG)
    user, rest = url.removeprefix("postgresql://").split(":", 1)
    password, place = rest.rsplit("@", 1)
    host, port = place.split("/")[0].split(":")
    text = f"odbc:DRIVER={{PostgreSQL Unicode}};SERVER={host};PORT={port};DATABASE=postgres;UID={user};PWD={password}"
    with QueueTransport(text, schema=postgresql.schema) as transport:
        transport.install("orders")
        transport.send("orders", new_message(b"\x00" * 100_000, headers={"long": "x" * 100_000}))
        with transport.receive("orders") as batch:
            assert batch.messages[0].body == b"\x00" * 100_000
            assert batch.messages[0].headers["long"] == "x" * 100_000
        assert transport.resolve("orders").canonical == f'"{postgresql.schema}"."orders"'


@pytest.mark.parametrize("password", ["p;w}d{", "it's %41 =&?#", "ünï \U0001f600"])
def test_passwords_with_any_character_work_and_are_never_shown(postgres, password, driver):
    from urllib.parse import quote

    role = "odd_password"
    postgres.run_sql(
        f"DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN PASSWORD '{password.replace(chr(39), chr(39) * 2)}'"
    )
    url = postgres.url(user=role, password="PLACEHOLDER", driver=driver)
    url = url.replace("PLACEHOLDER", quote(password, safe=""))
    with QueueTransport(url) as transport, transport.transaction() as transaction:
        assert transaction.rows("SELECT current_user")[0][0] == role
        assert password not in repr(transport.database.url) + str(transport.database.url)


def test_a_wrong_password_is_a_clear_error_without_the_password(postgres, driver):
    url = postgres.url(password="very-secret-guess", driver=driver)
    with QueueTransport(url) as transport, pytest.raises(AccessDeniedError) as raised:
        transport.peek("orders")
    assert "password" in str(raised.value)
    assert "very-secret-guess" not in str(raised.value)


def test_a_database_that_does_not_exist_is_named(postgres, driver):
    with (
        QueueTransport(postgres.url("no_such_database", driver=driver)) as transport,
        pytest.raises(DatabaseUnavailableError, match=r"no_such_database.*check the name of the database"),
    ):
        transport.peek("orders")


def test_a_wrong_password_in_an_odbc_string_is_told_as_such(postgres):
    port = postgres.url().rsplit(":", 1)[1].split("/")[0]
    text = (
        f"odbc:DRIVER={{PostgreSQL Unicode}};SERVER=127.0.0.1;PORT={port};DATABASE=postgres;UID=queue_pipeline;PWD=nope"
    )
    with QueueTransport(text) as transport, pytest.raises(AccessDeniedError, match="check user and password"):
        transport.peek("orders")


def test_an_unreachable_server_is_a_clear_error(caplog, driver):
    scheme = "postgresql+pyodbc" if driver == PYODBC else "postgresql"
    with (
        QueueTransport(f"{scheme}://user:secret@127.0.0.1:9/db") as transport,
        pytest.raises(DatabaseUnavailableError, match=r"127\.0\.0\.1:9.*check that it runs"),
    ):
        transport.peek("orders")
    assert "secret" not in caplog.text


def test_a_missing_driver_is_named_with_the_next_step():
    with (
        QueueTransport("postgresql+pyodbc://u:p@127.0.0.1/db?driver=No+Such+Driver") as transport,
        pytest.raises(DriverMissingError, match="No Such Driver"),
    ):
        transport.peek("orders")


def test_a_driver_and_its_options_can_be_chosen(postgres):
    """The driver is used, and options reach it: psqlodbc itself refuses to write on a read-only connection."""
    url = postgres.url(driver=PYODBC) + "?driver=PostgreSQL+Unicode"
    with QueueTransport(url) as transport, transport.transaction() as transaction:
        assert transaction.rows("SELECT 1")[0][0] == 1
    with QueueTransport(f"{url}&ReadOnly=1") as transport, pytest.raises(DatabaseUnavailableError, match="readonly"):
        transport.peek("orders")


def test_an_unknown_scheme_is_refused_with_the_forms_that_exist():
    with pytest.raises(ConfigurationError, match=r"mysql.*sqlite:///path, postgresql://"):
        QueueTransport("mysql://u:p@h/d")


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
        assert transport.claims.complete(claim) == 0


def test_a_deadlock_victim_is_retried_without_alarm(postgresql, caplog):
    import threading

    transport = postgresql.transport()
    table = transport.book.own("pair").qualified
    postgresql.sql(transport, f"CREATE TABLE {table} (n int PRIMARY KEY, v int NOT NULL)")
    postgresql.sql(transport, f"INSERT INTO {table} VALUES (1, 0), (2, 0)")
    meet, tries = threading.Barrier(2), []

    def cross(first, second):
        met = []

        def work(transaction):
            tries.append(first)
            transaction.execute(f"UPDATE {table} SET v = v + 1 WHERE n = ?", (first,))
            if not met:
                met.append(True)
                meet.wait(20)
            transaction.execute(f"UPDATE {table} SET v = v + 1 WHERE n = ?", (second,))

        transport.database.run(work)

    threads = [threading.Thread(target=cross, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [tuple(row) for row in postgresql.sql(transport, f"SELECT v FROM {table}")] == [(2,), (2,)]
    assert len(tries) == 3
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR", "CRITICAL")]


def test_a_busy_sqlite_file_is_a_transient_error(sqlite, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.dialects.sqlite.BUSY_TIMEOUT_SECONDS", 0.01)
    monkeypatch.setattr("queue_pipeline.transport.database.TRIES", 2)
    transport = sqlite.transport()
    transport.install("orders")
    other = sqlite3.connect(transport.database.url.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TransientDatabaseError):
        transport.send("orders", new_message("{}"))
    assert transport.peek("orders") == 0
    other.execute("ROLLBACK")
    other.close()
    assert transport.send("orders", new_message("{}")) == 1


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path):
    path = tmp_path / "queues.db"
    path.write_bytes(b"this is no SQLite file, however long it may be; " * 50)
    with (
        QueueTransport(f"sqlite:///{path}") as transport,
        pytest.raises(DatabaseUnavailableError, match="not a database"),
    ):
        transport.peek("orders")


def test_a_forked_child_does_not_use_the_parents_connections(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    parent = backend_pid(transport)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(backend_pid(transport)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert int(answer.read()) != parent
    assert backend_pid(transport) == parent


def test_errors_after_the_first_row_are_seen(sqlserver):
    """Every result is read to the end before the commit, so a late error is not committed over."""
    transport = sqlserver.transport()
    with pytest.raises(Exception, match=r"(?i)zero"), transport.transaction() as transaction:
        transaction.rows("SELECT 1 AS n; SELECT 1 / 0 AS n")


def test_pyodbc_does_not_pool_underneath():
    assert pyodbc.pooling is False
