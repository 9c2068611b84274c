"""Engines of the caller's own: their pool and events, the level that they need, and the setup of their sessions."""

import contextlib

import pytest
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.pool import NullPool

from queue_pipeline.errors import (
    ConfigurationError,
    DatabaseUnavailableError,
    DoomedTransactionError,
    QueueNotFoundError,
)
from queue_pipeline.transport import QueueTransport, TransactionMode, new_message
from queue_pipeline.transport.database.engine import open_engine
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline_tests.support.databases.forks import in_a_child
from queue_pipeline_tests.support.databases.sessions import backend_pid, kill, pid_of

pytestmark = pytest.mark.both_drivers

SCOPE = TransactionMode.TRANSACTION_SCOPE
LEVEL = "READ COMMITTED"


# --- isolation ----------------------------------------------------------------------------------------------


@pytest.fixture
def needs_levels(backend):
    if backend.name == "sqlite":
        pytest.skip("needs isolation levels; SQLite has one writer, and the transport takes its lock itself")
    if backend.is_babelfish:
        pytest.skip("needs all isolation levels; Babelfish has few")


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


# --- settings of sessions -----------------------------------------------------------------------------------


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
    """Also one that no transport has set up yet."""
    postgresql.transport().install("orders")
    for is_set_up in (True, False):
        engine = create_engine(open_engine(database_url(postgresql.url)).url)
        if is_set_up:
            QueueTransport(engine, schema=postgresql.schema).peek("orders")
        with engine.connect() as connection:
            pid = pid_of(connection)
        kill(postgres, pid)
        transport = QueueTransport(engine, schema=postgresql.schema)
        with pytest.raises(DatabaseUnavailableError):
            transport.peek("orders")
        assert transport.peek("orders") == 0
        engine.dispose()


def test_a_forked_child_leaves_the_connections_of_the_engine_to_its_parent(postgresql):
    engine = create_engine(open_engine(database_url(postgresql.url)).url)
    transport = QueueTransport(engine, schema=postgresql.schema)
    parent = backend_pid(transport)
    assert int(in_a_child(lambda: backend_pid(transport))) != parent
    assert backend_pid(transport) == parent
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
