"""Transactions on one database: the only module that runs a statement."""

from __future__ import annotations

import contextlib
import random
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyodbc

from queue_pipeline.transport.addressing import QueueTable
from queue_pipeline.transport.backoff import Backoff
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Dialect
from queue_pipeline.transport.dialects import DIALECTS, OdbcPostgreSql
from queue_pipeline.transport.dialects.odbc import open_odbc
from queue_pipeline.transport.errors import (
    ConfigurationError,
    DatabaseError,
    DatabaseUnavailableError,
    DoomedTransactionError,
    LayoutChangedError,
    QueueNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.transport.faults import Fault, translate
from queue_pipeline.transport.pool import ConnectionPool
from queue_pipeline.transport.statements import Command, load_statement

T = TypeVar("T")
Connect = Callable[[], Any]

_OWN_ERRORS = (pyodbc.Error, sqlite3.Error)
TRIES = 6
_VICTIM_BACKOFF = Backoff(first=0.02, longest=1.0)


def driver_errors() -> tuple[type[BaseException], ...]:
    """What drivers raise: psycopg's too, once it was loaded."""
    # Without an Error it is being loaded, by another thread.
    psycopg_error = getattr(sys.modules.get("psycopg"), "Error", None)
    return _OWN_ERRORS if psycopg_error is None else (*_OWN_ERRORS, psycopg_error)


class CommitUnknownError(DatabaseUnavailableError):
    """The connection broke while committing: the work is either wholly done or wholly undone."""


class Transaction:
    """Statements on one connection, committed or rolled back together by whoever opened it."""

    def __init__(self, database: Database, connection: Any) -> None:
        self._database = database
        self.connection = connection
        """The DB-API connection, for the caller's own statements in the same transaction."""
        self.doomed = False

    def rows(self, command: Command | str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Run a statement and return the rows of its first result, with every result read to the end.

        An error that the server raises after the first row would otherwise go unseen, and be committed over.
        """
        return self._run(command, parameters)[0]

    def execute(self, command: Command | str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement for its effect."""
        self._run(command, parameters)

    def count(self, command: Command | str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement and return the number that it selects, else the number of rows that it touched."""
        rows, touched = self._run(command, parameters)
        return int(rows[0][0]) if rows else max(touched, 0)

    def execute_many(self, command: Command, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each of many rows, inside the driver."""
        with self._cursor(command) as cursor:
            cursor.executemany(command.text, rows)

    def copy(self, command: Command, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows by a binary COPY, where the dialect copies; `types` are those of the columns."""
        with self._cursor(command) as cursor, cursor.copy(command.text) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Let the caller run statements of its own, and doom the transaction if one of them ended it unnoticed.

        A failed statement ends the transaction on the server (PostgreSQL, SQL Server with XACT_ABORT). A caller that
        ignores the error would then commit nothing, or only what came after it.
        """
        dialect, mark = self._database.dialect, f"queue_pipeline:{uuid.uuid4()}"
        dialect.mark_scope(self, mark)
        yield
        if not self.doomed:
            with contextlib.suppress(DatabaseError):
                self.doomed = not dialect.scope_is_alive(self, mark)

    def _run(self, command: Command | str, parameters: Sequence[Any]) -> tuple[list[Any], int]:
        text = command if isinstance(command, str) else command.text
        with self._cursor(command) as cursor:
            cursor.execute(text, parameters)
            touched = cursor.rowcount
            # psqlodbc gives a RETURNING clause that yields nothing no result set at all.
            rows = cursor.fetchall() if cursor.description is not None else []
            next_set = getattr(cursor, "nextset", None)
            while next_set is not None and next_set():
                if cursor.description is not None:
                    rows = rows or cursor.fetchall()
            return rows, touched

    @contextlib.contextmanager
    def _cursor(self, command: Command | str) -> Iterator[Any]:
        own = isinstance(command, Command)
        with (
            self._errors(command),
            contextlib.closing(self._database.dialect.cursor(self.connection, own=own)) as cursor,
        ):
            yield cursor

    @contextlib.contextmanager
    def _errors(self, command: Command | str) -> Iterator[None]:
        try:
            yield
        except driver_errors() as error:
            self.doomed = True
            self._database.shapes.forget_if_changed(error)
            about = command if isinstance(command, Command) else Command(command)
            raise self._database.translate(error, about.queue, about.table) from error


class Shapes:
    """The columns of the queue tables used so far, where tables of several versions are about."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._types: dict[str, dict[str, str]] = {}

    def columns(self, transaction: Transaction, queue: QueueTable) -> frozenset[str]:
        """The lower-case names of a queue table's columns; empty where every table is alike."""
        return frozenset(self._look(transaction, queue))

    def has_ascii_headers(self, transaction: Transaction, queue: QueueTable) -> bool:
        """Whether the table is so old that its Headers column loses every character beyond its code page."""
        return self._look(transaction, queue).get("headers") == "varchar"

    def _look(self, transaction: Transaction, queue: QueueTable) -> dict[str, str]:
        dialect = self._database.dialect
        if not dialect.inspects_columns:
            return {}
        known = self._types.get(queue.qualified)
        if known is None:
            rows = transaction.rows(dialect.statement("columns", queue=queue))
            if not rows:
                raise QueueNotFoundError(queue.canonical)
            known = {str(name).lower(): str(kind).lower() for name, kind, *_ in rows}
            self._types[queue.qualified] = known
        return known

    def forget_if_changed(self, error: BaseException) -> None:
        """Look again next time, after an error that says that a column came or went."""
        if self._database.dialect.fault(error) is Fault.LAYOUT:
            self._types.clear()


class Database:
    """A database with its dialect and its pool; opened on first use."""

    def __init__(self, url: DatabaseUrl, connect: Connect | None = None, dialect: Dialect | None = None) -> None:
        self.url = url
        self._connect = connect
        self._dialect = dialect or _dialect_of(url)
        self._pool = ConnectionPool(self._open, self._answers)
        self.shapes = Shapes(self)
        self._catalog: str | None = url.database if url.scheme == "mssql" else None

    @property
    def dialect(self) -> Dialect:
        """The dialect; for an `odbc:` setting the driver is asked once."""
        if self._dialect is None:
            connection = self._first_connection()
            try:
                self._dialect = _dialect_of_server(connection)
            finally:
                connection.close()
        return self._dialect

    @property
    def catalog(self) -> str | None:
        """The database that the connection is in, where addresses name it."""
        if self._catalog is None and self.dialect.has_catalogs:
            with self.transaction(write=False) as transaction:
                self._catalog = str(transaction.rows(self.dialect.statement("catalog"))[0][0])
        return self._catalog

    @contextlib.contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[Transaction]:
        """A transaction at READ COMMITTED: committed when the block ends, rolled back when it raises."""
        connection = self._pool.take()
        keep = False
        try:
            self._begin(connection, write=write)
            transaction = Transaction(self, connection)
            try:
                yield transaction
            except BaseException:
                keep = self._roll_back(connection)
                raise
            if transaction.doomed:
                keep = self._roll_back(connection)
                raise DoomedTransactionError(
                    "a statement failed inside the transaction and its error was ignored; everything was rolled back"
                )
            self._commit(connection)
            keep = True
        finally:
            if keep:
                self._pool.give_back(connection)
            else:
                self._pool.discard(connection)

    def run(self, work: Callable[[Transaction], T], *, write: bool = True) -> T:
        """Do `work` in a transaction of its own, again from the start when the database picked it as a victim."""
        for attempt in range(1, TRIES + 1):
            try:
                with self.transaction(write=write) as transaction:
                    return work(transaction)
            except (TransientDatabaseError, LayoutChangedError):
                if attempt == TRIES:
                    raise
            time.sleep(_VICTIM_BACKOFF.delay(attempt) * random.uniform(0.5, 1.5))
        raise AssertionError("unreachable")

    def enlist(self, connection: Any) -> Transaction:
        """The caller's own open connection as a transaction that only the caller ends."""
        return Transaction(self, connection)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.close()

    def translate(self, error: BaseException, queue: str | None = None, table: str | None = None) -> Exception:
        """Our error for a driver's error."""
        fault = self._dialect.fault(error) if self._dialect else Fault.CONNECTION
        return translate(fault, error, queue=queue, where=str(self.url), table=table, secrets=self.url.secrets())

    def _open(self) -> Any:
        try:
            if self._connect is None:
                connection = self.dialect.connect(self.url)
            else:
                connection = self._connect()
                self._start_session(connection)
        except driver_errors() as error:
            raise self._cannot_connect(error) from None
        return connection

    def _start_session(self, connection: Any) -> None:
        """Give a connection from the caller's factory the session settings that the statements rely on."""
        for statement in self.dialect.split_script(load_statement(self.dialect.name, "session")):
            connection.execute(statement)
        connection.commit()

    def _first_connection(self) -> Any:
        try:
            if self._connect is not None:
                return self._connect()
            return open_odbc(self.url.odbc.get_secret_value() if self.url.odbc else "")
        except driver_errors() as error:
            raise self._cannot_connect(error) from None

    def _cannot_connect(self, error: BaseException) -> Exception:
        # Before the first connection of an odbc: setting nobody knows which of the two it is: ask both.
        dialects = [self._dialect] if self._dialect else [OdbcPostgreSql(), DIALECTS["sqlserver"]]
        telling = (Fault.LOGIN, Fault.MISSING_DATABASE, Fault.VICTIM, Fault.PERMISSION)
        faults = [dialect.fault(error) for dialect in dialects]
        fault = next((fault for fault in faults if fault in telling), Fault.CONNECTION)
        return translate(fault, error, queue=None, where=str(self.url), secrets=self.url.secrets())

    def _answers(self, connection: Any) -> bool:
        try:
            return self.dialect.answers(connection)
        except driver_errors():
            return False

    def _begin(self, connection: Any, *, write: bool) -> None:
        try:
            self.dialect.begin(connection, write=write)
        except driver_errors() as error:
            raise self.translate(error) from error

    def _commit(self, connection: Any) -> None:
        try:
            connection.commit()
        except driver_errors() as error:
            if self.dialect.fault(error) is Fault.VICTIM:
                self._roll_back(connection)
                raise self.translate(error) from error
            raise CommitUnknownError(
                f"{self.url}: the connection broke while committing; the work is wholly done or wholly undone"
            ) from error

    def _roll_back(self, connection: Any) -> bool:
        try:
            connection.rollback()
        except driver_errors():
            return False
        return True


def _dialect_of(url: DatabaseUrl) -> Dialect | None:
    names = {"sqlite": "sqlite", "postgresql": "postgresql", "mssql": "sqlserver"}
    if url.scheme == "postgresql+pyodbc":
        return OdbcPostgreSql()
    return DIALECTS[names[url.scheme]] if url.scheme in names else None


def _dialect_of_server(connection: Any) -> Dialect:
    product = str(connection.getinfo(pyodbc.SQL_DBMS_NAME))
    if "postgres" in product.lower():
        return OdbcPostgreSql()
    if "sql server" in product.lower():
        return DIALECTS["sqlserver"]
    raise ConfigurationError(
        f"the ODBC driver speaks to {product!r}; only SQL Server and PostgreSQL are supported that way"
    )
