"""A database: its engine, its transactions, and the retries of those that were picked as victims."""

from __future__ import annotations

import contextlib
import functools
import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from queue_pipeline.errors import (
    CommitUnknownError,
    ConfigurationError,
    DatabaseUnavailableError,
    DoomedTransactionError,
    DriverMissingError,
    LayoutChangedError,
    TransientDatabaseError,
)
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.database.dialects.lookup import dialect_of
from queue_pipeline.transport.database.dialects.shapes import Shapes
from queue_pipeline.transport.database.faults import Fault, driver_message, translate
from queue_pipeline.transport.database.setting import database_url, default_database_url, secrets, shown
from queue_pipeline.transport.database.transaction import CURRENT, Transaction, transaction_on, unwrapped

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, TextClause

    from queue_pipeline.transport.database.command import Command
    from queue_pipeline.transport.database.drivers import Driver

T = TypeVar("T")

TRIES = 6
PATIENCE_SECONDS = 60.0
"""After this long a victim is not tried again; a heartbeat renews a claim of the default lease every 100 s."""
_VICTIM_BACKOFF = Backoff(first=0.02, longest=1.0)
_KEPT_STATEMENTS = 1_000
# The words of libpq and of Microsoft's driver, which come under the state of a server that cannot be reached.
_BAD_OPTION = re.compile(
    r"invalid \S+ value|invalid integer value|bad value for |invalid port number|unrecognized configuration parameter|"
    r"definition of service|Invalid value specified for connection string attribute"
)
# Those of the driver manager.
_NO_DRIVER = re.compile(r"Can't open lib|Data source name not found")
_CHECKED = "queue_pipeline.isolation"


class Database:
    """A database with its dialect and its engine, which is made on first use; or the caller's own engine."""

    def __init__(self, database: str | URL | Engine | None = None) -> None:
        # SQLAlchemy is loaded with the first database, and not by the command line's --help.
        from sqlalchemy import Engine

        self._given = database if isinstance(database, Engine) else None
        self._engine: Engine | None = None
        if isinstance(database, Engine):
            self.url = database.url
        else:
            self.url = default_database_url() if database is None else database_url(database)
        self.dialect = dialect_of(self.url)
        self.is_own = self._given is None
        """Whether the engine was made here, of the setting alone."""
        self.shapes = Shapes(self.dialect)
        self._lock = threading.Lock()
        self.clause = functools.lru_cache(maxsize=_KEPT_STATEMENTS)(self._clause)
        self.compiled = functools.lru_cache(maxsize=_KEPT_STATEMENTS)(self._compiled)

    def __str__(self) -> str:
        return shown(self.url)

    @property
    def engine(self) -> Engine:
        """SQLAlchemy's engine."""
        if self._engine is None:
            from queue_pipeline.transport.database.drivers import driver_of
            from queue_pipeline.transport.database.engine import open_engine, prepare

            with self._lock:
                if self._engine is None:
                    engine = self._given if self._given is not None else open_engine(self.url)
                    prepare(engine, self.dialect, driver_of(engine), is_own=self.is_own)
                    self._engine = engine
        return self._engine

    @functools.cached_property
    def driver(self) -> Driver:
        """What the engine's driver does in bulk."""
        from queue_pipeline.transport.database.drivers import driver_of

        return driver_of(self.engine)

    @functools.cached_property
    def driver_errors(self) -> tuple[type[Any], ...]:
        """What the driver raises, through SQLAlchemy and by itself."""
        from sqlalchemy.exc import DBAPIError

        dbapi: Any = self.engine.dialect.dbapi
        return DBAPIError, dbapi.Error

    @functools.cached_property
    def catalog(self) -> str | None:
        """The database that the connection is in, where addresses name it."""
        if not self.dialect.has_catalogs or self.url.database:
            return self.url.database if self.dialect.has_catalogs else None
        with self.transaction(write=False) as transaction:
            return str(transaction.rows(self.dialect.statement("session.catalog"))[0][0])

    @contextlib.contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Transaction]:
        """A transaction at READ COMMITTED: committed when the block ends, rolled back when it raises."""
        connection = self._connect()
        try:
            transaction = self._begin(connection, write=write)
            connection.execution_options(**{CURRENT: transaction})
            try:
                yield transaction
            except BaseException:
                self._roll_back(connection)
                raise
            if transaction.doomed or not transaction.is_current:
                self._roll_back(connection)
                raise DoomedTransactionError(
                    "a statement failed inside the transaction and its error was ignored, or the transaction was ended "
                    "by a commit or rollback of the caller's own; what came afterwards was rolled back"
                )
            self._commit(connection)
        finally:
            with contextlib.suppress(*self.driver_errors):
                connection.close()

    def run(self, work: Callable[[Transaction], T], *, write: bool = True) -> T:
        """Do `work` in a transaction of its own, again from the start when the database picked it as a victim."""
        began = time.monotonic()
        for attempt in range(1, TRIES + 1):
            try:
                with self.transaction(write=write) as transaction:
                    return work(transaction)
            except (TransientDatabaseError, LayoutChangedError):
                if attempt == TRIES or time.monotonic() - began > PATIENCE_SECONDS:
                    raise
            except self.driver_errors as error:
                # Of a statement of the caller's own.
                if attempt == TRIES or self.dialect.fault(unwrapped(error)) is not Fault.VICTIM:
                    raise
            time.sleep(_VICTIM_BACKOFF.delay(attempt) * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    def rows(self, command: Command, /, **values: Any) -> list[Any]:
        """The rows of a statement that reads, in a transaction of its own."""
        return self.run(lambda own: own.rows(command, **values), write=False)

    def count(self, command: Command, /, **values: Any) -> int:
        """Run a statement that writes in a transaction of its own; what it returns as in `Transaction.count`."""
        return self.run(lambda own: own.count(command, **values))

    def enlist(self, connection: Connection) -> Transaction:
        """A connection as a transaction: one that was handed out here, or the caller's own, which only it ends."""
        from sqlalchemy import Connection

        if not isinstance(connection, Connection):
            raise ConfigurationError(
                f"a {type(connection).__name__} cannot be joined; give a connection of SQLAlchemy's "
                "(for a session: session.connection())"
            )
        if connection.closed:
            raise ConfigurationError(f"{self}: the connection is closed; use it before its block ends")
        if connection.invalidated and connection.get_transaction() is not None:
            raise DatabaseUnavailableError(f"{self}: the connection broke inside the transaction; begin another one")
        theirs, ours = connection.dialect, self.engine.dialect
        if (theirs.name, theirs.driver) != (ours.name, ours.driver):
            raise ConfigurationError(
                f"{self}: a connection of {theirs.name}+{theirs.driver} cannot be joined, it must be one of "
                f"{ours.name}+{ours.driver}; give the transport the engine that the connection is of"
            )
        try:
            if (current := transaction_on(connection)) is not None:
                return current
            self._check_level(connection)
        except self.driver_errors as error:
            original = unwrapped(error)
            self.notice_loss(connection, original)
            raise self.translate(original) from error
        return Transaction(self, connection)

    def notice_loss(self, connection: Connection, error: BaseException) -> None:
        """Mark a connection as lost for SQLAlchemy, which does not know every driver error that says so."""
        if self.dialect.fault(error) is Fault.CONNECTION and not connection.closed:
            connection.invalidate(error)

    def close(self) -> None:
        """Close all connections, those in use when they come back; those of the caller's engine stay."""
        if self.is_own and self._engine is not None:
            from queue_pipeline.transport.database.engine import close_engine

            close_engine(self._engine)

    def translate(self, error: BaseException, queue: str | None = None, table: str | None = None) -> Exception:
        """Our error for a driver's error."""
        fault = self.dialect.fault(error)
        return translate(fault, error, queue=queue, where=str(self), table=table, secrets=secrets(self.url))

    def _clause(self, statement: str) -> TextClause:
        from sqlalchemy import text

        return text(statement)

    def _compiled(self, statement: str) -> tuple[str, list[str]]:
        from sqlalchemy import text

        compiled = text(statement).compile(dialect=self.engine.dialect)
        return str(compiled), list(getattr(compiled, "positiontup", None) or ())

    def _connect(self) -> Connection:
        from sqlalchemy.exc import TimeoutError as NoneFreeError

        engine = self.engine
        try:
            return engine.connect()
        except self.driver_errors as error:
            original = unwrapped(error)
            raise self._cannot_connect(original) from None
        except NoneFreeError as error:
            raise DatabaseUnavailableError(
                f"{self}: no connection of the engine is free ({error}); give the engine a larger pool"
            ) from None

    def _cannot_connect(self, error: Any) -> Exception:
        fault = self.dialect.fault(error)
        words = driver_message(error, secrets(self.url))
        dbapi: Any = self.engine.dialect.dbapi
        if (isinstance(error, dbapi.ProgrammingError) and fault is Fault.OTHER) or _BAD_OPTION.search(words):
            return ConfigurationError(f"{self}: the driver refuses an option of the setting: {words}")
        if _NO_DRIVER.search(words):
            return DriverMissingError(f"{self}: {words}; install the ODBC driver of the setting, or name another")
        telling = (Fault.LOGIN, Fault.MISSING_DATABASE, Fault.VICTIM, Fault.LOCKED, Fault.PERMISSION, Fault.RESOURCES)
        fault = fault if fault in telling else Fault.CONNECTION
        return translate(fault, error, queue=None, where=str(self), secrets=secrets(self.url))

    def _begin(self, connection: Connection, *, write: bool) -> Transaction:
        try:
            if not self.is_own:
                self._check_level(connection)
            if not connection.in_transaction():
                connection.begin()
            self.dialect.begin(connection, write=write)
        except self.driver_errors as error:
            raise self.translate(unwrapped(error)) from error
        return Transaction(self, connection)

    def _check_level(self, connection: Connection) -> None:
        """Refuse a connection on which statements commit by themselves, or do not see each other's commits."""
        if not self.dialect.locks_rows:
            return
        from queue_pipeline.transport.database.engine import AUTOCOMMIT, NEEDED_LEVEL, isolation_level

        driver_connection: Any = connection.connection.dbapi_connection
        # Of this connection alone, or of its engine; without one every use of the driver's connection is at its level.
        option = connection.get_execution_options().get("isolation_level")
        if connection.dialect.detect_autocommit_setting(driver_connection):
            level = AUTOCOMMIT
        elif option is not None:
            level = str(option).replace("_", " ").upper()
        elif connection.info.get(_CHECKED):
            return
        else:
            level = isolation_level(connection.engine, driver_connection)
            connection.info[_CHECKED] = level == NEEDED_LEVEL
        if level != NEEDED_LEVEL:
            raise ConfigurationError(
                f"{self}: the engine's connections are at {level}, and queues need {NEEDED_LEVEL}; "
                f'give engine.execution_options(isolation_level="{NEEDED_LEVEL}")'
            )

    def _commit(self, connection: Connection) -> None:
        from sqlalchemy.exc import IntegrityError

        try:
            connection.commit()
        except self.driver_errors as error:
            original = unwrapped(error)
            # A constraint, or a trigger, that is checked late refuses the commit: nothing is left open.
            if self.dialect.fault(original) in (Fault.VICTIM, Fault.RAISED) or isinstance(error, IntegrityError):
                self._roll_back(connection)
                raise self.translate(original) from error
            connection.invalidate()
            raise CommitUnknownError(
                f"{self}: the connection broke while committing; the work is wholly done or wholly undone"
            ) from error

    def _roll_back(self, connection: Connection) -> None:
        try:
            connection.rollback()
        except self.driver_errors:
            connection.invalidate()
