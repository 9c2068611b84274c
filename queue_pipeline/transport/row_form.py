"""How rows go into a table of the user's own: the statement, composed from the templates of `sql/`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from queue_pipeline.transport.statements import Command

if TYPE_CHECKING:
    from queue_pipeline.transport.addressing import QueueTable
    from queue_pipeline.transport.dialect import Dialect


class RowForm(NamedTuple):
    """A table, the columns to write, and how: appended without a key, merged by it with one."""

    table: QueueTable
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    add: tuple[str, ...] = ()

    @property
    def changed(self) -> tuple[str, ...]:
        """The columns that a merge changes in a row that is there already."""
        return tuple(column for column in self.columns if column not in self.key)

    @property
    def statement_name(self) -> str:
        """The template in `sql/<dialect>/`."""
        if not self.key:
            return "table_append"
        return "table_merge" if self.changed else "table_merge_keys"


def values_command(dialect: Dialect, form: RowForm) -> Command:
    """The statement for one row of values, to be repeated; it merges where the dialect inserts and merges at once."""
    changes = [fragment(dialect, form, column) for column in form.changed] if form.key else []
    names = {
        "columns": quoted(dialect, form.columns),
        "keys": quoted(dialect, form.key),
        "changes": ", ".join(changes),
        "marks": ", ".join("?" * len(form.columns)),
    }
    return about(form, dialect.statement(form.statement_name, table=form.table, **names))


def fragment(dialect: Dialect, form: RowForm, column: str, mark: str = "?") -> str:
    """What a merge does to one column."""
    name = "table_merge_add" if column in form.add else "table_merge_set"
    return dialect.statement(name, column=dialect.quote(column), mark=mark).text


def index_command(dialect: Dialect, form: RowForm) -> Command:
    """The index without which rows cannot be merged."""
    index = dialect.quote(f"{form.table.table}_key")
    return dialect.statement("table_key_index", table=form.table, index=index, keys=quoted(dialect, form.key))


def quoted(dialect: Dialect, columns: Sequence[str]) -> str:
    """A list of columns."""
    return ", ".join(dialect.quote(column) for column in columns)


def about(form: RowForm, command: Command) -> Command:
    """The statement, whose errors name the table."""
    return replace(command, table=form.table.canonical)


def mark(value: Any) -> str:
    """How a value stands in a statement: a NULL is written, as an ODBC driver has to ask the server for its type."""
    return "NULL" if value is None else "?"


def bound(values: Iterable[Any]) -> list[Any]:
    """What is bound of values: all but those that are written."""
    return [value for value in values if value is not None]


def row_line(marks: Iterable[str]) -> str:
    """A row of a VALUES clause."""
    return f"({', '.join(marks)})"
