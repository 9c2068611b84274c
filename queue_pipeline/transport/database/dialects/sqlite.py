"""SQLite 3.35 and later: the embedded default, through the standard library."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, cast

from queue_pipeline.transport.addresses import address
from queue_pipeline.transport.database.dialects.dialect import Bounds, ColumnType, Dialect, Taken
from queue_pipeline.transport.database.faults import Fault

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from queue_pipeline.transport.addresses.queues import ClaimTables
    from queue_pipeline.transport.database.command import Command
    from queue_pipeline.transport.database.transaction import Transaction

FAULTS = {
    sqlite3.SQLITE_BUSY: Fault.VICTIM,
    sqlite3.SQLITE_LOCKED: Fault.VICTIM,
    sqlite3.SQLITE_CANTOPEN: Fault.CONNECTION,
    sqlite3.SQLITE_IOERR: Fault.CONNECTION,
    sqlite3.SQLITE_NOTADB: Fault.CONNECTION,
    sqlite3.SQLITE_FULL: Fault.RESOURCES,
    sqlite3.SQLITE_NOMEM: Fault.RESOURCES,
    sqlite3.SQLITE_CORRUPT: Fault.RESOURCES,
    sqlite3.SQLITE_READONLY: Fault.PERMISSION,
    sqlite3.SQLITE_PERM: Fault.PERMISSION,
    sqlite3.SQLITE_AUTH: Fault.PERMISSION,
}


class Sqlite(Dialect):
    """One writer at a time, any number of readers (write-ahead log)."""

    name: ClassVar[str] = "sqlite"
    # It stores any value in any column; only the rowid is different from others.
    column_types: ClassVar[Mapping[str, ColumnType]] = {
        "rowversion": ColumnType(
            "integer primary key", "messages are not numbered when sent, and have no order when received"
        ),
    }
    default_schema: ClassVar[str | None] = None
    locks_rows: ClassVar[bool] = False
    parse = staticmethod(address.parse_sqlite)
    format = staticmethod(address.format_sqlite)
    quote = staticmethod(address.double_quote)

    def session(self) -> list[str]:
        """One pragma at a time."""
        return self.split_script(super().session()[0])

    def begin(self, connection: Connection, *, write: bool) -> None:
        """Take the write lock at once when writing: an upgrade later could only fail."""
        if not in_transaction(connection):
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLite's result code, and by text where one code covers several cases."""
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in FAULTS:
            return FAULTS[code & 0xFF]
        words = str(error)
        if words.startswith("no such table"):
            return Fault.MISSING_TABLE
        if words.startswith("no such column") or "has no column named" in words:
            return Fault.MISSING_COLUMN
        if words.startswith("ON CONFLICT clause does not match"):
            return Fault.NO_UNIQUE_INDEX
        if "already exists" in words or words.startswith("duplicate column name"):
            return Fault.EXISTS
        return Fault.CONNECTION if "closed database" in words else Fault.OTHER

    def qualify(self, address_: address.QueueAddress) -> str:
        """The table's quoted name; a schema from a default is ignored, SQLite has none."""
        return self.quote(address_.table)

    def stored(self, value: Any) -> Any:
        """Instants and dates as ISO text; decimals as integers or floats where these are exact, else as text.

        A TEXT column keeps that text to the last digit; a NUMERIC column, and adding up, convert it to a float.
        """
        if isinstance(value, Decimal):
            whole = value.to_integral_value()
            if whole == value and abs(whole) < 2**63:
                return int(whole)
            return float(value) if Decimal(float(value)) == value else str(value)
        if isinstance(value, datetime):
            return value.isoformat(sep=" ", timespec="microseconds")
        return value.isoformat() if isinstance(value, date) else value

    def as_read(self, text: str) -> bytes:
        """Bytes, which may be no UTF-8; see `SqliteDriver.start`."""
        return text.encode(errors="surrogateescape")

    def scope_is_alive(self, transaction: Transaction, mark: str) -> bool:
        """A failed statement is undone alone, but a few failures (a full disk) end the transaction."""
        return in_transaction(transaction.connection)

    def take_claim(
        self, transaction: Transaction, take: Command, tables: ClaimTables, claim_id: str, bounds: Bounds
    ) -> Taken:
        """Copy, then delete: SQLite cannot insert what a DELETE returns."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        delete, drop_expired, sizes = (
            self.statement(f"nservicebus/claim_messages.{name}", **names)
            for name in ("take_delete", "drop_expired", "sizes")
        )
        taken = transaction.count(take, **bounds._asdict(), claim_id=claim_id)
        transaction.execute(delete, claim_id=claim_id)
        transaction.execute(drop_expired, claim_id=claim_id)
        messages, size, first = transaction.rows(sizes, claim_id=claim_id)[0]
        return Taken(taken, messages, size, first)

    def extend_in_place(self, transaction: Transaction, tables: ClaimTables, claim_id: str, lease: int) -> None:
        """Use one time for both statements: the clock differs between them."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        end = transaction.rows(self.statement("nginn/claim_messages.lease_end", **names), lease=lease)[0][0]
        for name in ("extend", "extended"):
            transaction.execute(
                self.statement(f"nginn/claim_messages.{name}", **names), lease_end=end, claim_id=claim_id
            )


def in_transaction(connection: Connection) -> bool:
    """Whether the driver's connection has begun one."""
    return bool(cast("Any", connection.connection.dbapi_connection).in_transaction)
