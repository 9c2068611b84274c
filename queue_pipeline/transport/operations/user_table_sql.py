"""How rows go into a table of the user's own: the statements, composed of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from queue_pipeline.transport.database.command import Command

if TYPE_CHECKING:
    from queue_pipeline.transport.addresses.queues import QueueTable
    from queue_pipeline.transport.database.dialects.dialect import Dialect

ROWS_PER_WRITE = 500
"""More make it no faster."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows for one table, named by an address of its database's family.

    Without a key they are appended. With one, a row whose key is there already is changed: columns in `add` become
    what is stored plus the new value (NULL counts as 0), the others are replaced.
    """

    table: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    key: tuple[str, ...] = ()
    add: tuple[str, ...] = ()


class RowWriter:
    """The statements that write rows, for one dialect."""

    def __init__(self, dialect: Dialect, table: QueueTable, form: TableRows) -> None:
        """Of the `form`, only the columns matter here: values come prepared."""
        self._dialect = dialect
        self._table = table
        self._form = form
        self._changed = tuple(column for column in form.columns if column not in form.key)

    def writes(self, rows: Sequence[Sequence[Any]], most_values: int) -> Iterator[tuple[Command, dict[str, Any]]]:
        """The statements that write these rows, and their values, in order."""
        steps = self._dialect.user_table_steps(merge=bool(self._form.key), changes=bool(self._changed))
        most = max(1, min(ROWS_PER_WRITE, most_values // len(self._form.columns)))
        for step in steps:
            command = self._command(step)
            if "\nVALUES\n" not in command.text:
                yield command, {}
                continue
            for first in range(0, len(rows), most):
                yield self._with_rows(command, rows[first : first + most])

    def index(self) -> Command:
        """The index without which rows cannot be merged."""
        return self._command("key_index")

    def _command(self, step: str) -> Command:
        quote, form = self._dialect.quote, self._form
        changes = [self._dialect.change(quote(column), add=column in form.add) for column in self._changed]
        match = [f"stored.{quote(column)} = new.{quote(column)}" for column in form.key]
        names = {
            "columns": ", ".join(map(quote, form.columns)),
            "keys": ", ".join(map(quote, form.key)),
            "changes": ", ".join(changes),
            "match": " AND ".join(match),
            "index": quote(f"{self._table.table}_key"),
        }
        command = self._dialect.statement(f"user_tables.{step}", table=self._table, **names)
        return replace(command, table=self._table.canonical)

    def _with_rows(self, command: Command, rows: Sequence[Sequence[Any]]) -> tuple[Command, dict[str, Any]]:
        """A NULL is written, as an ODBC driver has to ask the server for its type."""
        values: dict[str, Any] = {}
        lines = []
        for number, row in enumerate(rows):
            marks = []
            for place, value in enumerate(row):
                name = f"v{number}_{place}"
                marks.append("NULL" if value is None else self._mark(name, value))
                if value is not None:
                    values[name] = self._dialect.stored(value)
            lines.append(f"({', '.join(marks)})")
        return command.with_rows(lines), values

    def _mark(self, name: str, value: Any) -> str:
        return self._dialect.moment(f":{name}") if isinstance(value, datetime) else f":{name}"
