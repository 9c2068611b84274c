"""A peer on an NGinn queue: the statements of the .NET reader and no others, as a program or inside a test.

Of this project it uses the connections only. On PostgreSQL and SQLite, which the reference does not know, its
statements are said in the words of those databases. Every message that it handled stands in a table of its own, written
in the transaction of the receive.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from queue_pipeline.errors import TransientDatabaseError
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline.transport.database.transaction import Transaction

HANDLED = "peer_handled"
SENT = "peer_sent"
"""A row in it says that a sender has sent all that it had to."""
PRESENT = "peer_present"
"""A row in it says that a process of a fleet is ready to begin."""
TYPE = "Shop.Order, Shop"
SCHEDULER_ROWS = 1_000
CLEANUP_ROWS = 10_000
DEADLINE_SECONDS = 60.0
RETENTION_SECONDS = 0.2
CHUNK = 20

_CREATE = {
    HANDLED: "(unique_id varchar(40) NOT NULL PRIMARY KEY, n int NOT NULL, peer varchar(40) NOT NULL)",
    SENT: "(name varchar(40) NOT NULL)",
    PRESENT: "(name varchar(40) NOT NULL)",
}
_NOW = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now')",
    "postgresql": "(clock_timestamp() AT TIME ZONE 'UTC')",
    "sqlserver": "GETDATE()",
}
_COLUMNS = "id, correlation_id, from_endpoint, to_endpoint, retry_count, msg_text, msg_headers, unique_id, retry_time"
_SELECT = {
    "sqlite": "SELECT {columns} FROM {queue} WHERE subqueue = 'I' ORDER BY retry_time LIMIT 1",
    "postgresql": "SELECT {columns} FROM {queue} WHERE subqueue = 'I' ORDER BY retry_time LIMIT 1"
    " FOR UPDATE SKIP LOCKED",
    "sqlserver": "SELECT TOP 1 {columns} FROM {queue} WITH (UPDLOCK, READPAST) WHERE subqueue = 'I'"
    " ORDER BY retry_time ASC",
}
_TAKE = {
    "sqlite": "UPDATE {queue} SET subqueue = 'X', last_processed = {now} WHERE id = :id AND subqueue = 'I'",
    "postgresql": "UPDATE {queue} SET subqueue = 'X', last_processed = {now} WHERE id = :id AND subqueue = 'I'",
    "sqlserver": "UPDATE {queue} WITH (READPAST, ROWLOCK) SET subqueue = 'X', last_processed = {now}"
    " WHERE id = :id AND subqueue = 'I'; SELECT @@ROWCOUNT",
}
_FAILED = (
    "SET subqueue = :subqueue, retry_count = retry_count + 1, retry_time = :due, error_info = :error,"
    " last_processed = {now}"
)
_MARK = {
    "sqlite": "UPDATE {queue} {failed} WHERE id = :id AND subqueue IN ('I', 'R')",
    "postgresql": "UPDATE {queue} {failed} WHERE id = (SELECT id FROM {queue} WHERE id = :id AND subqueue IN ('I', 'R')"
    " FOR UPDATE SKIP LOCKED)",
    "sqlserver": "UPDATE {queue} WITH (READPAST, ROWLOCK) {failed} WHERE id = :id AND subqueue IN ('I', 'R');"
    " SELECT @@ROWCOUNT",
}
_SCHEDULE = {
    "sqlite": "UPDATE {queue} SET subqueue = 'I' WHERE id IN (SELECT id FROM {queue} WHERE subqueue = 'R'"
    " AND retry_time <= {now} LIMIT {rows})",
    "postgresql": "UPDATE {queue} SET subqueue = 'I' WHERE id = ANY (ARRAY(SELECT id FROM {queue} WHERE subqueue = 'R'"
    " AND retry_time <= {now} LIMIT {rows} FOR UPDATE SKIP LOCKED))",
    "sqlserver": "UPDATE TOP ({rows}) {queue} WITH (READPAST) SET subqueue = 'I' WHERE subqueue = 'R'"
    " AND retry_time <= {now}; SELECT @@ROWCOUNT",
}
_CLEAN_UP = {
    "sqlite": "DELETE FROM {queue} WHERE id IN (SELECT id FROM {queue} WHERE subqueue = 'X' AND retry_time <= :before"
    " LIMIT {rows})",
    "postgresql": "DELETE FROM {queue} WHERE id = ANY (ARRAY(SELECT id FROM {queue} WHERE subqueue = 'X'"
    " AND retry_time <= :before LIMIT {rows} FOR UPDATE SKIP LOCKED))",
    "sqlserver": "DELETE TOP ({rows}) FROM {queue} WITH (READPAST) WHERE subqueue = 'X' AND retry_time <= :before;"
    " SELECT @@ROWCOUNT",
}
_INSERT = (
    "INSERT INTO {queue} (from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time,"
    " error_info, correlation_id, label, msg_text, msg_headers, unique_id)"
    " VALUES (:sender, :endpoint, 'I', {now}, NULL, 0, :due, NULL, NULL, 'Shop.Order', :text, '', :unique_id)"
)


class HandlerFailed(Exception):
    """What a handler raises; `permanent` is what the reference calls a permanent failure."""

    def __init__(self, *, permanent: bool = False) -> None:
        super().__init__("the handler of the peer failed")
        self.permanent = permanent


class Taken(NamedTuple):
    """A message as the reader of the reference selects it."""

    id: int
    correlation_id: str | None
    from_endpoint: str
    to_endpoint: str
    retry_count: int
    msg_text: str
    msg_headers: str | None
    unique_id: str
    retry_time: Any


class Peer:
    """One worker of a .NET process, with its maintenance, on one table."""

    def __init__(
        self,
        database: Database,
        schema: str | None,
        table: str,
        name: str = "peer",
        waits: Sequence[float] = (30.0,),
    ) -> None:
        """`waits` is the schedule of retries, in seconds."""
        self._database = database
        self._dialect = database.dialect.name
        self._schema = schema
        self._name = name
        self._waits = waits
        self._endpoint = f"sql://shop/{table}"
        self._names = {"queue": self._qualified(table), "now": _NOW[self._dialect], "columns": _COLUMNS}
        self._names["failed"] = _FAILED.format_map(self._names)

    def create_tables(self) -> None:
        """The tables that tell what was handled, and how far a fleet is."""
        with self._database.transaction() as transaction:
            for table, columns in _CREATE.items():
                transaction.execute(Command(f"CREATE TABLE {self._qualified(table)} {columns}"))

    def join(self, members: int) -> None:
        """Wait until that many processes are ready, so that they begin at the same moment."""
        self._tell(PRESENT)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self._count(PRESENT) < members:
            if time.monotonic() > deadline:
                raise TimeoutError("the others did not come")
            time.sleep(0.005)

    def receive(self, handle: Callable[[int], None] = lambda number: None) -> Taken | None:
        """Claim one message and handle it in one transaction; None when there is nothing.

        A handler that fails rolls it back, and a second transaction marks the message.
        """
        taken: list[Taken] = []
        moment = self._clock()
        try:
            with self._database.transaction() as transaction:
                message = self._take(transaction)
                if message is None:
                    return None
                taken.append(message)
                number = json.loads(message.msg_text)["n"]
                handle(number)
                note = f"INSERT INTO {self._qualified(HANDLED)} (unique_id, n, peer) VALUES (:unique_id, :n, :peer)"
                transaction.execute(Command(note), unique_id=message.unique_id, n=number, peer=self._name)
        except HandlerFailed as error:
            self.mark_failed(taken[0], error, moment)
        return taken[0]

    def mark_failed(self, message: Taken, error: HandlerFailed, moment: datetime | None = None) -> int:
        """The second transaction of a failure; 0 when another process has taken the message meanwhile."""
        final = message.retry_count >= len(self._waits)
        wait = self._waits[min(message.retry_count, len(self._waits) - 1)]
        due = self._clock() if final else (moment or self._clock()) + timedelta(seconds=wait)
        subqueue = "F" if final or error.permanent else "R"
        values = {"subqueue": subqueue, "due": self._time(due), "error": repr(error), "id": message.id}
        with self._database.transaction() as transaction:
            return transaction.count(self._statement(_MARK), **values)

    def schedule(self) -> int:
        """The scheduler's pass; returns how many messages became ready."""
        with self._database.transaction() as transaction:
            return transaction.count(self._statement(_SCHEDULE, SCHEDULER_ROWS))

    def clean_up(self, retention_seconds: float) -> int:
        """The cleanup pass; returns how many processed messages were deleted."""
        before = self._time(self._clock() - timedelta(seconds=retention_seconds))
        with self._database.transaction() as transaction:
            return transaction.count(self._statement(_CLEAN_UP, CLEANUP_ROWS), before=before)

    def send(self, numbers: Sequence[int], apart_seconds: float = 0.0) -> None:
        """Insert messages, a statement each, in one transaction; the last of them is due now."""
        command = Command(_INSERT.format_map(self._names))
        first = self._clock() - timedelta(seconds=apart_seconds * (len(numbers) - 1))
        with self._database.transaction() as transaction:
            for place, number in enumerate(numbers):
                body = json.dumps({"$type": TYPE, "n": number}, separators=(",", ":"))
                due = self._time(first + timedelta(seconds=apart_seconds * place))
                values = {"sender": "sql://shop/Shop", "endpoint": self._endpoint, "unique_id": f"{number:032x}"}
                transaction.execute(command, **values, due=due, text=body)

    def ready(self) -> int:
        """How many messages wait for a reader."""
        with self._database.transaction(write=False) as transaction:
            return transaction.count(Command(f"SELECT count(*) FROM {self._names['queue']} WHERE subqueue = 'I'"))

    def tell_that_all_is_sent(self) -> None:
        """Nothing more comes from this one."""
        self._tell(SENT)

    def is_over(self) -> bool:
        """Whether the sender has sent all, and nothing is left to handle."""
        if not self._count(SENT):
            return False
        with self._database.transaction(write=False) as transaction:
            left = f"SELECT count(*) FROM {self._names['queue']} WHERE subqueue IN ('I', 'R')"
            return transaction.count(Command(left)) == 0

    def handled(self) -> dict[int, str]:
        """Who of all peers handled which message."""
        with self._database.transaction(write=False) as transaction:
            rows = transaction.rows(Command(f"SELECT n, peer FROM {self._qualified(HANDLED)}"))
        assert len({row[0] for row in rows}) == len(rows)
        return {int(number): str(peer) for number, peer in rows}

    def _tell(self, table: str) -> None:
        with self._database.transaction() as transaction:
            transaction.execute(Command(f"INSERT INTO {self._qualified(table)} (name) VALUES (:name)"), name=self._name)

    def _count(self, table: str) -> int:
        with self._database.transaction(write=False) as transaction:
            return transaction.count(Command(f"SELECT count(*) FROM {self._qualified(table)}"))

    def _take(self, transaction: Transaction) -> Taken | None:
        while rows := transaction.rows(self._statement(_SELECT)):
            message = Taken(*rows[0])
            if transaction.count(self._statement(_TAKE), id=message.id) == 1:
                return message
        return None

    def _statement(self, texts: dict[str, str], rows: int = 0) -> Command:
        return Command(texts[self._dialect].format_map({**self._names, "rows": str(rows)}))

    def _qualified(self, table: str) -> str:
        quote = self._database.dialect.quote
        return f"{quote(self._schema)}.{quote(table)}" if self._schema else quote(table)

    def _clock(self) -> datetime:
        """The clock of the client: local time on SQL Server, as in the reference, and UTC elsewhere."""
        return datetime.now() if self._dialect == "sqlserver" else datetime.now(UTC).replace(tzinfo=None)

    def _time(self, moment: datetime) -> object:
        if self._dialect == "sqlite":
            return moment.isoformat(" ", "milliseconds")
        # The column of SQL Server has no room for more digits.
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def is_refused(number: int, every: int) -> bool:
    """Whether every handler refuses a message for good, whosever it is."""
    return every > 0 and number % every == every - 1


def work(peer: Peer, seed: int, fail_every: int, refuse_every: int) -> None:
    """Receive, schedule and clean up until nothing is left; some handlings fail at random."""
    chance, deadline = random.Random(seed), time.monotonic() + DEADLINE_SECONDS

    def handle(number: int) -> None:
        if is_refused(number, refuse_every):
            raise HandlerFailed(permanent=True)
        if fail_every and chance.randrange(fail_every) == 0:
            raise HandlerFailed

    while time.monotonic() < deadline:
        # Victims of a deadlock, and who waited too long for SQLite's only writer, try again as .NET does.
        with contextlib.suppress(TransientDatabaseError):
            peer.schedule()
            peer.clean_up(RETENTION_SECONDS)
            got = [peer.receive(handle) for _ in range(20)]
            if not any(got):
                if peer.is_over():
                    return
                time.sleep(0.01)
    raise TimeoutError("messages are left over")


def send_all(peer: Peer, numbers: Sequence[int]) -> None:
    """Send messages as they are needed: with a long backlog, those that come back would not be met again for long."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    for start in range(0, len(numbers), CHUNK):
        while peer.ready() > 2 * CHUNK:
            if time.monotonic() > deadline:
                raise TimeoutError("no process takes the messages")
            time.sleep(0.005)
        peer.send(numbers[start : start + CHUNK])
    peer.tell_that_all_is_sent()


def main() -> None:
    """`work` on a queue, or `send` numbered messages to it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["work", "send"])
    parser.add_argument("url")
    parser.add_argument("--schema")
    parser.add_argument("--table", required=True)
    parser.add_argument("--name", default="peer")
    parser.add_argument("--wait", type=float, default=0.05, help="seconds before each retry")
    parser.add_argument("--fail-every", type=int, default=0, help="one handling in N fails")
    parser.add_argument("--refuse-every", type=int, default=0, help="one message in N is refused for good")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--numbers", type=int, nargs=2, default=(0, 0), help="first and last, not included")
    parser.add_argument("--members", type=int, default=1, help="it begins when N processes are there")
    given = parser.parse_args()
    database = Database(database_url(given.url))
    peer = Peer(database, given.schema, given.table, given.name, [given.wait] * 100)
    peer.join(given.members)
    if given.part == "work":
        work(peer, given.seed, given.fail_every, given.refuse_every)
        return
    send_all(peer, range(*given.numbers))


if __name__ == "__main__":
    main()
