"""SQLite 3.35 and later: the embedded default, through the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from queue_pipeline.transport import address
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Bounds, Dialect, Row, Taken
from queue_pipeline.transport.errors import DatabaseUnavailableError
from queue_pipeline.transport.faults import Fault
from queue_pipeline.transport.row_form import RowForm, values_command
from queue_pipeline.transport.statements import Command, load_statement

if TYPE_CHECKING:
    from queue_pipeline.transport.addressing import ClaimTables, QueueTable
    from queue_pipeline.transport.database import Transaction

BUSY_TIMEOUT_SECONDS = 30.0


class Sqlite(Dialect):
    """One writer at a time, any number of readers (write-ahead log)."""

    name: ClassVar[str] = "sqlite"
    default_schema: ClassVar[str | None] = None
    locks_rows: ClassVar[bool] = False

    def connect(self, url: DatabaseUrl) -> Any:
        """Open the file, creating it and its folder when they are missing."""
        path = Path(url.path or "")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseUnavailableError(
                f"the folder of {path} cannot be created: {error.strerror}; choose another path"
            ) from error
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, check_same_thread=False)
        for pragma in self.split_script(load_statement(self.name, "session")):
            connection.execute(pragma)
        return connection

    def begin(self, connection: Any, *, write: bool) -> None:
        """Take the write lock at once when writing: an upgrade later could only fail."""
        connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLite's result code, and by text where one code covers several cases."""
        code = getattr(error, "sqlite_errorcode", None)
        primary = None if code is None else code & 0xFF
        if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return Fault.VICTIM
        if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB):
            return Fault.CONNECTION
        if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
            return Fault.PERMISSION
        words = str(error)
        if words.startswith("no such table"):
            return Fault.MISSING_TABLE
        if words.startswith("ON CONFLICT clause does not match"):
            return Fault.NO_UNIQUE_INDEX
        if "already exists" in words or words.startswith("duplicate column name"):
            return Fault.EXISTS
        return Fault.CONNECTION if "closed database" in words else Fault.OTHER

    def parse(self, text: str) -> address.QueueAddress:
        """Read a table name."""
        return address.parse_sqlite(text)

    def format(self, address_: address.QueueAddress) -> str:
        """Write a table name."""
        return address.format_sqlite(address_)

    def quote(self, name: str) -> str:
        """Quote an identifier."""
        return address.double_quote(name)

    def qualify(self, address_: address.QueueAddress) -> str:
        """The table's quoted name; a schema from a default is ignored, SQLite has none."""
        return self.quote(address_.table)

    def insert(
        self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Sequence[Any] = ()
    ) -> None:
        """One prepared statement, run for each row inside the library."""
        transaction.execute_many(command, ((*common, *row) for row in rows) if common else rows)

    def write_rows(self, transaction: Transaction, form: RowForm, rows: Sequence[Sequence[Any]]) -> None:
        """One prepared statement, run for each row inside the library."""
        transaction.execute_many(values_command(self, form), ([_stored(value) for value in row] for row in rows))

    def scope_is_alive(self, transaction: Transaction, mark: str) -> bool:
        """A failed statement is undone alone, but a few failures (a full disk) end the transaction."""
        return bool(transaction.connection.in_transaction)

    def take_claim(
        self, transaction: Transaction, tables: ClaimTables, columns: frozenset[str], claim_id: str, bounds: Bounds
    ) -> Taken:
        """Copy, then delete: SQLite cannot insert what a DELETE returns."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        taken = transaction.count(
            self.statement("nservicebus/claim_take", **names), (bounds.messages, bounds.bytes, claim_id)
        )
        transaction.execute(self.statement("nservicebus/claim_take_delete", **names), (claim_id,))
        transaction.execute(self.statement("nservicebus/claim_drop_expired", **names), (claim_id,))
        whole = (claim_id, 0, 2**63 - 1)
        messages, size, first = transaction.rows(self.statement("nservicebus/claim_sizes", **names), whole)[0]
        return Taken(taken, messages, size, first)

    def extend_in_place(self, transaction: Transaction, tables: ClaimTables, claim_id: str, lease: int) -> None:
        """One moment for both halves: the clock goes on between two statements here."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        end = transaction.rows(self.statement("nginn/lease_end", **names), (lease,))[0][0]
        transaction.execute(self.statement("nginn/claim_extend", **names), (end, claim_id))
        transaction.execute(self.statement("nginn/claim_extended", **names), (end, claim_id))

    def move_due(
        self, transaction: Transaction, queue: QueueTable, delayed: QueueTable, columns: frozenset[str], limit: int
    ) -> int:
        """Copy, then delete as many."""
        names = {"queue": queue, "delayed": delayed}
        moved = transaction.count(self.statement("nservicebus/move_due", **names), (limit,))
        transaction.execute(self.statement("nservicebus/move_due_delete", **names), (moved,))
        return moved


def _stored(value: Any) -> Any:
    """A value as SQLite has it: instants and dates as ISO text, which sorts and which its functions read.

    It has no exact decimals: one that an integer or a float holds exactly becomes that, any other text, which a column
    of type TEXT keeps to the last digit; a NUMERIC column, and adding up, make floats of it.
    """
    if isinstance(value, Decimal):
        whole = value.to_integral_value()
        if whole == value and abs(whole) < 2**63:
            return int(whole)
        return float(value) if Decimal(float(value)) == value else str(value)
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    return value.isoformat() if isinstance(value, date) else value
