"""What every worker has at hand: its transport, its chances, its journal, and how a message is handled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

import sqlalchemy as sa

from queue_pipeline.transport import Claim, Operation, OutgoingMessage, QueueTransport, ReceivedMessage, RowsRead
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.failed.error_message import Failure, error_message
from tools.chaos.arena import ERRORS, Arena
from tools.chaos.plan import forwarded, number_of

DRAIN = "drain"
"""The file that says: no faults any more, nothing new is sent, what is there is processed."""
STOP = "stop"
"""The file that says: end after what is in work."""
UNEXPECTED = "unexpected"
"""How a note begins that makes the whole run a failure."""
DOOMED = "Chaos.Doomed"
_DELAYED_SHARE = 0.02


def acknowledgements(folder: Path, arena: Arena) -> Path:
    """Where senders of an arena note what was reported to them as committed."""
    return folder / f"acknowledged {arena.name}"


class RolledBack(Exception):
    """What a worker raises in a transaction that is to be undone."""


class Passing(Exception):
    """A failure that another attempt does not meet again."""


class Doomed(Exception):
    """The failure of a message that fails whenever it is tried."""


@dataclass
class Handled:
    """What comes of messages at a stage."""

    operations: list[Operation] = field(default_factory=list)
    effects: list[dict[str, int]] = field(default_factory=list)
    doomed: list[ReceivedMessage] = field(default_factory=list)


@dataclass
class Desk:
    """One worker's view of its arena."""

    arena: Arena
    kind: str
    incarnation: int
    transport: QueueTransport
    folder: Path
    pipe: Pipe
    chance: random.Random

    @property
    def owner(self) -> str:
        """The name under which it claims."""
        return f"{self.kind} {self.incarnation}"

    @property
    def is_draining(self) -> bool:
        """Whether the faults are over and everything is to be finished."""
        return (self.folder / DRAIN).exists()

    @property
    def is_stopped(self) -> bool:
        """Whether its work is over."""
        return (self.folder / STOP).exists()

    def note(self, action: str, count: int = 1) -> None:
        """Report what was done; a worker that is killed before it reports has done it all the same."""
        self.pipe.send((action, count))

    def acknowledge(self, number: int) -> None:
        """Note, outside of the database, that a transaction that sent from this number on was reported as committed."""
        with acknowledgements(self.folder, self.arena).open("a") as file:
            file.write(f"{number}\n")

    def happens(self, share: float) -> bool:
        """Whether a mishap of this probability happens; never while draining."""
        return self.chance.random() < share and not self.is_draining

    def stage(self) -> int:
        """The stage to look at next."""
        return self.chance.randrange(len(self.arena.stages))

    def handle(self, messages: Iterable[ReceivedMessage], stage: int, *, effect: bool) -> Handled:
        """Process messages at a stage: sends for the next one, and rows of our own."""
        handled, plan, queue = Handled(), self.arena.plan, self.arena.next_queue(stage)
        for message in messages:
            number = number_of(message.headers)
            if plan.doomed_at(number) == stage:
                handled.doomed.append(message)
                continue
            headers = forwarded(message.headers, stage, self.kind, effect=effect)
            delayed = self.chance.random() < _DELAYED_SHARE
            delay = timedelta(seconds=self.chance.uniform(0.05, 0.8)) if delayed else None
            handled.operations.append(Operation(queue, OutgoingMessage(message.body, headers, delay=delay)))
            if effect:
                handled.effects.append({"number": number, "stage": stage})
        return handled

    def failures(self, doomed: Iterable[ReceivedMessage], stage: int) -> list[Operation]:
        """Copies for the error queue, as an endpoint sends them."""
        failure, queue = Failure(DOOMED, "this message always fails"), self.arena.stages[stage]
        failed = (error_message(one.headers, one.body, failure, queue, self.kind) for one in doomed)
        return [Operation(ERRORS, message) for message in failed]

    def complete(
        self,
        claim: Claim,
        stage: int,
        handled: Handled,
        operations: Iterable[Operation],
        poison: Iterable[tuple[int, str]],
        read: RowsRead,
        staged: Sequence[StagedGroup] = (),
    ) -> None:
        """End a claim with its results; an NGinn queue keeps its failed messages, others have an error queue."""
        is_nginn = self.arena.is_nginn
        self.transport.claims.complete(
            Completion(
                claim,
                [*operations, *([] if is_nginn else self.failures(handled.doomed, stage))],
                self.write_effects(handled.effects),
                unreadable=[row for row, _ in poison],
                staged=staged,
                failed=[FailedRow(one.row_version, DOOMED) for one in handled.doomed] if is_nginn else (),
                read=read,
            )
        )

    def write_effects(self, rows: Sequence[dict[str, int]]) -> Callable[[sa.Connection], None]:
        """The caller's own statements in a transaction of the transport's."""

        def write(connection: sa.Connection) -> None:
            if rows:
                connection.execute(sa.insert(self.arena.tables.effects), list(rows))

        return write
