"""What differs between the tables of NServiceBus and of NGinn: a queue's layout implements these roles.

Methods that take a transaction are steps inside it; the others open their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from queue_pipeline.errors import ClaimLostError
    from queue_pipeline.transport.addresses.queues import ClaimTables, QueueTable
    from queue_pipeline.transport.claims.claim import Claim
    from queue_pipeline.transport.claims.completion import Completion
    from queue_pipeline.transport.database.dialects.dialect import Bounds, Row
    from queue_pipeline.transport.database.transaction import Transaction
    from queue_pipeline.transport.failed.failed_message import Selection
    from queue_pipeline.transport.failed.returns import Retried
    from queue_pipeline.transport.index_audit.findings import Finding
    from queue_pipeline.transport.inspection.browsed import BrowsedMessage
    from queue_pipeline.transport.inspection.conditions import Page
    from queue_pipeline.transport.inspection.status import QueueStatus
    from queue_pipeline.transport.layouts.refused_rows import Leaving
    from queue_pipeline.transport.messages.event import Event
    from queue_pipeline.transport.messages.message import Destination, ReceivedMessage


class Rows(Protocol):
    """Between messages and rows."""

    def delayed_table(self, destination: QueueTable) -> QueueTable:
        """Where messages for a queue wait until they are due."""

    def encode(
        self, transaction: Transaction, table: QueueTable, rows: Iterator[Row], *, delayed: bool
    ) -> Iterator[Row]:
        """Rows in the form in which a table keeps them, made as they are asked for."""

    def check(self, table: QueueTable, rows: Iterator[Row]) -> None:
        """Refuse, before anything is written, what `encode` would refuse."""

    def read(
        self, transaction: Transaction, tables: ClaimTables, values: Mapping[str, Any], *, body: bool = True
    ) -> Sequence[Sequence[Any]]:
        """Claimed messages: id, row version, headers, body, two of version 1. `values`: claim_id, first, last."""

    def show(self, transaction: Transaction, queue: QueueTable, limit: int) -> Sequence[BrowsedMessage]:
        """The oldest messages, left where they are."""

    def browse(
        self, transaction: Transaction, queue: QueueTable, page: Page, *, failed: bool
    ) -> Sequence[BrowsedMessage]:
        """A page of messages, or of those that failed; an error queue is a queue like any other."""


class ClaimRows(Protocol):
    """What a claim does to the rows of its queue."""

    def take(
        self, transaction: Transaction, tables: ClaimTables, owner: str, bounds: Bounds, lease: int, leaving: Leaving
    ) -> Claim | None:
        """A claim of the first messages that are ready; None if there are none. `leaving` as in `past_refusals`."""

    def regain(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> Claim | None:
        """What is left of a claim that was taken over, held for `lease` milliseconds; None if nothing is."""

    def hold(self, transaction: Transaction, tables: ClaimTables, claim: Claim, lease: int) -> None:
        """Hold the messages of a claim whose lease was renewed."""

    def finish(self, transaction: Transaction, tables: ClaimTables, done: Completion) -> None:
        """End the messages of a claim, exactly those that were read; may raise `RefusedCompletionError`."""

    def dead_letter(
        self, transaction: Transaction, tables: ClaimTables, claim: Claim, row_versions: Sequence[int]
    ) -> None:
        """Take unreadable messages out of a claim, to where failed ones are."""

    def give_back(self, transaction: Transaction, tables: ClaimTables, claim: Claim) -> int:
        """Make a claim's messages ready again, for readers that know nothing of claims; returns how many."""

    def marked(self, transaction: Transaction, tables: ClaimTables, claim: Claim, text: str) -> list[int]:
        """The row versions of messages whose headers hold a text."""

    def send_on(self, queue: QueueTable, row_versions: Sequence[int]) -> int:
        """Send messages that are for other queues there, each in a transaction of its own if one is refused."""


class Intake(NamedTuple):
    """What one receive took: messages to hand over, and how many it dealt with itself."""

    messages: list[ReceivedMessage]
    expired: int
    forwarded: int
    poisoned: int


class Receiving(Protocol):
    """Receiving in an open transaction."""

    def take(self, transaction: Transaction, queue: QueueTable, max_messages: int, leaving: Leaving) -> Intake:
        """Take rows until there is a message to hand over or the queue is empty."""

    def attempts(self, queue: QueueTable, messages: list[ReceivedMessage]) -> AbstractContextManager[None]:
        """Count a failed attempt of the messages if the block fails, where readers of a queue share a count."""


class Delayed(Protocol):
    """Messages that become due."""

    def move_due(self, queue: QueueTable, batch: int, *, once: bool = False) -> int:
        """Make what is due now ready, or `once` one batch of it; returns how many."""

    def next_due_seconds(self, queue: QueueTable) -> float | None:
        """Seconds until the next message is due, negative when overdue; None without one."""


class Tables(Protocol):
    """A queue's tables, for operators."""

    def discover(self) -> list[QueueTable]:
        """Every table in the default schema that has the shape of a queue of this layout."""

    def status(self, queue: QueueTable, most_counted: int) -> QueueStatus:
        """The figures of one queue; messages are counted up to a limit."""

    def issued(self, queue: QueueTable) -> int | None:
        """The last number that a queue gave to a message, which counts arrivals; None where that is not known."""

    def purge(self, queue: QueueTable, batch: int) -> int:
        """Delete a batch of what need not be kept; returns how many."""

    def audit(self, queue: QueueTable) -> list[Finding]:
        """Everything that is wrong with a queue's tables."""

    def missing_indexes(self, queue: QueueTable) -> list[Finding]:
        """Only what makes work on the queue slow."""


class Failures(Protocol):
    """Failed messages, from the error queue or the queue that keeps them."""

    def retry(
        self,
        home: QueueTable,
        selection: Selection,
        /,
        to: Destination | None = None,
        *,
        on_progress: Callable[[int], object] | None = None,
    ) -> Retried:
        """Return the chosen messages to be tried again."""

    def discard(
        self, home: QueueTable, selection: Selection, /, *, on_progress: Callable[[int], object] | None = None
    ) -> int:
        """Delete the chosen messages for good; returns how many."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What the rows of a queue mean, role by role."""

    rows: Rows
    claims: ClaimRows
    receiving: Receiving
    delayed: Delayed
    tables: Tables
    failures: Failures
    subscribers: Callable[[QueueTable, Event], tuple[str, ...]]
    """The addresses of all who want an event that the endpoint of a queue publishes."""
    keeps_failed: bool
    """Whether a failed message stays in its queue, as a failed one; else a copy goes to an error queue."""
    retry_seconds: Sequence[float] | None
    """The waits between retries, where all readers of such a queue share a schedule."""


class Layouts:
    """The layouts by name."""

    def __init__(self, layouts: Mapping[str, Layout]) -> None:
        self._layouts = layouts

    def __iter__(self) -> Iterator[Layout]:
        return iter(self._layouts.values())

    def of(self, queue: QueueTable) -> Layout:
        """That of a queue's table."""
        return self._layouts[queue.layout]


class RefusedCompletionError(Exception):
    """A completion that must not be done; the messages of the claim need a step of their own instead."""

    def __init__(self, error: ClaimLostError, follow_up: Callable[[Transaction], object]) -> None:
        """`error` is raised to the caller; `follow_up` ends the claim without results, in a transaction of its own."""
        super().__init__(str(error))
        self.error = error
        self.follow_up = follow_up
