"""The shop's database: its queues and tables, who sends to it, and what a look at it finds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.transport import OutgoingMessage, QueueTransport
from queue_pipeline.transport.addresses.queues import CLAIMED_SUFFIX, DELAYED_SUFFIX
from tools.chaos.dagster.background import Background
from tools.chaos.dagster.plan import (
    BILLED,
    BILLING,
    HARMFUL,
    HOSTILE,
    HOSTILE_ERRORS,
    HOSTILE_RESULTS,
    INPUTS,
    ORDER,
    ORDERS,
    PLAIN,
    TOTALS,
    action,
    hostile_message,
    order_message,
)

METADATA = sa.MetaData()
SENT = sa.Table(
    "chaos_sent",
    METADATA,
    sa.Column("flow", sa.String(20), primary_key=True),
    sa.Column("first_number", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("messages", sa.Integer, nullable=False),
    sa.Column("action", sa.String(20), nullable=False),
)
"""What was sent, written by the transaction that sends."""
SUMS = {
    name: sa.Table(
        name,
        METADATA,
        sa.Column("customer", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("messages", sa.BigInteger, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
    )
    for name in (TOTALS, BILLED)
}
_TRICKLE_SECONDS = 1.0
_LUMP_SHARE, _LUMPS = 0.05, (100, 300, 600)
_HOSTILE_SHARE = 0.12
_MOST_WAITING = 3_000


class Look(NamedTuple):
    """What one look found of a pipeline."""

    done: int
    """Messages that were completed, ever."""
    waiting: int
    """Messages that wait, are delayed or in work."""


def install(transport: QueueTransport) -> None:
    """Create queues and tables."""
    transport.install(*INPUTS, plain_queues=list(PLAIN))
    METADATA.create_all(transport.database.engine)


def look(connection: sa.Connection) -> dict[str, Look]:
    """The figures of all pipelines, in one statement; tables that only count up are kept small by the rate."""
    parts = []
    for pipeline, done in _DONE.items():
        waiting = " + ".join(f'(SELECT count(*) FROM "{pipeline}{end}")' for end in _WAITING_IN)
        parts.append(f"SELECT '{pipeline}', {done}, {waiting}")
    rows = connection.execute(sa.text(" UNION ALL ".join(parts)))
    return {name: Look(int(done), int(waiting)) for name, done, waiting in rows}


_WAITING_IN = ("", f".{CLAIMED_SUFFIX}", f".{DELAYED_SUFFIX}")
_DONE = {
    ORDERS: f'(SELECT coalesce(sum(messages), 0) FROM "{TOTALS}")',
    BILLING: f'(SELECT coalesce(sum(messages), 0) FROM "{BILLED}")',
    HOSTILE: f'(SELECT count(*) FROM "{HOSTILE_RESULTS}") + (SELECT count(*) FROM "{HOSTILE_ERRORS}")',
}


class Sender(Background):
    """Sends orders in a trickle with lumps, and hostile messages, in a thread of its own."""

    def __init__(self, transport: QueueTransport, seed: int, harmful: Sequence[str] = HARMFUL) -> None:
        self._transport = transport
        self._seed = seed
        self._harmful = harmful
        self._chance = random.Random(f"{seed}/sender")
        self._next = {ORDERS: 0, HOSTILE: 0}
        super().__init__("sender")
        self.sent = 0
        """Messages whose transaction was reported as committed."""

    def send_orders(self, count: int) -> None:
        """Some orders, in one transaction."""
        numbers = self._numbers(ORDERS, count)
        self._send(ORDERS, numbers.start, ORDER, [order_message(number) for number in numbers])

    def send_hostile(self, chosen: str | None = None) -> None:
        """One hostile message, which does what the seed says or what is chosen."""
        number = self._numbers(HOSTILE, 1).start
        asked = chosen or action(self._seed, number, self._harmful)
        self._send(HOSTILE, number, asked, [hostile_message(number, asked)])

    def _run(self) -> None:
        while not self._is_closed.wait(_TRICKLE_SECONDS):
            chance = self._chance.random()
            count = self._chance.choice(_LUMPS) if chance < _LUMP_SHARE else self._chance.choice((1, 2, 3))
            try:
                if count and self._transport.peek(ORDERS, _MOST_WAITING) < _MOST_WAITING:
                    self.send_orders(count)
                if self._chance.random() < _HOSTILE_SHARE:
                    self.send_hostile()
            except QueuePipelineError:
                # The database is away: whether this was committed is in its table.
                continue

    def _numbers(self, queue: str, count: int) -> range:
        """Numbers are used once, also if it is not known whether their transaction was committed."""
        first = self._next[queue]
        self._next[queue] += count
        return range(first, first + count)

    def _send(self, queue: str, first: int, kind: str, messages: Sequence[OutgoingMessage]) -> None:
        with self._transport.transaction() as connection:
            row = {"flow": queue, "first_number": first, "messages": len(messages), "action": kind}
            connection.execute(sa.insert(SENT), row)
            self._transport.send(queue, messages, connection)
        self.sent += len(messages)
