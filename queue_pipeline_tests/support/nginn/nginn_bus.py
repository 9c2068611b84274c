"""An NGinn queue as a test sees it: whole rows, and what a .NET process beside us would do to them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.layouts.nginn.subscriptions import control_type
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import Backend

SENDER = "sql://db/Sender"
ORDERS = "sql://db/Orders"
BILLING = "sql://db/Billing"
PLACED = "Shop.OrderPlaced, Shop"
TYPES = {PLACED: "shop.order-placed"}

COLUMNS = (
    "id",
    "from_endpoint",
    "to_endpoint",
    "subqueue",
    "insert_time",
    "last_processed",
    "retry_count",
    "retry_time",
    "error_info",
    "correlation_id",
    "label",
    "msg_text",
    "msg_headers",
    "unique_id",
)
TIMES = ("insert_time", "last_processed", "retry_time", "created_date", "expiration_date", "last_modified")

StoredRow = dict[str, Any]


def settings(**options: Any) -> NGinnSettings:
    """The settings of the tests' buses."""
    return NGinnSettings(**{"aliases": ("db", "main"), "endpoint": SENDER, "types": TYPES, **options})


def placed(n: int, **options: Any) -> OutgoingMessage:
    """An order, numbered."""
    return new_message(json.dumps({"n": n}), message_type="shop.order-placed", **options)


def body_of(n: int) -> str:
    """The text of an order as a .NET bus writes it."""
    return f'{{"$type":"{PLACED}","n":{n}}}'


def number_of(body: bytes | str) -> int:
    """The number of an order."""
    return int(json.loads(body)["n"])


@dataclass
class Bus:
    """A transport, and the tables behind it."""

    backend: Backend
    transport: QueueTransport

    def other(self, **options: Any) -> Bus:
        """Another process on the same database, with settings of its own."""
        return Bus(self.backend, self.backend.transport(nginn=settings(**options)))

    def send(self, count: int, queue: str = ORDERS) -> None:
        """Send numbered orders."""
        self.transport.send(queue, [placed(n) for n in range(count)])

    def moment(self, seconds: float = 0) -> str:
        """SQL for a moment by the database's clock, in the form of the columns."""
        return {
            "sqlite": f"strftime('%Y-%m-%d %H:%M:%f', 'now', '{seconds:+} seconds')",
            "postgresql": f"((clock_timestamp() AT TIME ZONE 'UTC') + INTERVAL '{seconds} seconds')",
            "sqlserver": f"DATEADD(millisecond, {round(seconds * 1000)}, GETDATE())",
        }[self.backend.name]

    def now(self) -> datetime:
        """The database's clock."""
        return _time(self.sql(f"SELECT {self.moment()}")[0][0])

    def insert(self, text: str | None = None, queue: str = ORDERS, **columns: Any) -> int:
        """A row as a .NET bus would insert it; returns its id. A retry time is given in seconds from now."""
        values = {
            "from_endpoint": SENDER,
            "to_endpoint": queue,
            "subqueue": "I",
            "retry_count": 0,
            "correlation_id": None,
            "label": "Shop.OrderPlaced",
            "msg_text": text,
            "msg_headers": "",
            "unique_id": "0123456789abcdef0123456789abcdef2",
            **columns,
        }
        due = self.moment(values.pop("retry_time", 0))
        table, names = self.table(queue), ", ".join(values)
        marks = ", ".join("?" * len(values))
        insert = f"INSERT INTO {table} (insert_time, retry_time, {names}) VALUES ({self.moment()}, {due}, {marks})"
        self.execute(insert, tuple(values.values()))
        return int(self.sql(f"SELECT max(id) FROM {table}")[0][0])

    def insert_control(self, kind: str, queue: str = ORDERS, sender: str = SENDER, **members: Any) -> int:
        """A message from bus to bus, as .NET writes it."""
        body = json.dumps({"$type": control_type(kind), **members}, separators=(",", ":"))
        return self.insert(body, queue, from_endpoint=sender)

    def rows(self, queue: str = ORDERS) -> list[StoredRow]:
        """The whole table, in the order of ids."""
        return self.table_rows(self.table(queue), COLUMNS, "id")

    def row(self, row_id: int, queue: str = ORDERS) -> StoredRow:
        """One row as it is."""
        return next(row for row in self.rows(queue) if row["id"] == row_id)

    def subqueues(self, queue: str = ORDERS) -> str:
        """Where the messages are, as a text such as `IIX`."""
        return "".join(row["subqueue"] for row in self.rows(queue))

    def table_rows(self, table: str, columns: Iterable[str], order: str) -> list[StoredRow]:
        """Rows of any table, times as datetimes."""
        found = self.sql(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
        return [
            {name: _time(value) if name in TIMES else value for name, value in zip(columns, row, strict=True)}
            for row in found
        ]

    def subscriptions(self) -> list[StoredRow]:
        """The table of subscriptions."""
        table = self.transport.nginn.subscriptions.table.qualified
        columns = ("publisher_endpoint", "subscriber_endpoint", "message_type", "created_date", "expiration_date")
        return self.table_rows(table, columns, "subscriber_endpoint, message_type")

    def sequences(self) -> dict[str, Any]:
        """The state of each living sequence."""
        table = self.transport.nginn.incoming.sequences.table.qualified
        return {row[0]: json.loads(row[1]) for row in self.sql(f"SELECT id, data FROM {table}")}

    def claimed(self, queue: str = ORDERS) -> list[StoredRow]:
        """What is noted of messages in work."""
        table = self.transport.book.claim_tables(self.transport.resolve(queue)).claimed.qualified
        found = self.sql(f"SELECT claim_id, id, due, lease FROM {table} ORDER BY id")
        return [
            {"claim_id": str(claim).lower(), "id": row, "due": _time(due), "lease": _time(lease)}
            for claim, row, due, lease in found
        ]

    def set_due(self, seconds: float, row_id: int, queue: str = ORDERS) -> None:
        """Move the time at which a message is due."""
        self.execute(f"UPDATE {self.table(queue)} SET retry_time = {self.moment(seconds)} WHERE id = ?", (row_id,))

    def end_leases(self, queue: str = ORDERS) -> None:
        """Let every lease run out, as if the holders had died."""
        claimed = self.transport.book.claim_tables(self.transport.resolve(queue)).claimed.qualified
        table = self.table(queue)
        mine = f"SELECT c.lease FROM {claimed} c WHERE c.id = {table}.id AND c.lease = {table}.retry_time"
        claims = self.transport.book.own("QueueClaims").qualified
        lease, past = {
            "postgresql": ("lease_until", "now() - interval '1 second'"),
            "sqlite": ("LeaseUntil", "0"),
            "sqlserver": ("LeaseUntil", "DATEADD(second, -1, SYSUTCDATETIME())"),
        }[self.backend.name]
        # In two steps, so that a message that is no longer its claim's does not become so again.
        self.execute(f"DELETE FROM {claimed} WHERE id NOT IN (SELECT id FROM {table})")
        held = [row[0] for row in self.sql(f"SELECT id FROM {table} WHERE subqueue = 'R' AND EXISTS ({mine})")]
        self.execute(f"UPDATE {claimed} SET lease = {self.moment(-1)}")
        for row_id in held:
            set_to = f"(SELECT c.lease FROM {claimed} c WHERE c.id = {table}.id)"
            self.execute(f"UPDATE {table} SET retry_time = {set_to} WHERE id = ?", (row_id,))
        self.execute(f"UPDATE {claims} SET {lease} = {past}")

    def peer_schedules(self, queue: str = ORDERS) -> None:
        """The scheduler's pass of a .NET process."""
        due = f"subqueue = 'R' AND retry_time <= {self.moment()}"
        self.execute(f"UPDATE {self.table(queue)} SET subqueue = 'I' WHERE {due}")

    def peer_receives(self, row_id: int, queue: str = ORDERS) -> None:
        """A .NET worker processes one message that is ready."""
        done = f"subqueue = 'X', last_processed = {self.moment()}"
        self.execute(f"UPDATE {self.table(queue)} SET {done} WHERE id = ? AND subqueue = 'I'", (row_id,))

    def table(self, queue: str) -> str:
        """The quoted name of a queue's table."""
        return self.transport.resolve(queue).qualified

    def sql(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Rows of a statement of the test's own."""
        return self.backend.sql(self.transport, statement, parameters)

    def execute(self, statement: str, parameters: tuple[Any, ...] = ()) -> None:
        """Run a statement of the test's own, committed at once."""
        self.backend.sql(self.transport, statement, parameters)


def changed(before: StoredRow, after: StoredRow) -> set[str]:
    """The columns that differ."""
    return {name for name in before if before[name] != after[name]}


def _time(value: Any) -> Any:
    return datetime.fromisoformat(value) if isinstance(value, str) else value
