"""A transaction: the only module that runs a statement."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from queue_pipeline.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    DuplicateKeyError,
    TransientDatabaseError,
)
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import Row

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from queue_pipeline.transport.database.database import Database


class Transaction:
    """Statements on one connection, committed or rolled back together by the code that opened it."""

    def __init__(self, database: Database, connection: Connection) -> None:
        self._database = database
        self.connection = connection
        """SQLAlchemy's connection, for the caller's own statements in the same transaction."""
        self.doomed = False
        self._begun = connection.get_transaction()

    @property
    def is_current(self) -> bool:
        """Whether the connection is still in the transaction that was begun, and not in a later one."""
        return not self.connection.invalidated and self.connection.get_transaction() is self._begun

    def doom(self) -> None:
        """Let nothing of it be committed; a savepoint of the caller's can undo what failed in it."""
        self.doomed = self.doomed or not self.connection.in_nested_transaction()

    def rows(self, command: Command, /, **values: Any) -> list[Any]:
        """Run a statement and return the rows of its first result. All are read: a later one may be an error."""
        return self._run(command, values)[0]

    def execute(self, command: Command, /, **values: Any) -> None:
        """Run a statement for its effect."""
        self._run(command, values)

    def count(self, command: Command, /, **values: Any) -> int:
        """Run a statement and return the number that it selects, else the number of rows that it touched."""
        rows, touched = self._run(command, values)
        return int(rows[0][0]) if rows else max(touched, 0)

    def insert(self, command: Command, rows: Iterable[Row], /, **common: Any) -> None:
        """Write many messages; `common` are values that are the same for all rows."""
        self._database.driver.insert(self, command, rows, common)

    def read(self, command: Command, /, **values: Any) -> Sequence[Sequence[Any]]:
        """The rows of a statement that reads many messages, in the fastest way that the driver knows."""
        command.check(values)
        return self._database.driver.read(self, command, values)

    def copy(self, command: Command, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write rows by a binary COPY, where the driver copies; `types` are those of the columns."""
        self._database.driver.copy(self, command, types, rows)

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Let the caller run statements of its own, and doom the transaction if one of them ended it unnoticed.

        A failed statement ends the transaction on PostgreSQL and SQL Server; a caller that ignores the error would
        commit only what came after it.
        """
        dialect, mark = self._database.dialect, f"queue_pipeline:{uuid.uuid4()}"
        dialect.mark_scope(self, mark)
        yield
        if not self.doomed:
            with contextlib.suppress(DatabaseError):
                self.doomed = not (self.is_current and dialect.scope_is_alive(self, mark))

    def compiled(self, command: Command) -> tuple[str, list[str]]:
        """A statement as the driver takes it, and the names of its values in order where they have one."""
        return self._database.compiled(command.text)

    @contextlib.contextmanager
    def raw(self, command: Command) -> Iterator[Any]:
        """The driver's own connection, for what SQLAlchemy does not do; errors are ours."""
        with self._errors(command):
            if not self.connection.in_transaction():
                # SQLAlchemy does not see what the driver begins, and a commit of the caller's would do nothing.
                self.connection.begin()
            yield self.connection.connection.driver_connection

    def _run(self, command: Command, values: Mapping[str, Any]) -> tuple[list[Any], int]:
        command.check(values)
        with self._errors(command):
            result = self.connection.execute(self._database.clause(command.text), values, execution_options=_OPTIONS)
            if not result.returns_rows:
                return [], result.rowcount
            rows, touched = _read(result.cursor)
            result.close()
            return rows, touched

    @contextlib.contextmanager
    def _errors(self, command: Command) -> Iterator[None]:
        if self.connection.invalidated:
            raise DatabaseUnavailableError(f"{self._database}: the connection broke inside the transaction")
        try:
            yield
        except self._database.driver_errors as error:
            original = unwrapped(error)
            self.doom()
            self._database.shapes.forget_if_changed(original)
            self._database.notice_loss(self.connection, original)
            raise self._database.translate(original, command.queue, command.table) from error
        except UnicodeError as error:
            # The driver's, before or after the server had the statement: half a surrogate pair in a text.
            self.doom()
            subject = f"queue {command.queue}: " if command.queue else ""
            raise DatabaseError(f"{subject}a text that is written or read is not Unicode: {error}") from error


@contextlib.contextmanager
def repeated_if_added() -> Iterator[None]:
    """Have the transaction repeated if another process added the row between a statement's look and its insert."""
    try:
        yield
    except DuplicateKeyError as error:
        raise TransientDatabaseError(str(error)) from error


BATCH = "queue_pipeline_batch"
"""Marks our statements, which may be several in one."""
_OPTIONS = {"preserve_rowcount": True, BATCH: True}
CURRENT = "queue_pipeline_transaction"
"""The execution option of a connection that holds the transaction which `Database.transaction` began on it."""


def transaction_on(connection: Connection) -> Transaction | None:
    """The transaction of ours that was begun on a connection, if there is one."""
    current: Transaction | None = connection.get_execution_options().get(CURRENT)
    return current


def _read(cursor: Any) -> tuple[list[Any], int]:
    touched = cursor.rowcount
    # psqlodbc gives a RETURNING clause that yields nothing no result set at all.
    rows = cursor.fetchall() if cursor.description is not None else []
    next_set = getattr(cursor, "nextset", None)
    while next_set is not None and next_set():
        if cursor.description is not None:
            rows = rows or cursor.fetchall()
    return rows, touched


def unwrapped(error: BaseException) -> BaseException:
    """The driver's own error, without SQLAlchemy's around it."""
    return getattr(error, "orig", None) or error
