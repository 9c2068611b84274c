"""Transactions that the caller shares with queues: own statements, an ORM session, own connections and engines."""

import contextlib
import json
import os

import pytest
from sqlalchemy import Connection, create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import NullPool

from queue_pipeline.transport import Operation, QueueTransport, TransactionMode, new_message
from queue_pipeline.transport.database.engine import open_engine
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline.transport.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    DoomedTransactionError,
    QueueNotFoundError,
)
from queue_pipeline_tests.support.backends import run_sql

SCOPE = TransactionMode.TRANSACTION_SCOPE
LEVEL = "READ COMMITTED"


@pytest.fixture
def ledger(backend, transport):
    """A table of the caller's own."""
    table = transport.book.own("ledger").qualified
    backend.sql(transport, f"CREATE TABLE {table} (n int NOT NULL)")
    return table


@pytest.fixture
def engines(backend):
    """Engines of the caller's own on the same database, without anything of ours."""
    opened = []

    def open_one(**options):
        # Opened as ours is, so that ODBC's driver is found, and then as the caller wants it.
        url = open_engine(database_url(backend.url)).url
        if backend.is_babelfish:
            # SQLAlchemy asks for extended properties otherwise, and Babelfish fails.
            options["supports_comments"] = False
        opened.append(create_engine(url, **options))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.dispose()


def numbers(backend, transport, table):
    return [row[0] for row in backend.sql(transport, f"SELECT n FROM {table} ORDER BY n")]


def add(connection, table, number):
    run_sql(connection, f"INSERT INTO {table} (n) VALUES (?)", (number,))


# --- an ORM session ----------------------------------------------------------------------------------------


class Base(DeclarativeBase):
    pass


class CustomerTotal(Base):
    """What a customer ordered so far."""

    __tablename__ = "customer_totals"
    customer: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]


def add_up_orders(transport: QueueTransport) -> None:
    """Takes orders off their queue, adds them up and sends invoices: all of it happens, or nothing."""
    with (
        transport.receive("orders", mode=TransactionMode.TRANSACTION_SCOPE) as batch,
        Session(batch.connection) as session,
        session.begin(),
    ):
        for message in batch:
            order = json.loads(message.body)
            total = session.get(CustomerTotal, order["customer"])
            if total is None:
                total = CustomerTotal(customer=order["customer"], cents=0)
                session.add(total)
            total.cents += order["cents"]
            batch.send([Operation("billing", new_message(json.dumps(order)))])


@pytest.fixture
def shop(backend, engines):
    """Orders and invoices, and a table of the ORM's, on an engine of the caller's own."""
    engine = engines().execution_options(schema_translate_map={None: backend.schema})
    if backend.name == "sqlserver":
        engine = engine.execution_options(isolation_level=LEVEL)
    transport = QueueTransport(engine, schema=backend.schema)
    transport.install("orders", "billing")
    with engine.begin() as connection:
        # Text keys of SQL Server need a length.
        if backend.name == "sqlserver":
            table = transport.book.own("customer_totals").qualified
            connection.exec_driver_sql(f"CREATE TABLE {table} (customer nvarchar(50) PRIMARY KEY, cents int NOT NULL)")
        else:
            Base.metadata.create_all(connection)
    transport.send("orders", [new_message(json.dumps(order)) for order in ORDERS])
    return transport


ORDERS = [{"customer": "ann", "cents": 250}, {"customer": "bob", "cents": 100}, {"customer": "ann", "cents": 50}]


def totals(transport):
    with Session(transport.database.engine) as session:
        return {total.customer: total.cents for total in session.query(CustomerTotal)}


def test_an_orm_session_writes_in_the_transaction_of_the_receive(shop):
    add_up_orders(shop)
    assert totals(shop) == {"ann": 300, "bob": 100}
    assert (shop.peek("orders"), shop.peek("billing")) == (0, 3)


def test_rows_of_a_session_sends_and_the_receive_are_undone_together(shop):
    shop.send("orders", new_message(json.dumps({"customer": "eve"})))
    with pytest.raises(KeyError, match="cents"):
        add_up_orders(shop)
    assert totals(shop) == {}
    assert (shop.peek("orders"), shop.peek("billing")) == (4, 0)


def test_a_commit_of_the_session_writes_its_rows_and_ends_nothing(shop):
    with pytest.raises(ZeroDivisionError), shop.receive("orders", mode=SCOPE) as batch:
        with Session(batch.connection) as session:
            session.add(CustomerTotal(customer="zoe", cents=1))
            session.commit()
            assert session.get(CustomerTotal, "zoe") is not None
        raise ZeroDivisionError
    assert totals(shop) == {} and shop.peek("orders") == 3


def test_a_session_that_rolls_back_dooms_the_transaction(shop):
    with pytest.raises(DoomedTransactionError), shop.receive("orders", mode=SCOPE) as batch:
        with Session(batch.connection) as session:
            session.add(CustomerTotal(customer="zoe", cents=1))
            session.flush()
            session.rollback()
        batch.send([Operation("billing", new_message("too late"))])
    assert totals(shop) == {} and (shop.peek("orders"), shop.peek("billing")) == (3, 0)


def test_a_session_of_the_callers_own_sends_by_its_connection(shop):
    with Session(shop.database.engine) as session:
        session.add(CustomerTotal(customer="zoe", cents=1))
        shop.send("billing", new_message("undone"), session.connection())
        session.rollback()
        session.add(CustomerTotal(customer="zoe", cents=2))
        shop.send("billing", new_message("done"), session.connection())
        session.commit()
    assert totals(shop) == {"zoe": 2} and shop.peek("billing") == 1


# --- statements that failed --------------------------------------------------------------------------------


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
        pytest.skip("SQLite undoes a failed statement alone; the transaction goes on and is whole")
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
        pytest.skip("an error ends the whole transaction under XACT_ABORT")
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


def test_an_error_that_leaves_the_block_is_the_callers_own(backend, transport, ledger):
    with pytest.raises(DBAPIError), transport.transaction() as connection:
        add(connection, ledger, 1)
        run_sql(connection, f"INSERT INTO {ledger} (n) VALUES (NULL)")
    assert numbers(backend, transport, ledger) == []
    assert transport.database.engine.pool.checkedout() == 0


# --- callers that end the transaction ----------------------------------------------------------------------

ENDS = [Connection.commit, Connection.rollback, Connection.close, Connection.invalidate]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
def test_a_caller_that_ends_the_transaction_inside_is_told(backend, transport, ledger, end):
    with pytest.raises(DoomedTransactionError, match="commit or rollback"), transport.transaction() as connection:
        add(connection, ledger, 1)
        end(connection)
    assert numbers(backend, transport, ledger) == ([1] if end is Connection.commit else [])
    assert transport.database.engine.pool.checkedout() == 0


@pytest.mark.parametrize("end", ENDS[:2], ids=lambda end: end.__name__)
def test_what_came_after_such_an_end_is_rolled_back(backend, transport, ledger, end):
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


# --- connections of the caller's own -----------------------------------------------------------------------


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


def test_a_broken_connection_of_the_callers_is_our_error(postgresql, postgres):
    transport = postgresql.transport()
    transport.install("orders")
    engine = open_engine(database_url(postgresql.url))
    with engine.connect() as connection:
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        postgres.run_sql(f"SELECT pg_terminate_backend({pid}, 10000)")
        for _ in range(2):
            with pytest.raises(DatabaseUnavailableError):
                transport.send("orders", new_message("{}"), connection)
        connection.rollback()
        transport.send("orders", new_message("{}"), connection)
        connection.commit()
    engine.dispose()
    assert transport.peek("orders") == 1


# --- isolation ---------------------------------------------------------------------------------------------


@pytest.fixture
def needs_levels(backend):
    if backend.name == "sqlite":
        pytest.skip("SQLite has one writer, and the transport takes the write lock itself")
    if backend.is_babelfish:
        pytest.skip("Babelfish knows few levels")


@pytest.mark.parametrize("level", ["SERIALIZABLE", "REPEATABLE READ", "AUTOCOMMIT"])
@pytest.mark.usefixtures("needs_levels")
def test_an_engine_at_another_level_is_refused_with_the_next_step(backend, transport, engines, level):
    words = rf'at {level}, and queues need {LEVEL}; give engine\.execution_options\(isolation_level="{LEVEL}"\)'
    made_so, option = engines(isolation_level=level), engines().execution_options(isolation_level=level)
    for engine in (made_so, option):
        own = QueueTransport(engine, schema=backend.schema)
        for _ in range(2):
            with pytest.raises(ConfigurationError, match=words):
                own.send("orders", new_message("{}"))
        with engine.connect() as connection, pytest.raises(ConfigurationError, match=words):
            transport.send("orders", new_message("{}"), connection)
    assert transport.peek("orders") == 0


@pytest.mark.parametrize("level", ["SERIALIZABLE", "AUTOCOMMIT"])
@pytest.mark.usefixtures("needs_levels")
def test_the_next_step_works_and_the_engine_stays_as_it_was(backend, transport, engines, level):
    engine = engines(isolation_level=level, pool_size=1, max_overflow=0)
    own = QueueTransport(engine.execution_options(isolation_level=LEVEL), schema=backend.schema)
    for _ in range(2):
        own.send("orders", new_message("{}"))
        # The same connection of the driver, for another use of the caller's.
        with engine.connect() as connection:
            if level == "AUTOCOMMIT":
                assert connection.dialect.detect_autocommit_setting(connection.connection.dbapi_connection)
            else:
                assert connection.get_isolation_level() == level
            with pytest.raises(ConfigurationError, match=f"at {level}"):
                transport.send("orders", new_message("{}"), connection)
    assert transport.peek("orders") == 2


@pytest.mark.usefixtures("needs_levels")
def test_a_connection_that_was_good_once_is_looked_at_again_when_its_level_changes(transport, engines):
    engine = engines(pool_size=1, max_overflow=0)
    for level in (None, "SERIALIZABLE", None, "AUTOCOMMIT", LEVEL, "read_committed"):
        with engine.connect() as connection:
            if level is not None:
                connection.execution_options(isolation_level=level)
            if level in ("SERIALIZABLE", "AUTOCOMMIT"):
                with pytest.raises(ConfigurationError, match=f"at {level}"):
                    transport.enlist(connection)
            else:
                transport.enlist(connection)


# --- engines of the caller's own ---------------------------------------------------------------------------


SETTINGS = {
    "postgresql": {
        "SHOW timezone": "UTC",
        "SHOW enable_bitmapscan": "off",
        "SHOW max_parallel_workers_per_gather": "0",
        "SHOW transaction_isolation": "read committed",
    },
    "sqlite": {"PRAGMA journal_mode": "wal", "PRAGMA synchronous": 2},
    "sqlserver": {"SELECT @@LOCK_TIMEOUT": 30000, "SELECT @@OPTIONS & 16384": 16384},
}


def settings_of(backend, connection):
    expected = SETTINGS[backend.name]
    if backend.is_babelfish:
        # It does not report XACT_ABORT.
        expected = dict(list(expected.items())[:1])
    return {question: connection.exec_driver_sql(question).scalar_one() for question in expected}, expected


def test_our_sessions_are_set_up(backend, transport):
    for _ in range(2):
        with transport.transaction() as connection:
            found, expected = settings_of(backend, connection)
            assert found == expected


@pytest.mark.parametrize("pooled", [False, True], ids=["new connections", "connections that were pooled before"])
def test_sessions_of_the_callers_engine_are_set_up(backend, engines, pooled):
    engine = engines(pool_size=2)
    if pooled:
        with engine.connect() as first, engine.connect() as second:
            if backend.name != "sqlite":
                assert settings_of(backend, first)[0] != settings_of(backend, second)[1]
    transport = QueueTransport(engine, schema=backend.schema)
    with contextlib.ExitStack() as stack:
        # SQLite has one writer at a time.
        users = [stack.enter_context(transport.database.transaction(write=False)) for _ in range(2)]
        for user in users:
            found, expected = settings_of(backend, user.connection)
            assert found == expected
    with engine.connect() as connection:
        found, expected = settings_of(backend, connection)
        assert found == expected, "the engine's connections stay set up"


def test_sessions_are_set_up_again_after_the_pool_was_emptied(backend, engines):
    engine = engines()
    transport = QueueTransport(engine, schema=backend.schema)
    for _ in range(2):
        with transport.transaction() as connection:
            found, expected = settings_of(backend, connection)
            assert found == expected
        engine.dispose()


def test_an_engine_is_used_as_it_is(backend, engines):
    """AS-13, AP-07: its pool, its events and its connections are the caller's."""
    heard = []
    engine = engines(poolclass=NullPool)
    event.listen(engine, "connect", lambda connection, record: heard.append("connect"))
    event.listen(engine, "before_cursor_execute", lambda *arguments: heard.append("execute"))
    transport = QueueTransport(engine, schema=backend.schema)
    assert heard == [], "nothing is opened before it is needed"
    transport.install("orders")
    transport.send("orders", new_message("{}"))
    with transport.receive("orders", mode=SCOPE) as batch:
        assert len(batch) == 1
        assert batch.connection.engine is engine
    assert {"connect", "execute"} <= set(heard)
    assert transport.database.engine is engine


def test_an_engine_is_not_closed_with_the_transport(backend, engines):
    engine = engines()
    closed = []
    event.listen(engine, "close", lambda connection, record: closed.append(connection))
    with QueueTransport(engine, schema=backend.schema) as transport:
        transport.install("orders")
    assert closed == []
    with engine.connect() as connection:
        assert inspect(connection).has_table("orders", schema=backend.schema)


def test_there_are_no_settings_for_another_process_of_an_engine(backend, engines):
    assert QueueTransport(engines(), schema=backend.schema).settings is None
    assert backend.transport().settings is not None


def test_an_engine_without_a_free_connection_is_our_error(backend, engines):
    engine = engines(pool_size=1, max_overflow=0, pool_timeout=0.1)
    transport = QueueTransport(engine, schema=backend.schema)
    with engine.connect(), pytest.raises(DatabaseUnavailableError, match=r"no connection of the engine is free.*pool"):
        transport.peek("orders")


def test_a_dead_connection_of_an_engine_that_does_not_ask_is_our_error_once(postgresql, postgres):
    engine = create_engine(open_engine(database_url(postgresql.url)).url)
    transport = QueueTransport(engine, schema=postgresql.schema)
    transport.install("orders")

    def dead():
        with engine.connect() as connection:
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        postgres.run_sql(f"SELECT pg_terminate_backend({pid}, 10000)")

    dead()
    with pytest.raises(DatabaseUnavailableError):
        transport.peek("orders")
    assert transport.peek("orders") == 0
    # One that is set up with its next use.
    engine.dispose()
    fresh = create_engine(engine.url)
    with fresh.connect() as connection:
        pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    postgres.run_sql(f"SELECT pg_terminate_backend({pid}, 10000)")
    transport = QueueTransport(fresh, schema=postgresql.schema)
    with pytest.raises(DatabaseUnavailableError):
        transport.peek("orders")
    assert transport.peek("orders") == 0
    fresh.dispose()


def test_a_forked_child_leaves_the_connections_of_the_engine_to_its_parent(postgresql):
    engine = create_engine(open_engine(database_url(postgresql.url)).url)
    transport = QueueTransport(engine, schema=postgresql.schema)

    def pid():
        with transport.transaction() as connection:
            return connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()

    parent = pid()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if pid() != parent else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pid() == parent
    engine.dispose()


def test_two_transports_share_an_engine(backend, engines):
    engine = engines()
    first, second = (QueueTransport(engine, schema=backend.schema) for _ in range(2))
    first.install("orders")
    with engine.begin() as connection:
        first.send("orders", new_message("1"), connection)
        second.send("orders", new_message("2"), connection)
    with second.transaction() as connection:
        first.send("orders", new_message("3"), connection)
        connection.execute(text("SELECT 1"))
    assert first.peek("orders") == second.peek("orders") == 3


def test_an_error_of_one_transport_on_a_connection_of_another_dooms_it(backend, engines):
    engine = engines()
    first, second = (QueueTransport(engine, schema=backend.schema) for _ in range(2))
    first.install("orders")
    with pytest.raises(DoomedTransactionError), first.transaction() as connection:
        first.send("orders", new_message("{}"), connection)
        with contextlib.suppress(QueueNotFoundError):
            second.send("nowhere", new_message("{}"), connection)
    assert first.peek("orders") == 0
