"""PostgreSQL 13 and later, through psycopg 3."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from queue_pipeline.transport import address
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Bounds, Dialect, Row, Taken, chunks
from queue_pipeline.transport.errors import DriverMissingError
from queue_pipeline.transport.faults import Fault
from queue_pipeline.transport.headers import FORWARD_DESTINATION
from queue_pipeline.transport.row_form import RowForm, bound, mark, row_line, values_command
from queue_pipeline.transport.statements import Command, load_statement

if TYPE_CHECKING:
    from queue_pipeline.transport.addressing import ClaimTables
    from queue_pipeline.transport.database import Transaction

ROWS_PER_INSERT = 200
BYTES_PER_INSERT = 4 * 1024 * 1024
ROWS_PER_WRITE = 500
_PARAMETERS = 32_767
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
    """Messages that never expire go by COPY, all others by INSERT; results come in binary form."""

    name: ClassVar[str] = "postgresql"
    default_schema: ClassVar[str | None] = "public"
    longest_queue_name: ClassVar[int | None] = 47
    stores_nul: ClassVar[bool] = False
    copies: ClassVar[bool] = True

    def connect(self, url: DatabaseUrl) -> Any:
        """Open a session in UTC at READ COMMITTED."""
        connection = self._open(url)
        connection.execute(load_statement(self.name, "session"))
        connection.commit()
        return connection

    def _open(self, url: DatabaseUrl) -> Any:
        return _psycopg().open_psycopg(url)

    def begin(self, connection: Any, *, write: bool) -> None:
        """Nothing: the driver begins with the first statement."""

    def cursor(self, connection: Any, *, own: bool) -> Any:
        """Our statements get their results in binary form: bodies are not written out in hexadecimal digits.

        Statements of the caller get text, in which every type comes readable, and may be several in one.
        """
        return _psycopg().own_cursor(connection, binary=own)

    def answers(self, connection: Any) -> bool:
        """An empty statement outside a transaction: one round trip instead of three."""
        connection.autocommit = True
        try:
            connection.execute("")
        finally:
            connection.autocommit = False
        return True

    def fault(self, error: BaseException) -> Fault:
        """Classify by SQLSTATE; an error without one is the driver's own: the server is gone, or was never there."""
        state = getattr(error, "sqlstate", None) or ""
        known = known_fault(state, str(error))
        if known is not None:
            return known
        # By name, so that errors can be classified where the driver is not installed.
        kinds = {kind.__name__ for kind in type(error).__mro__}
        return Fault.CONNECTION if not state and kinds & {"OperationalError", "InterfaceError"} else Fault.OTHER

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
        """Several rows per statement."""
        for part in chunks(rows, ROWS_PER_INSERT, BYTES_PER_INSERT):
            parameters = [value for row in part for value in (*common, *row)]
            transaction.execute(command.repeated(len(part)), parameters)

    def write_rows(self, transaction: Transaction, form: RowForm, rows: Sequence[Sequence[Any]]) -> None:
        """Several rows per statement; more than a few hundred make it no faster."""
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


def known_fault(state: str, words: str) -> Fault | None:
    """What the server says of an error, through either driver."""
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


def _psycopg() -> Any:
    try:
        return importlib.import_module("queue_pipeline.transport.dialects.psycopg_connection")
    except ImportError as error:
        raise DriverMissingError(
            f"PostgreSQL needs psycopg 3.2 or later, which cannot be loaded ({error}); install it with: "
            "pip install 'queue_pipeline[postgresql]'"
        ) from None
