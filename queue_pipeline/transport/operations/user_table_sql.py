"""How rows go into a table of the user's own: the statements, composed of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from queue_pipeline.transport.database.command import Command

if TYPE_CHECKING:
    from queue_pipeline.transport.addresses.queues import QueueTable
    from queue_pipeline.transport.database.dialects.dialect import Dialect

ROWS_PER_WRITE = 500
"""More make it no faster."""


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


class RowWriter:
    """The statements of a form, for one dialect."""

    def __init__(self, dialect: Dialect, form: RowForm) -> None:
        self._dialect = dialect
        self._form = form

    def writes(self, rows: Sequence[Sequence[Any]], most_values: int) -> Iterator[tuple[Command, dict[str, Any]]]:
        """The statements that write these rows, and their values, in order."""
        steps = self._dialect.user_table_steps(merge=bool(self._form.key), changes=bool(self._form.changed))
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
        changes = [self._dialect.change(quote(column), add=column in form.add) for column in form.changed]
        match = [f"stored.{quote(column)} = new.{quote(column)}" for column in form.key]
        names = {
            "columns": ", ".join(map(quote, form.columns)),
            "keys": ", ".join(map(quote, form.key)),
            "changes": ", ".join(changes),
            "match": " AND ".join(match),
            "index": quote(f"{form.table.table}_key"),
        }
        command = self._dialect.statement(f"user_tables.{step}", table=form.table, **names)
        return replace(command, table=form.table.canonical)

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
