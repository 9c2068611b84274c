"""A queue that .NET processes and ours work on together: every message is handled once, whoever fails or dies."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

import pytest

from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.errors import ClaimLostError
from queue_pipeline.transport.nginn.in_place import Mark
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.backends import Backend
from queue_pipeline_tests.support.nginn_peer import HandlerFailed, Peer, is_refused
from queue_pipeline_tests.support.nginn_worker import RESULTS, SETTINGS
from queue_pipeline_tests.support.waiting import eventually

TABLE = "Orders"
QUEUE = f"sql://shop/{TABLE}"
BEFORE, AFTERWARDS = 1_200, 1_200
"""How many messages are there before anybody begins, and how many are sent while all are at work."""
REFUSE_EVERY = 200
LEGAL = {
    ("", "I"), ("", "R"), ("I", "X"), ("I", "R"), ("I", "F"), ("R", "I"), ("R", "X"), ("R", "F"), ("X", ""),
}  # fmt: skip
"""What may become of a message: the table of the reference, and what a claim and its end add to it.

A message that was processed is only ever deleted, and one that failed stays.
"""
LOG = "subqueue_log"


class Fleet:
    """A queue, a log of all that becomes of its messages, and the processes that work on it."""

    def __init__(self, backend: Backend, transport: QueueTransport) -> None:
        self.backend = backend
        self.transport = transport
        self.peer = Peer(transport.database, backend.schema, TABLE, "in the test", [30.0, 60.0])
        self.peer.create_tables()
        self.queue = transport.resolve(QUEUE).qualified
        self.log = transport.book.own(LOG).qualified
        for statement in logging_triggers(backend.name, self.queue, self.log, backend.schema):
            self.sql(statement)

    def sql(self, statement: str, *parameters: object) -> list:
        return self.backend.sql(self.transport, statement, parameters)

    def states(self) -> dict[int, str]:
        """The subqueue of every message, by its number."""
        rows = self.sql(f"SELECT unique_id, subqueue FROM {self.queue}")
        return {int(unique_id, 16): subqueue for unique_id, subqueue in rows}

    def results(self) -> list[int]:
        return sorted(int(shown.body) for shown in self.transport.show(RESULTS, 100_000))

    def changes(self) -> list[list[tuple[str, str]]]:
        """What became of each message, in order."""
        rows = self.sql(f"SELECT id, was, became FROM {self.log} ORDER BY id, n")
        return [
            [(was.strip(), became.strip()) for _, was, became in group] for _, group in groupby(rows, lambda row: row[0])
        ]

    def let_leases_be_over(self) -> None:
        """As if the time of every lease had passed."""
        past = {
            "sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 seconds')",
            "postgresql": "(now() AT TIME ZONE 'UTC') - interval '1 second'",
            "sqlserver": "DATEADD(second, -1, GETDATE())",
        }[self.backend.name]
        claimed = self.transport.book.claim_tables(self.transport.resolve(QUEUE)).claimed.qualified
        self.sql(f"UPDATE {self.queue} SET retry_time = {past} WHERE subqueue = 'R'")
        self.sql(f"UPDATE {claimed} SET lease = (SELECT q.retry_time FROM {self.queue} q WHERE q.id = {claimed}.id)")

    @contextmanager
    def start(self, module: str, part: str, *options: object) -> Iterator[subprocess.Popen[bytes]]:
        command = [sys.executable, "-m", f"queue_pipeline_tests.support.{module}", part, self.backend.url]
        schema = ["--schema", self.backend.schema] if self.backend.schema else []
        process = subprocess.Popen([*command, *schema, "--table", TABLE, *map(str, options)])
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def logging_triggers(name: str, queue: str, log: str, schema: str | None) -> list[str]:
    """Triggers that write down every change of a subqueue, in the transaction that makes it."""
    if name == "sqlite":
        events = {"INSERT": ("new.id", "''", "new.subqueue"), "DELETE": ("old.id", "old.subqueue", "''")}
        events["UPDATE OF subqueue"] = ("new.id", "old.subqueue", "new.subqueue")
        condition = {"UPDATE OF subqueue": "WHEN old.subqueue <> new.subqueue"}
        return [
            f"CREATE TABLE {log} (n INTEGER PRIMARY KEY, id INTEGER, was TEXT, became TEXT)",
            *(
                f"CREATE TRIGGER log_{number} AFTER {event} ON {queue} {condition.get(event, '')} BEGIN"
                f" INSERT INTO {log} (id, was, became) VALUES ({', '.join(values)}); END"
                for number, (event, values) in enumerate(events.items())
            ),
        ]
    if name == "postgresql":
        return [
            f"CREATE TABLE {log} (n bigserial, id bigint, was char(1), became char(1))",
            f"CREATE FUNCTION {schema}.write_log() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" INSERT INTO {log} (id, was, became)"
            " VALUES (COALESCE(new.id, old.id), COALESCE(old.subqueue, ''), COALESCE(new.subqueue, '')); RETURN NULL; "
            "END $$",
            f"CREATE TRIGGER log_both AFTER INSERT OR DELETE ON {queue} FOR EACH ROW"
            f" EXECUTE FUNCTION {schema}.write_log()",
            f"CREATE TRIGGER log_change AFTER UPDATE ON {queue} FOR EACH ROW"
            f" WHEN (old.subqueue <> new.subqueue) EXECUTE FUNCTION {schema}.write_log()",
        ]
    return [
        f"CREATE TABLE {log} (n bigint IDENTITY(1, 1), id bigint, was char(1), became char(1))",
        f"CREATE TRIGGER {schema}.log_all ON {queue} AFTER INSERT, UPDATE, DELETE AS BEGIN SET NOCOUNT ON;"
        f" INSERT INTO {log} (id, was, became)"
        " SELECT COALESCE(i.id, d.id), COALESCE(d.subqueue, ''), COALESCE(i.subqueue, '')"
        " FROM inserted AS i FULL OUTER JOIN deleted AS d ON d.id = i.id"
        " WHERE COALESCE(d.subqueue, '') <> COALESCE(i.subqueue, ''); END",
    ]


@pytest.fixture
def fleet(backend: Backend) -> Fleet:
    transport = backend.transport(nginn=SETTINGS)
    transport.install(QUEUE, plain_queues=[RESULTS, "error"])
    return Fleet(backend, transport)


def check_changes(changes: list[list[tuple[str, str]]]) -> None:
    """Every change was a legal one, and each began where the one before it had ended."""
    assert {change for one in changes for change in one} <= LEGAL
    for one in changes:
        assert [was for was, _ in one] == ["", *(became for _, became in one[:-1])]


def test_a_fleet_of_peers_and_of_ours_handles_every_message_once(fleet: Fleet) -> None:
    """Two peers and a worker of ours, while more is sent; some of all fail, and two of ours are killed."""
    if fleet.backend.is_babelfish:
        pytest.skip("Babelfish ignores READPAST: readers meet on one message instead of passing over it")
    total = BEFORE + AFTERWARDS
    for start in range(0, BEFORE, 100):
        fleet.peer.send(range(start, start + 100))
    refuse = ("--refuse-every", REFUSE_EVERY)
    with (
        fleet.start("nginn_worker", "holding") as holding,
        fleet.start("nginn_worker", "completing") as completing,
        fleet.start("nginn_peer", "work", "--name", "one", "--seed", 1, "--fail-every", 15, *refuse) as one,
        fleet.start("nginn_peer", "work", "--name", "two", "--seed", 2, "--fail-every", 25, *refuse) as two,
        fleet.start("nginn_worker", "work", "--seed", 3, *refuse) as ours,
        fleet.start("nginn_peer", "send", "--numbers", BEFORE, total) as sender,
    ):
        assert [process.wait(60) for process in (holding, completing)] == [-signal.SIGKILL] * 2
        assert [process.wait(60) for process in (sender, one, two, ours)] == [0, 0, 0, 0]
    by_peers, by_us = fleet.peer.handled(), fleet.results()
    refused = [number for number in range(total) if is_refused(number, REFUSE_EVERY)]
    assert sorted([*by_peers, *by_us]) == [number for number in range(total) if number not in refused]
    assert sorted(number for number, subqueue in fleet.states().items() if subqueue == "F") == refused
    changes = fleet.changes()
    check_changes(changes)
    assert len(changes) == total
    happened = Counter(change for one in changes for change in one)
    assert all(happened[change] for change in [("I", "X"), ("I", "R"), ("R", "I"), ("R", "X"), ("X", "")])
    assert min(*Counter(by_peers.values()).values(), len(by_us)) > 0
    eventually(lambda: fleet.transport.claim(QUEUE, "who comes after", 1) is None and not fleet.transport.claims.list())
    claimed = fleet.transport.book.claim_tables(fleet.transport.resolve(QUEUE)).claimed.qualified
    assert fleet.sql(f"SELECT count(*) FROM {claimed}")[0][0] == 0
