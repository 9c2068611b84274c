"""The engine of a database, made of a setting or the caller's own, and the session that every connection gets."""

from __future__ import annotations

import ctypes
import os
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Engine, Pool, create_engine, event
from sqlalchemy.dialects import registry
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from queue_pipeline.errors import ConfigurationError, DatabaseUnavailableError, DriverMissingError
from queue_pipeline.transport.database.dialects.odbc_drivers import with_driver
from queue_pipeline.transport.database.dialects.postgresql import KEEP_ALIVE
from queue_pipeline.transport.database.faults import Fault, driver_message
from queue_pipeline.transport.database.setting import secrets, shown
from queue_pipeline.transport.database.transaction import BATCH, transaction_on
from queue_pipeline.transport.private_files import make_private_file, make_private_folder

if TYPE_CHECKING:
    from queue_pipeline.transport.database.dialects.dialect import Dialect
    from queue_pipeline.transport.database.drivers import Driver

IDLE_CONNECTIONS = 8
LOGIN_TIMEOUT_SECONDS = 15
BUSY_TIMEOUT_SECONDS = 30.0
SWITCH_SECONDS = 5.0
"""How long a new connection waits for others that open the same new SQLite file."""
NEEDED_LEVEL = "READ COMMITTED"
AUTOCOMMIT = "AUTOCOMMIT"
_UNKNOWN = "an unknown level"
_STARTED = "queue_pipeline.session"
_PROCESS = "queue_pipeline.process"
"""Where a connection notes which process opened it."""
_CONNECT_OPTIONS: dict[str, dict[str, Any]] = {
    "sqlite": {"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
    "postgresql+psycopg": {"connect_timeout": LOGIN_TIMEOUT_SECONDS, "client_encoding": "UTF8", **KEEP_ALIVE},
    "postgresql+pyodbc": {"timeout": LOGIN_TIMEOUT_SECONDS},
    # Microsoft's driver and FreeTDS send keep-alive probes by themselves, after 30 and 40 s.
    "mssql+pyodbc": {"timeout": LOGIN_TIMEOUT_SECONDS},
}
# Asked of the server with the first connection otherwise; comments on tables are not used here, and Babelfish fails.
_ENGINE_OPTIONS: dict[str, dict[str, Any]] = {"mssql+pyodbc": {"supports_comments": False}}
_INSTALL = {
    "psycopg": "install it with: pip install 'queue_pipeline[postgresql]'",
    "pyodbc": "install the driver manager, Debian's unixodbc",
}

registry.register(
    "postgresql.pyodbc", "queue_pipeline.transport.database.dialects.odbc_postgresql", "OdbcPostgreSqlDialect"
)

_open: weakref.WeakSet[Engine] = weakref.WeakSet()
_prepared: weakref.WeakSet[Pool] = weakref.WeakSet()
_closed: weakref.WeakSet[Engine] = weakref.WeakSet()
_of_parents: list[Pool] = []
# Never freed: the destructors of pyodbc would close the parent's sessions on the server.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_of_parents))


def open_engine(url: URL) -> Engine:
    """An engine of our own: as many connections as are asked for, some of them kept, looked at before each use."""
    options = _CONNECT_OPTIONS[url.drivername]
    try:
        engine = create_engine(
            with_driver(url),
            connect_args={name: value for name, value in options.items() if name not in url.query},
            pool_size=IDLE_CONNECTIONS,
            max_overflow=-1,
            pool_pre_ping=True,
            pool_use_lifo=True,
            hide_parameters=True,
            **_ENGINE_OPTIONS.get(url.drivername, {}),
        )
    except (ImportError, NoSuchModuleError) as error:
        raise DriverMissingError(
            f"{shown(url)}: its driver cannot be loaded ({error}); {_INSTALL[url.get_driver_name()]}"
        ) from None
    except (ArgumentError, ValueError) as error:
        words = driver_message(error, secrets(url))
        raise ConfigurationError(f"{shown(url)}: the driver refuses an option of the setting: {words}") from None
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "do_connect", _make_file)
    _close_late_returns(engine)
    return engine


def _close_late_returns(engine: Engine) -> None:
    """Close connections that come back after `close_engine`, as from a thread that hangs."""

    def note(_: Any, record: Any) -> None:
        record.info[_PROCESS] = os.getpid()

    def end(_: Any, record: Any) -> None:
        # After a fork a connection is the parent's, and stays open.
        if engine in _closed and record.info.get(_PROCESS) == os.getpid():
            record.close()

    event.listen(engine, "connect", note)
    event.listen(engine, "checkin", end)


def close_engine(engine: Engine) -> None:
    """Close the idle connections of an engine of our own now, and those in use when they come back."""
    _closed.add(engine)
    engine.dispose()


def prepare(engine: Engine, dialect: Dialect, driver: Driver, *, is_own: bool) -> None:
    """Give every connection the session that statements rely on; a caller's engine keeps its isolation level."""

    def start(connection: Any, record: Any, _: Any) -> None:
        if _STARTED in record.info:
            return
        driver.start(connection)
        level = isolation_level(engine, connection) if dialect.locks_rows and not is_own else None
        cursor = connection.cursor()
        for statement in dialect.session():
            _start_session(dialect, cursor, statement)
        if (refusal := dialect.refusal(cursor)) is not None:
            raise ConfigurationError(f"{shown(engine.url)}: {refusal}")
        cursor.close()
        connection.commit()
        if level not in (None, NEEDED_LEVEL, AUTOCOMMIT, _UNKNOWN):
            engine.dialect.set_isolation_level(connection, level)
        record.info[_STARTED] = True

    def notice(context: ExceptionContext) -> None:
        # SQLAlchemy knows a few signs of a lost connection, we know more; a pooled one is then replaced in silence.
        if isinstance(context.sqlalchemy_exception, DBAPIError):
            lost = dialect.fault(context.original_exception) is Fault.CONNECTION
            context.is_disconnect = context.is_disconnect or lost
        # PostgreSQL and SQL Server end the transaction by themselves. SQLite undoes the statement alone, and would
        # commit the rest of the caller's work without it.
        if context.connection is not None and (current := transaction_on(context.connection)) is not None:
            current.doom()

    def run_batch(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
        # SQLAlchemy would take the count of the first statement for the result of all of them.
        if BATCH not in context.execution_options:
            return False
        driver.declare(cursor, context.compiled.positiontup or ())
        cursor.execute(statement, parameters)
        while cursor.description is None and cursor.nextset():
            pass
        return True

    _open.add(engine)
    if engine.pool not in _prepared:
        _prepared.add(engine.pool)
        event.listen(engine, "checkout", start)
        event.listen(engine, "handle_error", notice)
        if driver.takes_batches:
            event.listen(engine, "do_execute", run_batch)


def _start_session(dialect: Dialect, cursor: Any, statement: str) -> None:
    """SQLite does not wait, whatever its time-out, while another connection switches the log of a new file on."""
    limit = time.monotonic() + SWITCH_SECONDS
    while True:
        try:
            cursor.execute(statement)
            return
        except Exception as error:
            if dialect.fault(error) is not Fault.VICTIM or time.monotonic() > limit:
                raise
            time.sleep(0.01)


def isolation_level(engine: Engine, connection: Any) -> Any:
    """The level that a driver's connection is at."""
    if engine.dialect.detect_autocommit_setting(connection):
        return AUTOCOMMIT
    try:
        return engine.dialect.get_isolation_level(connection)
    except NotImplementedError as error:
        # This is how SQLAlchemy reports that SQL Server, or the connection to it, failed, or has no such view.
        if error.__cause__ is None:
            return _UNKNOWN
        raise error.__cause__ from None


def _make_file(dialect: Any, record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
    """Create the file for its owner alone: SQLite gives its log the same mode."""
    path = Path(arguments[0])
    try:
        make_private_folder(path.parent)
    except OSError as error:
        raise DatabaseUnavailableError(
            f"the folder of {path} cannot be created: {error.strerror}; choose another path"
        ) from error
    # A file that cannot be created is reported by SQLite; one that can only be read is opened for that.
    with suppress(OSError):
        make_private_file(path)


def _leave_to_parent() -> None:
    """After a fork the sockets belong to the parent: the child keeps its pools open and does not use them."""
    for engine in list(_open):
        _of_parents.append(engine.pool)
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_leave_to_parent)
