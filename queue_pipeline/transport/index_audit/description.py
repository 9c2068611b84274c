"""A queue's table as its database describes it, for the audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.transaction import Transaction

BLOATED_PAGES = 1_000
"""Pages below which an empty table is not worth a word: 8 MB."""
PAGES_PER_ROW = 10
"""A row needs one page at most; a table with more pages a row than this is nearly empty."""


@dataclass(frozen=True, slots=True)
class Index:
    """An index, known by its first key column: its name may be any."""

    name: str | None
    key: str | None
    clustered: bool = False
    filtered: bool = False
    usable: bool = True


@dataclass(frozen=True, slots=True)
class Size:
    """Pages of a table, and the rows that they hold by the database's own count."""

    pages: int
    rows: int
    dead_rows: int = 0
    vacuumed_lately: bool = False

    @property
    def bloated(self) -> bool:
        """Whether the table keeps many pages for few rows."""
        return self.pages > BLOATED_PAGES and self.rows * PAGES_PER_ROW < self.pages

    @property
    def mostly_dead(self) -> bool:
        """Whether the pages are not empty but full of dead rows."""
        return self.dead_rows * PAGES_PER_ROW >= self.pages


@dataclass(frozen=True, slots=True)
class Sequence:
    """The sequence that numbers the messages, by its quoted name."""

    name: str
    largest: int
    last: int | None


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table as the database describes it; names and types in lower case."""

    table: QueueTable
    columns: Mapping[str, str]
    indexes: tuple[Index, ...]
    size: Size | None = None
    sequence: Sequence | None = None

    def index_on(self, column: str, *, whole: bool = True) -> Index | None:
        """A usable index that begins with a column; `whole` wants every row in it."""
        for index in self.indexes:
            if index.usable and index.key == column and not (whole and index.filtered):
                return index
        return None


def describe(transaction: Transaction, dialect: Dialect, table: QueueTable) -> TableDescription | None:
    """A table's columns and indexes; None where there is no such table."""
    columns = transaction.rows(dialect.statement("schema.columns", queue=table))
    if not columns:
        return None
    indexes = transaction.rows(dialect.statement("audit.indexes", queue=table))
    return TableDescription(
        table,
        {str(name).lower(): str(kind).lower() for name, kind in columns},
        tuple(
            Index(name, key.lower() if key else None, bool(clustered), bool(filtered), bool(usable))
            for name, key, clustered, filtered, usable in indexes
        ),
    )
