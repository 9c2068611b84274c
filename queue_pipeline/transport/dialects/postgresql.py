"""PostgreSQL 13 and later, through psqlodbc."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar

import pyodbc

from queue_pipeline.transport import address
from queue_pipeline.transport.ahead import ahead
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import (
    NEVER_EXPIRES,
    Bounds,
    Dialect,
    Row,
    Taken,
    chunks,
)
from queue_pipeline.transport.dialects.odbc import connection_string, find_driver, open_odbc
from queue_pipeline.transport.faults import Fault
from queue_pipeline.transport.headers import FORWARD_DESTINATION
from queue_pipeline.transport.row_form import RowForm, bound, mark, row_line, values_command
from queue_pipeline.transport.statements import Command, load_statement

if TYPE_CHECKING:
    import pyarrow as pa

    from queue_pipeline.transport.addressing import ClaimTables
    from queue_pipeline.transport.database import Transaction

DRIVERS = ("PostgreSQL Unicode", "PostgreSQL Unicode(x64)", "PostgreSQL")
DRIVER_OPTIONS = {
    "UseServerSidePrepare": "1",
    "ByteaAsLongVarBinary": "1",
    "MaxVarcharSize": "0",
    # The whole result of a statement at once: a declared cursor would keep the statement open across the commit.
    "UseDeclareFetch": "0",
    # Bodies travel as text where they are text: a line feed stays what it is.
    "LFConversion": "0",
    # No savepoint around each statement: an error dooms the transaction, which is what the transport relies on.
    "Protocol": "7.4-0",
}
_LARGEST_VALUE = 1 << 30
_SEPARATOR, _BINARY_SEPARATOR = "\x1e", b"\x1e"
_TEXT = (pyodbc.SQL_LONGVARCHAR, 0, 0)
_PACKED_TYPES = (None, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT, _TEXT)
ROWS_PER_INSERT = 10_000
BYTES_PER_INSERT = 512 * 1024
ROWS_PER_WRITE = 500
_PARAMETERS = 32_767
_LOST = ("closed the connection", "connection dead", "connection lost", "no connection to the server")
# Ended by an operator, by a crash, not yet up, or idle for longer than the server allows.
_GONE = ("57P01", "57P02", "57P03", "57P05", "25P03")
_REFUSED = ("authentication failed", "no password supplied", "not permitted to log in", "no pg_hba.conf entry")
FAULTS = {
    "40001": Fault.VICTIM,
    "40P01": Fault.VICTIM,
    "55P03": Fault.VICTIM,
    "42P01": Fault.MISSING_TABLE,
    "3F000": Fault.MISSING_SCHEMA,
    "3D000": Fault.MISSING_DATABASE,
    "42S02": Fault.MISSING_TABLE,
    "42P10": Fault.NO_UNIQUE_INDEX,
    "42P07": Fault.EXISTS,
    "42710": Fault.EXISTS,
    "42501": Fault.PERMISSION,
    "28000": Fault.LOGIN,
    "28P01": Fault.LOGIN,
}


class PostgreSql(Dialect):
    """Rows are packed into one binary parameter on the way in: see `sql/postgresql/nservicebus/send.sql`."""

    name: ClassVar[str] = "postgresql"
    default_schema: ClassVar[str | None] = "public"
    longest_queue_name: ClassVar[int | None] = 47
    stores_nul: ClassVar[bool] = False

    def connect(self, url: DatabaseUrl) -> Any:
        """Open a session in UTC at READ COMMITTED."""
        pairs = {}
        if url.odbc is None:
            driver = find_driver(
                url.driver,
                DRIVERS,
                database="PostgreSQL",
                install="install Debian's odbc-postgresql, or run scripts/bootstrap",
            )
            pairs = {
                "DRIVER": driver,
                "SERVER": url.host or "",
                "PORT": str(url.port or 5432),
                "DATABASE": url.database or "",
                "UID": url.user or "",
                "PWD": url.password.get_secret_value() if url.password else "",
            }
        connection = open_odbc(connection_string(url, pairs, DRIVER_OPTIONS))
        # Large values in one call: in pieces, pyodbc asks for the interpreter again for each, and waits for the thread
        # that encodes the next statement every time.
        connection.maxwrite = _LARGEST_VALUE
        connection.execute(load_statement(self.name, "session"))
        connection.commit()
        return connection

    def begin(self, connection: Any, *, write: bool) -> None:
        """Nothing: psqlodbc begins with the first statement."""

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLSTATE; the driver reports a lost server under several."""
        state = str(error.args[0]) if error.args else ""
        words = str(error)
        known = known_fault(state, words)
        if known is not None:
            return known
        # The driver's own words for a lost server carry no state of their own (HY000).
        lost = state == "HY000" and any(phrase in words for phrase in _LOST)
        return Fault.CONNECTION if lost else Fault.OTHER

    def parse(self, text: str) -> address.QueueAddress:
        """Read `[schema.]table`."""
        return address.parse_postgresql(text)

    def format(self, address_: address.QueueAddress) -> str:
        """Write `"schema"."table"`."""
        return address.format_postgresql(address_)

    def quote(self, name: str) -> str:
        """Quote an identifier."""
        return address.double_quote(name)

    def insert(
        self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Sequence[Any] = ()
    ) -> None:
        """Send the rows packed (see `pack`), the next statement's while the server stores the one before.

        Every other way has the driver convert each value on its own; docs/architecture.md has the measurements.
        """
        packed = ((*common, *pack(part)) for part in chunks(rows, ROWS_PER_INSERT, BYTES_PER_INSERT))
        transaction.execute_each(command, ahead(packed), (*(None for _ in common), *_PACKED_TYPES))

    def write_rows(self, transaction: Transaction, form: RowForm, rows: Sequence[Sequence[Any]]) -> None:
        """Several rows a statement; more than a few hundred make it no faster."""
        command = values_command(self, form)
        most = max(1, min(ROWS_PER_WRITE, _PARAMETERS // len(form.columns)))
        for first in range(0, len(rows), most):
            part = rows[first : first + most]
            lines = (row_line(map(mark, row)) for row in part)
            transaction.execute(command.with_rows(lines), bound(value for row in part for value in row))

    def take_claim(
        self, transaction: Transaction, tables: ClaimTables, columns: frozenset[str], claim_id: str, bounds: Bounds
    ) -> Taken:
        """One statement does it all."""
        command = self.statement("nservicebus/claim_take", queue=tables.queue, claimed=tables.claimed)
        parameters = (*bounds, claim_id, FORWARD_DESTINATION)
        taken, messages, size, first, forwarded = transaction.rows(command, parameters)[0]
        return Taken(int(taken), int(messages), int(size), first, int(forwarded) > 0)

    def take_in_place(
        self, transaction: Transaction, tables: ClaimTables, order: str, claim_id: str, bounds: Bounds, lease: int
    ) -> int:
        """One statement does it all."""
        command = self.statement("nginn/claim_take", queue=tables.queue, claimed=tables.claimed, order=order)
        return transaction.count(command, (*bounds, claim_id, lease))

    def read_claimed(
        self, transaction: Transaction, tables: ClaimTables, values: tuple[str, int, int], *, body: bool
    ) -> pa.RecordBatch:
        """Packed into a few values; see `insert`."""
        from queue_pipeline.transport.claimed_columns import from_packed, from_rows

        name = f"{tables.queue.layout}/claim_read_packed"
        command = self.statement(name, queue=tables.queue, claimed=tables.claimed)
        ids, versions, header_sizes, body_sizes, headers, bodies = transaction.rows(command, (int(body), *values))[0]
        if ids is None:
            return from_rows(())
        return from_packed(ids, versions, (header_sizes, body_sizes), headers, bodies)


def known_fault(state: str, words: str) -> Fault | None:
    """What the server says of an error, through whichever driver."""
    if state == "23505" and "_nsp_index" in words:
        # Two installers created the same name at the same moment; IF NOT EXISTS does not cover that.
        return Fault.EXISTS
    if state in FAULTS:
        return FAULTS[state]
    # A refused connection comes as 08001, or without a state, whatever the reason was.
    if not state or state.startswith("08"):
        if any(phrase in words for phrase in _REFUSED):
            return Fault.LOGIN
        if 'database "' in words and "does not exist" in words:
            return Fault.MISSING_DATABASE
    return Fault.CONNECTION if state.startswith("08") or state in _GONE else None


def pack(rows: Sequence[Row]) -> tuple[Any, ...]:
    """The parameters of `send.sql`: binary bodies, ids, milliseconds, headers, text bodies, offsets and lengths.

    ASCII goes as bytes that are declared as text, which psqlodbc passes on untouched: it converts a str twice, and
    looks at its log level for each byte of a binary value. So bodies go as binary only when they are not plain text.
    """
    ids, milliseconds, headers, bodies = zip(*rows, strict=True)
    expiring = milliseconds if any(each != NEVER_EXPIRES for each in milliseconds) else ()
    header_text, body_text = _SEPARATOR.join(headers), _BINARY_SEPARATOR.join(bodies)
    is_text = body_text.isascii() and body_text.count(_BINARY_SEPARATOR) == len(rows) - 1 and b"\0" not in body_text
    common = (_array(ids), _array(expiring), header_text.encode() if header_text.isascii() else header_text)
    if is_text and body_text:
        return (b"", *common, body_text, _array(()), _array(()))
    sizes = list(map(len, bodies))
    return (b"".join(bodies), *common, b"", _array(accumulate(sizes[:-1], initial=1)), _array(sizes))


def _array(values: Iterable[object]) -> bytes:
    return ("{" + ",".join(map(str, values)) + "}").encode()
