"""A statement ready to run."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from queue_pipeline.transport.database.statements import VALUE, value_names

_ESCAPED = re.compile(r"\\(?=:)")
_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Command:
    """A statement with its names filled in, and the queue, or the user's own table, that an error should name."""

    text: str
    """As `text()` reads it: values as `:name`, other colons behind a backslash."""
    queue: str | None = None
    table: str | None = None
    section: str | None = None
    """Where it stands: `sql/postgresql/claim_table.sql: renew`."""

    @property
    def script(self) -> str:
        """The statement as people read it, and as it is sent."""
        return _ESCAPED.sub("", self.text)

    def check(self, values: Mapping[str, Any]) -> None:
        """Refuse values that the statement does not have, and a statement without one of its values."""
        wanted = value_names(self.text)
        if wanted != values.keys():
            missing, more = sorted(wanted - values.keys()), sorted(values.keys() - wanted)
            where = self.section or self.text[:200]
            raise TypeError(f"{where}: values that are missing: {missing}; values that it does not have: {more}")

    def repeated(self, rows: int) -> Command:
        """The same insert for several rows: the line after the line VALUES once a row, its values numbered."""
        return replace(self, text=_repeated(self.text, rows))

    def with_rows(self, rows: Iterable[str]) -> Command:
        """The same insert with other rows in place of the line after the line VALUES."""
        head, _, tail = _cut(self.text)
        return replace(self, text=head + ",\n".join(rows) + tail)

    @property
    def row_values(self) -> tuple[str, ...]:
        """The names of the values of a row, in their order."""
        return tuple(VALUE.findall(_cut(self.text)[1]))


@functools.lru_cache(maxsize=_KEPT)
def _repeated(text: str, rows: int) -> str:
    head, row, tail = _cut(text)
    return head + ",\n".join(VALUE.sub(rf":\1_{number}", row) for number in range(rows)) + tail


def _cut(text: str) -> tuple[str, str, str]:
    head, marker, rest = text.partition("\nVALUES\n")
    if not marker:
        raise ValueError("only a statement with a line VALUES can be repeated")
    row, newline, tail = rest.partition("\n")
    return head + marker, row, newline + tail
