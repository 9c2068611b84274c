"""Workers that send: in transactions of their own, some of which are rolled back, and by publishing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import sqlalchemy as sa

from queue_pipeline.transport import MessageColumns, OutgoingMessage
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from tools.chaos.arena import EVENT
from tools.chaos.desk import Desk, RolledBack
from tools.chaos.plan import NUMBERS_PER_WORKER, message_id

SENT, DELAYED, PUBLISHED, UNREADABLE = "sent", "delayed", "published", "unreadable"
_ACTIONS = {SENT: 80, DELAYED: 17, UNREADABLE: 3}
_ROLLED_BACK_SHARE = 0.15
_SIZES = (1, 20, 100, 250, 400, 600)


class Sender:
    """Sends numbered messages to the first stage, together with a row that says so."""

    backlog = 4_000

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._next = desk.incarnation * NUMBERS_PER_WORKER

    def step(self) -> bool:
        """Send one block, unless the receivers are behind."""
        desk = self.desk
        if desk.is_draining or desk.transport.peek(desk.arena.stages[0], self.backlog) >= self.backlog:
            time.sleep(0.05)
            return False
        numbers = range(self._next, self._next + desk.chance.choice(_SIZES))
        # A number is used once, also if it is not known whether its transaction was committed.
        self._next = numbers.stop
        kind = self._kind()
        try:
            with desk.transport.transaction() as connection:
                row = {"first_number": numbers.start, "messages": len(numbers), "kind": kind}
                connection.execute(sa.insert(desk.arena.tables.sent), row)
                self._send(numbers, kind, connection)
                if desk.happens(_ROLLED_BACK_SHARE):
                    raise RolledBack
        except RolledBack:
            desk.note("rolled back", len(numbers))
        else:
            desk.acknowledge(numbers.start)
            desk.note(kind, len(numbers))
        return True

    def _kind(self) -> str:
        kind = self.desk.chance.choices(list(_ACTIONS), list(_ACTIONS.values()))[0]
        return SENT if kind == UNREADABLE and self.desk.arena.is_nginn else kind

    def _send(self, numbers: Sequence[int], kind: str, connection: sa.Connection) -> None:
        desk, first = self.desk, self.desk.arena.stages[0]
        if kind == UNREADABLE:
            headers, bodies = zip(*map(desk.arena.plan.unreadable, numbers), strict=True)
            ids = [message_id(0, number) for number in numbers]
            ready = MessageColumns(first, False, ids, [NEVER_EXPIRES] * len(ids), headers, bodies)
            desk.transport.dispatch_columns([ready], connection)
            return
        messages: list[OutgoingMessage] = [desk.arena.plan.message(number) for number in numbers]
        if kind == DELAYED:
            delay = timedelta(seconds=desk.chance.uniform(0, 1))
            messages = [replace(message, delay=delay) for message in messages]
        desk.transport.send(first, messages, connection)


class Publisher(Sender):
    """Publishes numbered events; the first stage and a queue of copies have subscribed to them."""

    backlog = 1_000

    def _kind(self) -> str:
        return PUBLISHED

    def _send(self, numbers: Sequence[int], kind: str, connection: sa.Connection) -> None:
        messages = [self.desk.arena.plan.message(number) for number in numbers]
        self.desk.transport.publish(EVENT, messages, connection)
