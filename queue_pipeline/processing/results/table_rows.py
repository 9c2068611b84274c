"""Rows for the user's own tables that came as outcomes: summed up by key, as Arrow, before the database sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.arrow import Table
from queue_pipeline.transport.operations.user_table_sql import TableRows
from queue_pipeline.transport.transport import QueueTransport

if TYPE_CHECKING:
    from sqlalchemy import Connection

_EXACT = pa.decimal128(38, 0)
"""What whole numbers are summed up as: 64 bits would overflow silently."""


@dataclass(frozen=True, slots=True)
class OutcomeRows:
    """Rows for one table. With a key, the columns in `added` are added to what is stored, the others replace it."""

    table: str
    key: tuple[str, ...]
    rows: Table
    added: tuple[str, ...] = ()

    def summed(self) -> OutcomeRows:
        """One row per key, where all other columns are added up; other rows stay unchanged."""
        names = self.rows.column_names
        if not self.key or len(names) > len(self.key) + len(self.added):
            return self
        # By position: a column of the key may have the name that a sum would get.
        keys = [f"k{at}" for at, name in enumerate(names) if name in self.key]
        added = [f"v{at}" for at, name in enumerate(names) if name not in self.key]
        columns = [self.rows[name] if name in self.key else self._exact(name) for name in names]
        exact = pa.table(columns, names=[f"{'k' if name in self.key else 'v'}{at}" for at, name in enumerate(names)])
        sums: Any = exact.group_by(keys, use_threads=False).aggregate([(name, "sum") for name in added])
        ordered = sums.select([*keys, *(f"{name}_sum" for name in added)])
        return replace(self, rows=ordered.rename_columns([names[int(name[1:])] for name in (*keys, *added)]))

    def _exact(self, name: str) -> Any:
        """Cast numbers to a type whose sum does not overflow silently."""
        column = self.rows[name]
        kind = column.type
        if pa.types.is_integer(kind):
            return column.cast(_EXACT)
        if pa.types.is_decimal(kind):
            return column if kind == _EXACT else column.cast(pa.decimal256(76, kind.scale))
        if not (pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise ConfigurationError(f"table {self.table}: column {name} is to be added up and is {kind}; give numbers")
        return column

    def as_table_rows(self) -> TableRows:
        """The same as the transport writes it."""
        names = tuple(self.rows.column_names)
        columns = [_values(self.rows[name]) for name in names]
        return TableRows(self.table, names, list(zip(*columns, strict=True)), self.key, self.added)


def together(parts: Iterable[OutcomeRows]) -> list[TableRows]:
    """Rows of several parts of a batch, as the transport writes them: one set per table, key and columns."""
    found: dict[Any, list[OutcomeRows]] = {}
    for part in parts:
        found.setdefault((part.table, part.key, part.added, part.rows.schema), []).append(part)
    return [_joined(group).as_table_rows() for group in found.values()]


def write_tables(transport: QueueTransport, tables: Iterable[TableRows], connection: Connection) -> None:
    """Write rows for the user's own tables, in the transaction that completes their batch."""
    for rows in tables:
        transport.user_tables.write(connection, rows)


def _joined(group: Sequence[OutcomeRows]) -> OutcomeRows:
    if len(group) == 1:
        return group[0].summed()
    return replace(group[0], rows=pa.concat_tables([part.rows for part in group])).summed()


def _values(column: Any) -> list[Any]:
    values = column.to_pylist()
    if column.type == _EXACT:
        return [None if value is None else int(value) for value in values]
    return list(values)
