"""Conditions on the messages that a browse reads, and how they stand in its statement: names quoted, values bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Literal

from queue_pipeline.transport.addresses.queues import NSERVICEBUS, layout_of

if TYPE_CHECKING:
    from queue_pipeline.transport.database.command import Command
    from queue_pipeline.transport.database.dialects.dialect import Dialect

Operator = Literal["=", "<", "<=", ">", ">=", "IN", "IS NULL", "IS NOT NULL", "LIKE"]


class Kind(Enum):
    """What a column of section `browse` holds, and so which values it can be compared with."""

    NUMBER = auto()
    FLAG = auto()
    """1 or 0."""
    MOMENT = auto()
    """Milliseconds since 1970."""
    GUID = auto()
    """As text, the beginning can be compared: see `TEXT_OF`."""
    TEXT = auto()
    """Compared by the collation of the column, which may find more than equal texts."""


@dataclass(frozen=True, slots=True)
class BrowsedColumn:
    """A column of section `browse` by which messages can be chosen."""

    kind: Kind
    exact: bool = True
    """Whether the column is what a browsed message says; else it finds those messages, and perhaps more."""


NSERVICEBUS_COLUMNS = {
    "row_version": BrowsedColumn(Kind.NUMBER),
    "id": BrowsedColumn(Kind.GUID),
    "expires": BrowsedColumn(Kind.MOMENT),
    "expired": BrowsedColumn(Kind.FLAG),
}
NGINN_COLUMNS = {
    "row_version": BrowsedColumn(Kind.NUMBER),
    # A row that cannot be read shows neither.
    "sent": BrowsedColumn(Kind.MOMENT, exact=False),
    "message_id": BrowsedColumn(Kind.TEXT, exact=False),
}


def columns_of(queue: str) -> Mapping[str, BrowsedColumn]:
    """The columns by which messages of a queue can be chosen, by the names that browsed messages have for them."""
    return NSERVICEBUS_COLUMNS if layout_of(queue) == NSERVICEBUS else NGINN_COLUMNS


@dataclass(frozen=True, slots=True)
class Condition:
    """What a column of section `browse` has to be."""

    column: str
    operator: Operator
    values: tuple[int | str, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """The messages that one statement of a browse reads."""

    after: int
    limit: int
    conditions: tuple[Condition, ...] = ()
    with_body: bool = True
    """Without, bodies are empty."""


END_OF_WHERE = "\nORDER BY m."
TEXT_OF = "{}_text"
"""Beside a column of GUIDs stands their text, in lower case."""


def with_conditions(
    command: Command, conditions: Iterable[Condition], columns: Mapping[str, BrowsedColumn], dialect: Dialect
) -> tuple[Command, Mapping[str, Any]]:
    """Section `browse` with further conditions at the end of its WHERE clause, and the values that they bind."""
    added = ""
    values: dict[str, int | str] = {}
    for condition in conditions:
        kind = columns[condition.column].kind
        is_text = condition.operator == "LIKE" and kind is Kind.GUID
        name = f"m.{TEXT_OF.format(condition.column) if is_text else condition.column}"
        names = [f"value_{len(values) + number}" for number in range(len(condition.values))]
        values |= dict(zip(names, condition.values, strict=True))
        bound = [dialect.guid(f":{one}") if kind is Kind.GUID and not is_text else f":{one}" for one in names]
        right = f" ({', '.join(bound)})" if condition.operator == "IN" else "".join(f" {one}" for one in bound)
        text = f"{name} {condition.operator}{right}"
        added += f"\n    AND {f'NOT ({text})' if condition.negated else text}"
    head, end, tail = command.text.rpartition(END_OF_WHERE)
    if not end:
        raise ValueError("only a statement over the columns of a derived table m takes conditions")
    return replace(command, text=head + added + end + tail), values
