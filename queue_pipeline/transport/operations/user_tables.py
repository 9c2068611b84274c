"""User tables: rows of the user's own tables, written in the transaction that completes a claim."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from queue_pipeline.errors import ConfigurationError, UniqueIndexMissingError
from queue_pipeline.transport.addresses.address import check_name
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import repeated_if_added
from queue_pipeline.transport.operations.user_table_sql import RowWriter, TableRows

if TYPE_CHECKING:
    from sqlalchemy import Connection

_PLAIN = frozenset({str, float, bool, bytes, type(None)})
_NUMBERS = (int, float, Decimal)
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


class UserTables:
    """Appends and merges rows. The tables are the user's: they are never created, and never read."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def write(self, connection: Connection, rows: TableRows) -> int:
        """Write rows in the transaction of a connection; returns how many were given.

        A merge takes rows in the order of their keys, so that concurrent transactions do not deadlock.
        """
        check_rows(rows)
        transaction, dialect = self._database.enlist(connection), self._database.dialect
        writer = RowWriter(dialect, self._book.resolve(rows.table), rows)
        values = plain_values(rows, nul=dialect.stores_nul)
        if rows.key:
            values = folded(rows, values)
        most_values = self._database.driver.values_per_statement
        try:
            with repeated_if_added() if rows.key else contextlib.nullcontext():
                for command, bound in writer.writes(values, most_values) if values else ():
                    transaction.execute(command, **bound)
        except UniqueIndexMissingError as error:
            raise UniqueIndexMissingError(
                f"table {rows.table}: no unique index covers the key ({', '.join(rows.key)}), and a merge needs one; "
                f"create it with your own migration: {writer.index().script}"
            ) from error
        return len(rows.rows)


def check_rows(rows: TableRows) -> None:
    """Refuse rows that do not fit their columns, and columns that contradict each other."""
    where, columns = f"table {rows.table}", rows.columns
    if not columns:
        raise ConfigurationError(f"{where}: no columns; name those that the rows hold")
    for column in columns:
        check_name(column)
        if not column.strip():
            raise ConfigurationError(f"{where}: a column without a name; name every column")
        if columns.count(column) > 1:
            raise ConfigurationError(f"{where}: column {column} is named {columns.count(column)} times; name it once")
    for role, chosen in (("key", rows.key), ("add", rows.add)):
        for column in chosen:
            if column not in columns:
                raise ConfigurationError(
                    f"{where}: {role} column {column} is not among the columns {', '.join(columns)}; add it to them"
                )
    if rows.add and not rows.key:
        raise ConfigurationError(
            f"{where}: {', '.join(rows.add)} cannot be added up, as rows without a key are appended; give a key"
        )
    for column in rows.add:
        if column in rows.key:
            raise ConfigurationError(f"{where}: column {column} is in key and in add; leave it in one of them")
    for number, row in enumerate(rows.rows):
        if len(row) != len(columns):
            raise ConfigurationError(
                f"{where}: row {number} has {len(row)} values for {len(columns)} columns; give one a column"
            )


def plain_values(rows: TableRows, *, nul: bool = True) -> list[tuple[Any, ...]]:
    """The rows as values that drivers take: instants in UTC without a zone, numbers that fit; looked at by column."""
    columns: list[Sequence[Any]] = []
    for name, values in zip(rows.columns, zip(*rows.rows, strict=True), strict=False):
        where = f"table {rows.table}: column {name}"
        kinds = set(map(type, values))
        if name in rows.key and type(None) in kinds:
            raise ConfigurationError(f"{where} is part of the key and holds None; give every row a whole key")
        if name in rows.add:
            _check_numbers(where, values)
        if str in kinds and not nul and any(type(value) is str and "\0" in value for value in values):
            raise ConfigurationError(f"{where} holds text with a NUL character, where the text would end; take it out")
        fits = kinds <= _PLAIN or (kinds == {int} and min(values) >= _SMALLEST and max(values) <= _LARGEST)
        columns.append(values if fits else [_plain(where, value) for value in values])
    return list(zip(*columns, strict=True))


def folded(rows: TableRows, values: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """One row a key, in the order of keys: what several rows with the same key come to, one after the other."""
    key_of: Callable[[tuple[Any, ...]], Any] = itemgetter(*map(rows.columns.index, rows.key))
    added = [column in rows.add for column in rows.columns]
    try:
        ordered = sorted(values, key=key_of)
    except TypeError as error:
        raise ConfigurationError(
            f"table {rows.table}: the key ({', '.join(rows.key)}) holds values that cannot be compared: {error}; "
            "give one kind a column"
        ) from error
    merged: dict[Any, tuple[Any, ...]] = {}
    for row in ordered:
        key = key_of(row)
        before = merged.get(key)
        merged[key] = row if before is None else _sum(rows, added, before, row)
    return list(merged.values())


def _sum(rows: TableRows, added: list[bool], before: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        return tuple((old or 0) + (new or 0) if add else new for old, new, add in zip(before, row, added, strict=True))
    except TypeError as error:
        raise ConfigurationError(
            f"table {rows.table}: columns {', '.join(rows.add)} hold numbers of several kinds for one key: {error}; "
            "give one kind a column"
        ) from error


def _check_numbers(where: str, values: Sequence[Any]) -> None:
    for value in values:
        if value is not None and (isinstance(value, bool) or not isinstance(value, _NUMBERS)):
            raise ConfigurationError(f"{where} is to be added up and holds {type(value).__name__}; give numbers")


def _plain(where: str, value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    for kind in (str, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, int):
        # What does not fit 64 bits is no integer to any driver.
        return int(value) if _SMALLEST <= value <= _LARGEST else Decimal(value)
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, datetime):
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, date):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    shown = f"the number {value}" if isinstance(value, Decimal) else f"a {type(value).__name__}"
    raise ConfigurationError(
        f"{where} holds {shown}; give text, numbers, dates, times, bytes or None, and convert anything else first"
    )
