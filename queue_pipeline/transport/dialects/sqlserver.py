"""SQL Server 2017 and later, through Microsoft's ODBC driver or FreeTDS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from queue_pipeline.transport import address
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.dialect import Bounds, Dialect, Row, Taken, chunks
from queue_pipeline.transport.dialects.odbc import (
    connection_string,
    find_driver,
    open_odbc,
    packaged_sqlserver_driver,
)
from queue_pipeline.transport.errors import AddressError
from queue_pipeline.transport.faults import Fault, native_number
from queue_pipeline.transport.row_form import RowForm, about, bound, fragment, mark, quoted, row_line, values_command
from queue_pipeline.transport.statements import Command, load_statement

if TYPE_CHECKING:
    from queue_pipeline.transport.addressing import ClaimTables
    from queue_pipeline.transport.database import Transaction

DRIVERS = ("ODBC Driver 18 for SQL Server", "ODBC Driver 17 for SQL Server", "FreeTDS")
ROWS_PER_INSERT = 150
_BYTES_PER_INSERT = 4 * 1024 * 1024
# Beyond 4,000 characters pyodbc asks the server about every parameter; beyond 2,100 parameters the server refuses.
_CHARACTERS = 3_900
_PARAMETERS = 2_000
_FAULTS = {
    1205: Fault.VICTIM,
    1222: Fault.VICTIM,
    601: Fault.VICTIM,
    208: Fault.MISSING_TABLE,
    4902: Fault.MISSING_TABLE,
    2601: Fault.DUPLICATE,
    2627: Fault.DUPLICATE,
    2714: Fault.EXISTS,
    1913: Fault.EXISTS,
    229: Fault.PERMISSION,
    230: Fault.PERMISSION,
    262: Fault.PERMISSION,
    2760: Fault.MISSING_SCHEMA,
    18456: Fault.LOGIN,
    4060: Fault.MISSING_DATABASE,
    40197: Fault.CONNECTION,
    40613: Fault.CONNECTION,
    233: Fault.CONNECTION,
    64: Fault.CONNECTION,
}


class SqlServer(Dialect):
    """T-SQL."""

    name: ClassVar[str] = "sqlserver"
    default_schema: ClassVar[str | None] = "dbo"
    has_catalogs: ClassVar[bool] = True
    # A statement that takes 5,000 row locks asks for the whole table, and would block every peer.
    rows_per_take: ClassVar[int] = 4_000
    longest_queue_name: ClassVar[int | None] = 120
    inspects_columns: ClassVar[bool] = True

    def connect(self, url: DatabaseUrl) -> Any:
        """Open a session at READ COMMITTED with XACT_ABORT and NOCOUNT on (see sql/sqlserver/session.sql)."""
        pairs = {}
        if url.odbc is None:
            wanted = url.driver
            driver = (None if wanted else packaged_sqlserver_driver()) or find_driver(
                wanted,
                DRIVERS,
                database="SQL Server",
                install="install it with: pip install 'queue_pipeline[sqlserver]', or install Debian's tdsodbc",
            )
            pairs = {
                "DRIVER": driver,
                "DATABASE": url.database or "",
                "UID": url.user or "",
                "PWD": url.password.get_secret_value() if url.password else "",
            }
            if driver == "FreeTDS":
                pairs |= {"SERVER": url.host or "", "PORT": str(url.port or 1433), "TDS_Version": "7.4"}
            else:
                pairs |= {"SERVER": f"{url.host},{url.port or 1433}"}
        connection = open_odbc(connection_string(url, pairs, {}))
        connection.execute(load_statement(self.name, "session"))
        connection.commit()
        return connection

    def begin(self, connection: Any, *, write: bool) -> None:
        """Nothing: the driver begins with the first statement."""

    def fault(self, error: BaseException) -> Fault:
        """Classify by the server's error number, then by SQLSTATE."""
        number = native_number(error)
        state = str(error.args[0]) if error.args else ""
        words = str(error)
        about_column = number in (207, 515) or "column" in words
        if about_column and any(name in words.lower() for name in ("recoverable", "correlationid", "replytoaddress")):
            return Fault.LAYOUT
        if number in _FAULTS:
            return _FAULTS[number]
        # Babelfish reports what is missing in PostgreSQL's words.
        if 'schema "' in words and "does not exist" in words:
            return Fault.MISSING_SCHEMA
        if state == "42S02" or "Invalid object name" in words or ('relation "' in words and "does not exist" in words):
            return Fault.MISSING_TABLE
        if state == "40001":
            return Fault.VICTIM
        if state == "28000":
            return Fault.LOGIN
        if state.startswith("08") or state in ("HYT00", "HYT01"):
            return Fault.CONNECTION
        return Fault.OTHER

    def parse(self, text: str) -> address.QueueAddress:
        """Read `table[@schema[@catalog]]`."""
        return address.parse_sqlserver(text)

    def format(self, address_: address.QueueAddress) -> str:
        """Write `table@[schema]@[catalog]`."""
        return address.format_sqlserver(address_)

    def quote(self, name: str) -> str:
        """Quote an identifier."""
        return address.bracket(name)

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

    def insert(
        self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Sequence[Any] = ()
    ) -> None:
        """Several rows a statement, few enough that its text stays under 4,000 characters.

        Longer texts make pyodbc ask the server to describe the parameters, which is slow everywhere and harmful
        on some servers; parameters stay far below SQL Server's limit of 2,100.
        """
        for part in chunks(rows, ROWS_PER_INSERT, _BYTES_PER_INSERT):
            transaction.execute(command.repeated(len(part)), [*common, *(value for row in part for value in row)])

    def write_rows(self, transaction: Transaction, form: RowForm, rows: Sequence[Sequence[Any]]) -> None:
        """Several rows a statement, or for a merge several statements a round trip, within the driver's limits."""
        if not form.key:
            command = values_command(self, form)
            pieces = ((row_line(map(_mark, row)), _bound(row)) for row in rows)
            for lines, values in _packed(pieces, _CHARACTERS - len(command.text)):
                transaction.execute(command.with_rows(lines), values)
            return
        for texts, values in _packed(self._merges(form, rows), _CHARACTERS):
            transaction.execute(about(form, Command("\n".join(texts))), values)

    def _merges(self, form: RowForm, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[str, list[Any]]]:
        """The statements that merge each row, and their parameters."""
        known: dict[tuple[str, ...], str] = {}
        order = [form.columns.index(column) for column in (*form.changed, *form.key, *form.columns)]
        for row in rows:
            marks = tuple(map(_mark, row))
            if marks not in known:
                known[marks] = self._merge(form, dict(zip(form.columns, marks, strict=True)))
            yield known[marks], _bound([row[position] for position in order])

    def _merge(self, form: RowForm, marks: dict[str, str]) -> str:
        # A NULL is written and not bound, and nothing is added for it.
        added = {column: "0" for column in form.add if marks[column] == "NULL"}
        changes = [fragment(self, form, column, added.get(column, marks[column])) for column in form.changed]
        match = [
            self.statement("table_merge_match", column=self.quote(column), mark=marks[column]).text
            for column in form.key
        ]
        names = {
            "columns": quoted(self, form.columns),
            "changes": ", ".join(changes),
            "match": " AND ".join(match),
            "marks": ", ".join(marks.values()),
        }
        return self.statement(form.statement_name, table=form.table, **names).text

    def mark_scope(self, transaction: Transaction, mark: str) -> None:
        """Take a lock that ends with the transaction."""
        transaction.rows(self.statement("scope_open"), (mark,))

    def scope_is_alive(self, transaction: Transaction, mark: str) -> bool:
        """See whether the lock is still held."""
        return bool(transaction.rows(self.statement("scope_check"), (mark,))[0][0] != "NoLock")

    def optional_columns(self, columns: frozenset[str], source: str = "m") -> dict[str, str]:
        """Recoverable must be written where it stands; what version 1 kept in columns is read where it stands."""
        recoverable = ("Recoverable",) if "recoverable" in columns else ()
        written = ("Id", *recoverable, "Expires", "Headers", "Body")
        return {
            "columns": ", ".join(self.quote(name) for name in written),
            "correlation_id": f"{source}.[CorrelationId]" if "correlationid" in columns else "NULL",
            "reply_to_address": f"{source}.[ReplyToAddress]" if "replytoaddress" in columns else "NULL",
        }

    def take_claim(
        self, transaction: Transaction, tables: ClaimTables, columns: frozenset[str], claim_id: str, bounds: Bounds
    ) -> Taken:
        """Several statements of a bounded number of rows, so that row locks do not become a table lock."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        take = self.statement(
            "nservicebus/claim_take",
            **names,
            **self.optional_columns(columns, "deleted"),
        )
        sizes = self.statement("nservicebus/claim_sizes", **names)
        whole = (claim_id, 0, 2**63 - 1)
        taken = messages = size = 0
        while taken < bounds.messages and (taken == 0 or size < bounds.bytes):
            wanted = min(self.rows_per_take, bounds.messages - taken)
            moved = transaction.count(take, (wanted, bounds.bytes - size, claim_id))
            taken += moved
            size = int(transaction.rows(sizes, whole)[0][1])
            if moved < wanted:
                break
        transaction.execute(self.statement("nservicebus/claim_drop_expired", **names), (claim_id,))
        messages, size, first = transaction.rows(sizes, whole)[0]
        return Taken(taken, int(messages), int(size), first)


def _mark(value: Any) -> str:
    return load_statement("sqlserver", "table_moment") if isinstance(value, datetime) else mark(value)


def _bound(values: Iterable[Any]) -> list[Any]:
    return [value.isoformat(sep="T") if isinstance(value, datetime) else value for value in bound(values)]


def _packed(pieces: Iterable[tuple[str, list[Any]]], room: int) -> Iterator[tuple[list[str], list[Any]]]:
    """Texts and their parameters, as many as fit into one statement; a single one always goes."""
    texts: list[str] = []
    values: list[Any] = []
    size = 0
    for text, bound_values in pieces:
        if texts and (size + len(text) + 2 > room or len(values) + len(bound_values) > _PARAMETERS):
            yield texts, values
            texts, values, size = [], [], 0
        texts.append(text)
        values += bound_values
        size += len(text) + 2
    if texts:
        yield texts, values
