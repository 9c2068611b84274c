"""What drivers do in bulk, each in the fastest way that it knows; everything else goes through SQLAlchemy."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import Row

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from queue_pipeline.transport.database.transaction import Transaction

Values = Mapping[str, Any]
RowValues = Sequence[Any]
Size = tuple[int, int, int]
"""A type of ODBC, a length and a scale, as pyodbc takes them."""

BYTES_PER_INSERT = 4 * 1024 * 1024


class Driver:
    """Several rows a statement; the base of all, and what psqlodbc does."""

    copies: ClassVar[bool] = False
    """Whether rows can be written by COPY."""
    rows_per_insert: ClassVar[int] = 200
    values_per_statement: ClassVar[int] = 32_767

    takes_batches: ClassVar[bool] = False
    """Whether a statement may be several, with counts before the rows, and types of values are declared."""

    def declare(self, cursor: Any, names: Sequence[str]) -> None:
        """Declare the types of a statement's values, which are named in their order."""

    def start(self, connection: Any) -> None:
        """Set up a new connection of the driver's."""

    def insert(self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Values) -> None:
        """Write many messages; `common` are values that are the same for all rows."""
        most = min(self.rows_per_insert, (self.values_per_statement - len(common)) // len(command.row_values))
        for part in chunks(rows, most, BYTES_PER_INSERT):
            transaction.execute(command.repeated(len(part)), **_values(command, part, common))

    def read(self, transaction: Transaction, command: Command, values: Values) -> Sequence[RowValues]:
        """The rows of a statement that reads many messages."""
        return transaction.rows(command, **values)

    def copy(self, transaction: Transaction, command: Command, types: Sequence[str], rows: Iterable[RowValues]) -> None:
        """Write rows by a binary COPY; `types` are those of the columns."""
        raise TypeError(f"{type(self).__name__} writes no COPY; ask `copies` first")


class PsycopgDriver(Driver):
    """Rows without an expiry by COPY; many messages are read in binary form, bodies not in hexadecimal digits."""

    copies: ClassVar[bool] = True

    def start(self, connection: Any) -> None:
        """Prepare no statement on the server.

        It would keep the plan that it made while the queue was empty, and read a full one from end to end: measured,
        a hundred times slower (docs/decisions.md).
        """
        connection.prepare_threshold = None

    def read(self, transaction: Transaction, command: Command, values: Values) -> Sequence[RowValues]:
        """In binary form."""
        text, _ = transaction.compiled(command)
        with transaction.raw(command) as connection, connection.cursor(binary=True) as cursor:
            return list(cursor.execute(text, dict(values)))

    def copy(self, transaction: Transaction, command: Command, types: Sequence[str], rows: Iterable[RowValues]) -> None:
        """psycopg's own rows."""
        with transaction.raw(command) as connection, connection.cursor() as cursor, cursor.copy(command.script) as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)


class SqliteDriver(Driver):
    """One statement for many rows, inside the driver."""

    values_per_statement: ClassVar[int] = 32_766

    def start(self, connection: Any) -> None:
        """Read every text: SQLite stores any bytes as text, and one row of them would fail a whole statement.

        A byte that is no UTF-8 becomes half a surrogate pair, which readers of messages notice.
        """
        connection.text_factory = _text

    def insert(self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Values) -> None:
        """In the order of the statement's values."""
        text, order = transaction.compiled(command)
        command.check({**dict.fromkeys(name for name in order if name in Row._fields), **common})
        places = [Row._fields.index(name) if name in Row._fields else None for name in order]
        values = [common.get(name) for name in order]
        with transaction.raw(command) as connection:
            connection.executemany(
                text,
                (
                    [value if place is None else row[place] for place, value in zip(places, values, strict=True)]
                    for row in rows
                ),
            )


class SqlServerDriver(Driver):
    """Types are declared: long values arrive as nvarchar(max) and varbinary(max), and a statement keeps its plan."""

    takes_batches: ClassVar[bool] = True
    rows_per_insert: ClassVar[int] = 500
    # The server refuses more than 2,100.
    values_per_statement: ClassVar[int] = 2_000

    def declare(self, cursor: Any, names: Sequence[str]) -> None:
        """Declare them, except to FreeTDS, which would store nothing for a length of 0."""
        import pyodbc

        if "tdsodbc" not in str(cursor.connection.getinfo(pyodbc.SQL_DRIVER_NAME)).lower():
            cursor.setinputsizes([self._size(name) for name in names])

    def _size(self, name: str) -> Size | None:
        column, _, row = name.rpartition("_")
        return self._sizes_of_rows.get(column) if row.isdigit() else self._sizes.get(name)

    @functools.cached_property
    def _sizes(self) -> Mapping[str, Size]:
        """A length of 0 is `max`; undeclared, a long value would be `ntext` or `image`."""
        import pyodbc

        long_text = (pyodbc.SQL_WVARCHAR, 0, 0)
        return {"headers": long_text, "body": (pyodbc.SQL_VARBINARY, 0, 0), "state": long_text}

    @functools.cached_property
    def _sizes_of_rows(self) -> Mapping[str, Size]:
        import pyodbc

        return {**self._sizes, "id": (pyodbc.SQL_WVARCHAR, 36, 0), "milliseconds": (pyodbc.SQL_BIGINT, 0, 0)}


def _text(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")


def chunks(rows: Iterable[Row], most_rows: int, most_bytes: int) -> Iterator[list[Row]]:
    """Rows in lists that one statement can carry: bounded in number, and in bytes but for a single large one."""
    part: list[Row] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.headers) + len(row.body)
        if len(part) >= most_rows or size >= most_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part


def _values(command: Command, rows: Sequence[Row], common: Values) -> dict[str, Any]:
    names = command.row_values
    values = {name: value for name, value in common.items() if name not in names}
    for number, row in enumerate(rows):
        for name in names:
            values[f"{name}_{number}"] = getattr(row, name) if name in Row._fields else common[name]
    return values


DRIVERS: Mapping[tuple[str, str], Driver] = {
    ("sqlite", "pysqlite"): SqliteDriver(),
    ("postgresql", "psycopg"): PsycopgDriver(),
    ("postgresql", "pyodbc"): Driver(),
    ("mssql", "pyodbc"): SqlServerDriver(),
}
"""By SQLAlchemy's names of dialect and driver."""


def driver_of(engine: Engine) -> Driver:
    """What an engine's driver does in bulk."""
    dialect = engine.dialect
    try:
        return DRIVERS[dialect.name, dialect.driver]
    except KeyError:
        known = ", ".join(f"{name}+{driver}" for name, driver in DRIVERS)
        raise ConfigurationError(
            f"an engine of {dialect.name}+{dialect.driver} is not known; known are {known}"
        ) from None
