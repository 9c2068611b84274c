"""The accountant: reads the tables with statements of its own, and says what became of every message that was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.addresses.queues import (
    CLAIMED_SUFFIX,
    CLAIMS_TABLE,
    DELAYED_SUFFIX,
    OUTBOX_TABLE,
    QueueTable,
)
from queue_pipeline.transport.messages import headers as wire
from tools.chaos.arena import COPIES, ERRORS, RESULTS, Arena
from tools.chaos.desk import acknowledgements
from tools.chaos.plan import CONTENT, MIXED, STAGES, TRAIL, message_id, number_of
from tools.chaos.senders import PUBLISHED, UNREADABLE

NAMED = 20
"""Up to this many differences of each kind are named; all are counted."""
_PAGE = 2_000
_UNREADABLE_PREFIX = b"unreadable "


@dataclass
class Account:
    """What was sent through an arena, and what is not as it should be."""

    arena: str
    sent: int = 0
    results: int = 0
    failed: int = 0
    copies: int = 0
    effects: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    doubled: Counter[str] = field(default_factory=Counter)
    changed: Counter[str] = field(default_factory=Counter)
    left_over: Counter[str] = field(default_factory=Counter)
    never_sent: Counter[str] = field(default_factory=Counter)

    @property
    def differences(self) -> dict[str, Counter[str]]:
        """What is wrong, by kind: descriptions and how often."""
        return {
            "lost": self.lost,
            "doubled": self.doubled,
            "changed": self.changed,
            "left over": self.left_over,
            "never sent": self.never_sent,
        }

    @property
    def is_right(self) -> bool:
        """Whether every message is where it should be, once and unchanged."""
        return not any(self.differences.values())


class Accountant:
    """Compares what is in the database with what was sent."""

    def __init__(self, arena: Arena, folder: Path) -> None:
        self._arena = arena
        self._acknowledged = acknowledgements(folder, arena)
        self._plan = arena.plan
        self._account = Account(arena.name)
        self._sent: dict[int, str] = {}
        self._lost: set[int] = set()
        self._expected_effects: Counter[tuple[int, int]] = Counter()

    def account(self) -> Account:
        """Read everything once."""
        with self._arena.transport() as transport:
            transport.outbox.sweep()
            with transport.database.engine.connect() as connection:
                self._read_sent(connection)
                results, failed, copies = Counter[int](), Counter[int](), Counter[int]()
                for row in _messages(connection, transport, RESULTS):
                    self._read(row, RESULTS, STAGES, results)
                for row in _messages(connection, transport, ERRORS):
                    self._error(row, failed)
                for row in _messages(connection, transport, COPIES):
                    self._read(row, COPIES, 0, copies)
                for stage in range(STAGES) if self._arena.is_nginn else ():
                    self._in_place(connection, transport, stage, failed)
                self._compare(results, failed, copies)
                self._compare_effects(connection)
                self._left_over(connection, transport)
        return self._account

    def _read_sent(self, connection: sa.Connection) -> None:
        table = self._arena.tables.sent
        for first, messages, kind in connection.execute(
            sa.select(table.c.first_number, table.c.messages, table.c.kind)
        ):
            self._sent |= dict.fromkeys(range(first, first + messages), kind)
        self._account.sent = len(self._sent)
        for number in self._acknowledged.read_text().split() if self._acknowledged.exists() else ():
            if int(number) not in self._sent:
                self._account.lost[f"the transaction that sent message {number} was reported as committed"] += 1

    def _error(self, row: Mapping[str, Any], found: Counter[int]) -> None:
        body: bytes = row["body"]
        if body.startswith(_UNREADABLE_PREFIX):
            number = int(body.split()[1])
            found[number] += 1
            if self._sent.get(number) == UNREADABLE and (row["headers"], body) != self._plan.unreadable(number):
                self._account.changed[f"message {number} in {ERRORS}: unreadable headers or body"] += 1
            return
        self._read(row, ERRORS, None, found)

    def _in_place(self, connection: sa.Connection, transport: QueueTransport, stage: int, failed: Counter[int]) -> None:
        """Messages of an NGinn queue stay in its table: processed, failed, or left over."""
        queue = self._arena.stages[stage]
        for row in _messages(connection, transport, queue):
            if row["subqueue"] == "F":
                self._read(row, queue, stage, failed)
            elif row["subqueue"] != "X":
                self._account.left_over[f"{queue}: a message in subqueue {row['subqueue']}"] += 1

    def _read(self, row: Mapping[str, Any], queue: str, stage: int | None, found: Counter[int]) -> None:
        """Compare one message with what was sent under its number."""
        account = self._account
        try:
            headers = row["decoded"] if "decoded" in row else wire.decode(row["headers"])
            number = number_of(headers)
        except (ValueError, KeyError):
            account.changed[f"a message in {queue} has no number: {row['headers'][:200]!r}"] += 1
            return
        found[number] += 1
        original = self._plan.message(number)
        if stage is None:
            stage = self._plan.doomed_at(number) or 0
        expected = {name: original.headers[name] for name in CONTENT}
        differing = [name for name in CONTENT if headers.get(name) != expected[name]]
        differing += [MIXED] if MIXED in headers else []
        if headers.get(wire.MESSAGE_ID, "").replace("-", "") != message_id(stage, number).replace("-", ""):
            differing.append(wire.MESSAGE_ID)
        trail = headers.get(TRAIL, "").split()
        if len(trail) != stage:
            differing.append(TRAIL)
        if row["body"] != original.body:
            differing.append("body")
        if differing:
            account.changed[f"message {number} in {queue}: {', '.join(differing)}"] += 1
        for passed, word in enumerate(trail):
            self._expected_effects[number, passed] += word.endswith("+")

    def _compare(self, results: Counter[int], failed: Counter[int], copies: Counter[int]) -> None:
        account, plan = self._account, self._plan
        account.results, account.failed, account.copies = results.total(), failed.total(), copies.total()
        for number, kind in self._sent.items():
            fails = kind == UNREADABLE or plan.doomed_at(number) is not None
            places = {RESULTS: (results[number], not fails), "failed": (failed[number], fails)}
            if kind == PUBLISHED or number in copies:
                places[COPIES] = (copies[number], kind == PUBLISHED)
            for place, (there, wanted) in places.items():
                if there < wanted:
                    account.lost[f"message {number} ({kind}) is not in {place}"] += 1
                    self._lost.add(number)
                elif there > wanted:
                    account.doubled[f"message {number} ({kind}) is {there} times in {place}, not {int(wanted)}"] += 1
        for number in (results.keys() | failed.keys() | copies.keys()) - self._sent.keys():
            account.never_sent[f"message {number} was rolled back or never sent"] += 1

    def _compare_effects(self, connection: sa.Connection) -> None:
        """Every row that a worker wrote belongs to a message that passed it, and every such message has its row."""
        table = self._arena.tables.effects
        found = Counter[tuple[int, int]]()
        for number, stage in connection.execute(sa.select(table.c.number, table.c.stage)):
            found[number, stage] += 1
        self._account.effects = found.total()
        for number, stage in found.keys() | self._expected_effects.keys():
            there, wanted = found[number, stage], min(1, self._expected_effects[number, stage])
            if number in self._lost and there == 1:
                # No copy of it says who processed it; that it is lost was said already.
                continue
            if there < wanted:
                self._account.lost[f"the row of message {number} at stage {stage}"] += 1
            elif there > wanted:
                self._account.doubled[f"the row of message {number} at stage {stage} is there {there} times"] += 1

    def _left_over(self, connection: sa.Connection, transport: QueueTransport) -> None:
        book = transport.book
        queues = [transport.resolve(queue) for queue in self._arena.with_delays]
        tables = [table for table in queues if table.layout != "nginn"]
        tables += [book.sibling(table, DELAYED_SUFFIX) for table in tables]
        tables += [book.sibling(table, CLAIMED_SUFFIX) for table in queues]
        tables += [book.own(CLAIMS_TABLE), book.own(OUTBOX_TABLE)]
        for table in tables:
            rows = connection.execute(sa.select(sa.func.count()).select_from(_table(table))).scalar_one()
            if rows:
                self._account.left_over[f"rows in {table.table}"] += rows


def _table(table: QueueTable, *columns: str) -> sa.TableClause:
    quoted = sa.quoted_name(table.table, quote=True)
    schema = sa.quoted_name(table.schema, quote=True) if table.schema else None
    return sa.table(quoted, *map(sa.column, columns), schema=schema)


def _messages(connection: sa.Connection, transport: QueueTransport, queue: str) -> Iterator[dict[str, Any]]:
    """The rows of a queue's table, page by page."""
    resolved = transport.resolve(queue)
    is_nginn = resolved.layout == "nginn"
    order = "id" if is_nginn else "seq" if connection.dialect.name == "postgresql" else "RowVersion"
    names = ("msg_headers", "msg_text", "subqueue", "unique_id", "correlation_id") if is_nginn else ("headers", "body")
    table = _table(resolved, order, *names)
    after = None
    while True:
        query = sa.select(table).order_by(table.c[order]).limit(_PAGE)
        rows = connection.execute(query if after is None else query.where(table.c[order] > after)).all()
        for row in rows:
            after = row[0]
            yield _nginn_row(row) if is_nginn else {"headers": row[1], "body": bytes(row[2] or b"")}
        if len(rows) < _PAGE:
            return


def _nginn_row(row: Any) -> dict[str, Any]:
    _, headers, text, subqueue, unique_id, correlation_id = row
    own = dict(pair.split("=", 1) for pair in (headers or "").split("|") if pair)
    decoded = {**own, wire.MESSAGE_ID: unique_id or "", wire.CORRELATION_ID: correlation_id}
    return {"headers": headers or "", "decoded": decoded, "body": (text or "").encode(), "subqueue": subqueue}
