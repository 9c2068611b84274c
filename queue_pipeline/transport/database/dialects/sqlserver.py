"""SQL Server 2017 and later, through Microsoft's ODBC driver or FreeTDS."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses import address
from queue_pipeline.transport.database.dialects.dialect import NO_BYTES, NO_UUID, Bounds, ColumnType, Dialect, Taken
from queue_pipeline.transport.database.faults import Fault, native_number

if TYPE_CHECKING:
    from queue_pipeline.transport.addresses.queues import ClaimTables
    from queue_pipeline.transport.database.command import Command
    from queue_pipeline.transport.database.transaction import Transaction

_NUMBERS = {
    # Deadlock, a read that data moved under; locks, memory and workers that a busy server lacks for a moment; a
    # snapshot that another session changed.
    Fault.VICTIM: (1205, 601, 1204, 701, 8645, 8651, 3960),
    Fault.LOCKED: (1222,),
    # Azure's throttling and failover; a replica that is no longer primary; a connection that was killed or broke.
    Fault.CONNECTION: (
        *(40197, 40501, 40540, 40143, 40613, 10928, 10929, 49918, 49919, 49920),
        *(4221, 976, 983, 596, 6005, 233, 64, 10053, 10054, 10060),
    ),
    # Log or file full, read-only database.
    Fault.RESOURCES: (9002, 1101, 1105, 3906),
    Fault.MISSING_TABLE: (208, 4902),
    Fault.MISSING_COLUMN: (207,),
    Fault.MISSING_SCHEMA: (2760,),
    Fault.MISSING_DATABASE: (4060, 911),
    Fault.DUPLICATE: (2601, 2627),
    Fault.EXISTS: (2714, 1913),
    Fault.PERMISSION: (229, 230, 262, 916),
    Fault.LOGIN: (18456,),
}
FAULTS = {number: fault for fault, numbers in _NUMBERS.items() for number in numbers}


class SqlServer(Dialect):
    """T-SQL."""

    name: ClassVar[str] = "sqlserver"
    column_types: ClassVar[Mapping[str, ColumnType]] = {
        "id": ColumnType("uniqueidentifier", NO_UUID),
        "expires": ColumnType(
            "datetime",
            "expired messages cannot be distinguished from others by the database's clock",
            frozenset({"datetime2", "smalldatetime"}),
        ),
        "headers": ColumnType(
            "nvarchar",
            "every character outside of the column's code page is stored as a question mark",
            codes={"varchar": "varchar_headers"},
        ),
        "body": ColumnType("varbinary", NO_BYTES),
        "rowversion": ColumnType("bigint", "every send fails for good when its last number is used"),
    }
    default_schema: ClassVar[str | None] = "dbo"
    has_catalogs: ClassVar[bool] = True
    # A statement that takes 5,000 row locks asks for the whole table, and would block every peer.
    rows_per_take: ClassVar[int] = 4_000
    longest_queue_name: ClassVar[int | None] = 120
    inspects_columns: ClassVar[bool] = True
    new_row: ClassVar[str] = "new"
    reads_heaps: ClassVar[bool] = True
    script_separator: ClassVar[str] = "\nGO\n"
    parse = staticmethod(address.parse_sqlserver)
    format = staticmethod(address.format_sqlserver)
    quote = staticmethod(address.bracket)

    def fault(self, error: BaseException) -> Fault:
        """Classify by the server's error number, then by SQLSTATE."""
        number = native_number(error)
        state = str(error.args[0]) if error.args else ""
        words = str(error)
        about_column = number in (207, 515) or "column" in words
        if about_column and any(name in words.lower() for name in ("recoverable", "correlationid", "replytoaddress")):
            return Fault.LAYOUT
        if number in FAULTS:
            return FAULTS[number]
        # Babelfish reports what is missing in PostgreSQL's words.
        if 'schema "' in words and "does not exist" in words:
            return Fault.MISSING_SCHEMA
        if 'column "' in words and "does not exist" in words:
            return Fault.MISSING_COLUMN
        if state == "42S02" or "Invalid object name" in words or ('relation "' in words and "does not exist" in words):
            return Fault.MISSING_TABLE
        if state == "40001":
            return Fault.VICTIM
        if state == "28000":
            return Fault.LOGIN
        if state.startswith("08") or state in ("HYT00", "HYT01"):
            return Fault.CONNECTION
        return Fault.OTHER

    def index_name(self, table: str, suffix: str) -> str:
        """Names of indexes belong to their table here."""
        return f"Index_{suffix}"

    def installer_lock(self, qualified: str) -> str:
        """An application lock belongs to one database; the reference names it after the qualified table."""
        return f"{qualified}_lock"[:255]

    def name_length(self, name: str) -> int:
        """Names are stored as UTF-16, and counted in its units."""
        return len(name.encode("utf-16-le")) // 2

    def check_table(self, table: str) -> None:
        """An `@` ends the table in an address; a `#` in front makes it temporary, gone with its connection."""
        super().check_table(table)
        if "@" in table:
            raise AddressError(f"queue {table!r}: a table's name cannot hold an @ in an address; choose another name")
        if table.startswith("#"):
            raise AddressError(f"queue {table!r}: a name that begins with # is a temporary table; choose another name")

    def literal(self, text: str) -> str:
        """A text as a Unicode string literal."""
        return "N" + super().literal(text)

    def split_script(self, text: str) -> list[str]:
        """T-SQL batches are separated by GO, as in every tool a DBA uses."""
        return [part.strip() for part in (text + "\n").split("\nGO\n") if part.strip()]

    def user_table_steps(self, *, merge: bool, changes: bool) -> tuple[str, ...]:
        """A merge fills a table of the session's own, of the same types: keys are compared without a conversion."""
        if not merge:
            return ("append",)
        return ("merge_open", "merge_fill", *(("merge",) if changes else ()), "merge_keys", "merge_close")

    def moment(self, value: str) -> str:
        """Drivers cut the digits of a time: it goes as text."""
        return f"CAST({value} AS datetime2(6))"

    def guid(self, value: str) -> str:
        """A text is compared as a GUID."""
        return f"CAST({value} AS uniqueidentifier)"

    def stored(self, value: Any) -> Any:
        """A time as text; see `moment`."""
        return value.isoformat(sep="T") if isinstance(value, datetime) else value

    def mark_scope(self, transaction: Transaction, mark: str) -> None:
        """Take a lock that ends with the transaction."""
        transaction.rows(self.statement("session.scope_open"), scope=mark)

    def scope_is_alive(self, transaction: Transaction, mark: str) -> bool:
        """See whether the lock is still held."""
        return bool(transaction.rows(self.statement("session.scope_check"), scope=mark)[0][0] != "NoLock")

    def optional_columns(self, columns: frozenset[str], source: str = "m") -> dict[str, str]:
        """Recoverable must be written where it stands; what version 1 kept in columns is read where it stands."""
        recoverable = ("Recoverable",) if "recoverable" in columns else ()
        written = ("Id", *recoverable, "Expires", "Headers", "Body")
        version_1 = [name for name in ("CorrelationId", "ReplyToAddress") if name.lower() in columns]
        return {
            "columns": ", ".join(map(self.quote, written)),
            "all_columns": ", ".join(map(self.quote, (*written, *version_1))),
            "correlation_id": f"{source}.[CorrelationId]" if "correlationid" in columns else "NULL",
            "reply_to_address": f"{source}.[ReplyToAddress]" if "replytoaddress" in columns else "NULL",
        }

    def take_claim(
        self, transaction: Transaction, take: Command, tables: ClaimTables, claim_id: str, bounds: Bounds
    ) -> Taken:
        """Several statements of a bounded number of rows, so that row locks do not become a table lock."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        sizes = self.statement("nservicebus/claim_messages.sizes", **names)
        taken = size = 0
        while taken < bounds.messages and (taken == 0 or size < bounds.bytes):
            wanted = min(self.rows_per_take, bounds.messages - taken)
            moved = transaction.count(take, messages=wanted, bytes=bounds.bytes - size, claim_id=claim_id)
            taken += moved
            size = int(transaction.rows(sizes, claim_id=claim_id)[0][1])
            if moved < wanted:
                break
        transaction.execute(self.statement("nservicebus/claim_messages.drop_expired", **names), claim_id=claim_id)
        messages, size, first = transaction.rows(sizes, claim_id=claim_id)[0]
        return Taken(taken, int(messages), int(size), first)
