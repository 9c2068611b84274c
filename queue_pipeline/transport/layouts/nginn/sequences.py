"""Sequences of NGinn.MessageBus: numbered messages that are processed in their order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.messages import headers as wire

POSTPONE_MILLISECONDS = 8_390
"""The delay of a message that waits for an earlier one, which may release it sooner."""
LONGEST_ID = 100
LONGEST_NUMBER = 18


class Numbered(NamedTuple):
    """A message of a sequence."""

    row: int
    sequence: str
    number: int
    length: int | None


@dataclass(slots=True)
class State:
    """The progress of a sequence, in the JSON form of .NET readers."""

    id: str
    last: int | None = None
    waiting: dict[int, int] = field(default_factory=dict)
    """Rows of messages that wait for earlier ones, by number."""
    length: int | None = None

    @classmethod
    def read(cls, sequence: str, text: str) -> State:
        """The state in a row of the table."""
        kept: Any = json.loads(text)
        last, length = kept.get("LastProcessedNumber"), kept.get("Length")
        waiting = {
            int(number): int(row) for number, row in (kept.get("RemainingMessages") or {}).items() if number[0] != "$"
        }
        return cls(sequence, None if last is None or last < 0 else int(last), waiting, length)

    def text(self) -> str:
        """The state as a row of the table keeps it."""
        kept = {
            "Id": self.id,
            "LastProcessedNumber": self.last,
            "RemainingMessages": {str(number): row for number, row in sorted(self.waiting.items())},
            "LastMessageSeen": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "Length": self.length,
        }
        return json.dumps({name: value for name, value in kept.items() if value is not None}, separators=(",", ":"))

    @property
    def next(self) -> int:
        """The next number to process."""
        return 0 if self.last is None else self.last + 1

    @property
    def is_complete(self) -> bool:
        """Whether the last message was processed."""
        return self.length is not None and self.next >= self.length

    def admit(self, messages: Iterable[Numbered]) -> tuple[list[int], list[int]]:
        """Rows whose turn it is, one after the other, and rows that have to wait; what came before comes again.

        `messages` are in the order in which they will be read: one that stands before its predecessor waits as well.
        """
        turn, reached, now, later = self.next, -1, [], []
        for place, message in sorted(enumerate(messages), key=lambda one: one[1].number):
            self.length = self.length if message.length is None else message.length
            if message.number < self.next or (message.number <= turn and place > reached):
                if message.number >= self.next:
                    turn, reached = message.number + 1, place
                now.append(message.row)
                self.waiting.pop(message.number, None)
            else:
                later.append(message.row)
                self.waiting[message.number] = message.row
        return now, later

    def handled(self, messages: Iterable[Numbered]) -> bool:
        """Record processed messages in their order; False if a number before one of them is missing."""
        for message in sorted(messages, key=lambda one: one.number):
            self.length = self.length if message.length is None else message.length
            if message.number > self.next:
                return False
            self.last = max(message.number, -1 if self.last is None else self.last)
            self.waiting.pop(message.number, None)
        return True


def numbered(in_sequence: Mapping[int, Mapping[str, str]]) -> list[Numbered]:
    """The messages of sequences among rows with these headers; one without a number belongs to none."""
    found = []
    for row, headers in in_sequence.items():
        sequence, number = headers.get(wire.NGINN_SEQUENCE, ""), _number(headers.get(wire.NGINN_SEQUENCE_NUMBER))
        if number is not None and 0 < len(sequence) <= LONGEST_ID:
            found.append(Numbered(row, sequence, number, _number(headers.get(wire.NGINN_SEQUENCE_LENGTH))))
    return found


def _number(text: str | None) -> int | None:
    """A number of a sequence; any other text is no number."""
    return int(text) if text and text.isdecimal() and len(text) <= LONGEST_NUMBER else None


class Sequences:
    """Decides which message is next, in the transaction that takes or completes messages."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def admit(self, transaction: Transaction, messages: Sequence[Numbered]) -> list[int]:
        """The rows among these that have to wait for others."""
        waiting: list[int] = []
        for state, own in self._states(transaction, messages):
            known = dict(state.waiting)
            _, later = state.admit(own)
            waiting += later
            # Also what no longer waits: making it ready later would take it from the process that works on it.
            if state.waiting != known:
                self._keep(transaction, state)
        return waiting

    def handle(
        self, transaction: Transaction, messages: Sequence[Numbered], release: Callable[[int], object]
    ) -> list[int]:
        """Record processed messages and `release` the next row; returns rows out of turn, whose work must be undone."""
        out_of_turn: list[int] = []
        for state, own in self._states(transaction, messages):
            if not state.handled(own):
                turn = state.next
                out_of_turn += [one.row for one in own if one.number >= turn]
                continue
            if (row := state.waiting.get(state.next)) is not None:
                release(row)
            self._keep(transaction, state)
        return out_of_turn

    def _states(self, transaction: Transaction, messages: Sequence[Numbered]) -> Iterable[tuple[State, list[Numbered]]]:
        """The state of each sequence, locked in a fixed order, so that processes do not deadlock."""
        for sequence in sorted({one.sequence for one in messages}):
            fresh = State(sequence).text()
            rows = transaction.rows(self._statement("sequence_open"), state=fresh, sequence=sequence)
            if self._database.dialect.has("nginn/bus.sequence_lock"):
                rows = transaction.rows(self._statement("sequence_lock"), sequence=sequence)
            yield State.read(sequence, str(rows[0][0])), [one for one in messages if one.sequence == sequence]

    def _keep(self, transaction: Transaction, state: State) -> None:
        if state.is_complete:
            transaction.execute(self._statement("sequence_end"), sequence=state.id)
        else:
            transaction.execute(self._statement("sequence_save"), state=state.text(), sequence=state.id)

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"nginn/bus.{name}", sequences=self.table)

    @property
    def table(self) -> QueueTable:
        """Where the state of sequences is kept; its name differs between versions, and is a setting."""
        return self._book.own(self._book.nginn.sequences_table)
