"""A queue that .NET processes and ours work on together: every message is handled once, whatever fails or dies."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import groupby
from unittest import mock

import pytest

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.transport import Operation, OutgoingMessage
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.nginn.nginn_peer import HandlerFailed, Peer, Taken, is_refused
from queue_pipeline_tests.support.nginn.nginn_worker import RESULTS, SETTINGS
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import declare, run
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.heavy

TABLE = "Orders"
QUEUE = f"sql://shop/{TABLE}"
MESSAGES = {"sqlite": 1_000, "postgresql": 2_400, "sqlserver": 1_000}
"""The first hundred are there before any process begins, and the others are sent while all are at work."""
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
            [(was.strip(), became.strip()) for _, was, became in group]
            for _, group in groupby(rows, lambda row: row[0])
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
        command = [sys.executable, "-m", f"queue_pipeline_tests.support.nginn.{module}", part, self.backend.url]
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
        pytest.skip("needs READPAST, which Babelfish ignores: readers meet on one message")
    total = MESSAGES[fleet.backend.name]
    fleet.peer.send(range(100))
    together = ("--members", 6, "--refuse-every", REFUSE_EVERY)
    with (
        fleet.start("nginn_worker", "holding", *together) as holding,
        fleet.start("nginn_worker", "completing", *together) as completing,
        fleet.start("nginn_peer", "work", "--name", "one", "--seed", 1, "--fail-every", 15, *together) as one,
        fleet.start("nginn_peer", "work", "--name", "two", "--seed", 2, "--fail-every", 25, *together) as two,
        fleet.start("nginn_worker", "work", "--seed", 3, *together) as ours,
        fleet.start("nginn_peer", "send", "--numbers", 100, total, *together) as sender,
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
    assert by_peers and by_us
    eventually(lambda: fleet.transport.claim(QUEUE, "who comes after", 1) is None and not fleet.transport.claims.list())
    claimed = fleet.transport.book.claim_tables(fleet.transport.resolve(QUEUE)).claimed.qualified
    assert fleet.sql(f"SELECT count(*) FROM {claimed}")[0][0] == 0


# --- one step after the other -----------------------------------------------------------------------------


@pytest.fixture
def five(fleet: Fleet) -> Fleet:
    """A fleet with five messages that are ready."""
    fleet.peer.send(range(5), apart_seconds=1.0)
    return fleet


def copies(*numbers: int) -> list[Operation]:
    return [Operation(RESULTS, OutgoingMessage(str(number).encode(), {})) for number in numbers]


def claim(fleet: Fleet, messages: int = 3, lease_seconds: float = 60.0) -> Claim:
    taken = fleet.transport.claim(QUEUE, "ours", messages, lease_seconds=lease_seconds)
    assert taken is not None
    return taken


def receive_all(fleet: Fleet) -> list[int]:
    """What the peer finds; the numbers that it handled."""
    taken = []
    while message := fleet.peer.receive():
        taken.append(int(message.unique_id, 16))
    return taken


def test_a_peer_skips_what_we_hold_and_takes_it_when_our_lease_has_expired(five: Fleet) -> None:
    held = claim(five)
    rows = [message.row_version for message in five.transport.claims.messages(held)[0]]
    assert five.peer.schedule() == 0
    assert receive_all(five) == [3, 4]
    five.let_leases_be_over()
    assert five.peer.schedule() == 3
    assert receive_all(five) == [0, 1, 2]
    for marks in (
        [],
        [FailedRow(row, "try again", 1) for row in rows],
        [FailedRow(row, "never again") for row in rows],
    ):
        with pytest.raises(ClaimLostError):
            five.transport.claims.complete(Completion(held, copies(0, 1, 2), failed=marks, read=None))
    assert five.transport.claims.give_back(held) == 0
    assert (five.results(), set(five.states().values())) == ([], {"X"})
    check_changes(five.changes())


def test_a_late_completion_counts_if_no_peer_was_faster(five: Fleet) -> None:
    held = claim(five)
    five.let_leases_be_over()
    five.transport.claims.complete(Completion(held, copies(0, 1, 2), read=None))
    assert five.peer.schedule() == 0
    assert (five.results(), receive_all(five)) == ([0, 1, 2], [3, 4])


def test_our_next_owner_of_an_expired_batch_gets_what_no_peer_has_taken(five: Fleet) -> None:
    claim(five, lease_seconds=0.001)
    eventually(five.peer.schedule)
    assert five.peer.receive() is not None
    taken = {number for number, subqueue in five.states().items() if subqueue == "X"}
    rest = claim(five, 10)
    messages, _, _ = five.transport.claims.messages(rest)
    assert {int(message.headers[wire.MESSAGE_ID], 16) for message in messages} == set(range(5)) - taken
    five.transport.claims.complete(Completion(rest, copies(*(set(range(5)) - taken)), read=None))
    assert sorted([*five.results(), *five.peer.handled()]) == [0, 1, 2, 3, 4]
    # The lease of the lost claim may end a moment after the peer took its messages; a later claim drops it then.
    eventually(lambda: five.transport.claim(QUEUE, "ours", 10) is None and not five.transport.claims.list())
    check_changes(five.changes())


@pytest.mark.parametrize("permanent", [False, True])
def test_a_mark_that_a_peer_sets_late_takes_the_message_out_of_our_batch(five: Fleet, permanent: bool) -> None:
    """Between the two transactions of its failure a message is ready, and we may take it; the reference knows that."""
    claims = five.transport.claims
    peer, held = five.peer, []

    def mark_late(message: Taken, error: HandlerFailed, moment: datetime | None = None) -> int:
        held.append(claim(five, 10))
        return Peer.mark_failed(peer, message, error, moment)

    def fail(number: int) -> None:
        raise HandlerFailed(permanent=permanent)

    with mock.patch.object(peer, "mark_failed", mark_late):
        assert peer.receive(fail) is not None
    with pytest.raises(ClaimLostError):
        claims.complete(Completion(held[0], copies(0, 1, 2, 3, 4), read=None))
    assert five.results() == []
    assert five.states()[0] == ("F" if permanent else "R")
    claims.release(held[0])
    rest = claim(five, 10)
    assert rest.messages == 4
    claims.complete(Completion(rest, copies(1, 2, 3, 4), read=None))
    assert five.results() == [1, 2, 3, 4]
    ((error, retries),) = five.sql(f"SELECT error_info, retry_count FROM {five.queue} WHERE subqueue <> 'X'")
    assert (retries, "the handler of the peer failed" in error) == (1, True)
    check_changes(five.changes())


def test_a_run_goes_on_at_once_with_what_a_late_mark_left_of_its_batch(five: Fleet) -> None:
    """Not when the lease expires, which takes minutes."""
    (first,) = five.transport.show(QUEUE, 1)
    number = int(first.headers[wire.NGINN_BUS_MESSAGE_ID]) if first.headers else 0
    marks = [Taken(number, None, "", "", 0, "", None, "", None)]

    def mark_meanwhile(bodies: Sequence[bytes]) -> None:
        if marks:
            assert five.peer.mark_failed(marks.pop(), HandlerFailed()) == 1

    transformer = PlainTransformer(mark_meanwhile, RESULTS)
    ended, _ = run(five.transport, transformer, declare(input_queue=QUEUE))
    assert (ended.reason, transformer.calls) == ("the queue is empty", [5, 4])
    results = [json.loads(shown.body)["n"] for shown in five.transport.show(RESULTS, 10)]
    assert (sorted(results), five.states()[0], five.transport.claims.list()) == ([1, 2, 3, 4], "R", [])


@pytest.mark.usefixtures("needs_row_locks")
def test_what_a_peer_is_handling_is_not_claimed(five: Fleet) -> None:
    seen = []
    five.peer.receive(lambda number: seen.append((number, claim(five, 10).messages)))
    assert seen == [(0, 4)]
    assert (list(five.peer.handled()), Counter(five.states().values())) == ([0], {"R": 4, "X": 1})


def test_messages_that_we_give_back_keep_their_place_among_those_of_a_peer(five: Fleet) -> None:
    assert five.transport.claims.give_back(claim(five)) == 3
    assert receive_all(five) == [0, 1, 2, 3, 4]


def test_messages_that_failed_with_us_are_retried_by_a_peer_when_they_are_due(five: Fleet) -> None:
    held = claim(five)
    rows = [message.row_version for message in five.transport.claims.messages(held)[0]]
    five.transport.claims.complete(
        Completion(
            held, copies(0), failed=[FailedRow(rows[1], "try again", 1), FailedRow(rows[2], "never again")], read=None
        )
    )
    eventually(five.peer.schedule)
    assert sorted(receive_all(five)) == [1, 3, 4]
    assert five.states()[2] == "F"
    ((retries, error_info),) = five.sql(f"SELECT retry_count, error_info FROM {five.queue} WHERE id = ?", rows[1])
    assert (retries, error_info) == (1, "try again")


def test_a_peer_cleans_up_what_we_processed_and_leaves_what_failed(five: Fleet) -> None:
    """By the time at which messages were due, which a claim does not change."""
    held = claim(five)
    rows = [message.row_version for message in five.transport.claims.messages(held)[0]]
    five.transport.claims.complete(
        Completion(held, copies(0, 1), failed=[FailedRow(rows[2], "never again")], read=None)
    )
    assert five.peer.clean_up(3_600) == 0
    assert five.peer.clean_up(-1) == 2
    assert five.states() == {2: "F", 3: "I", 4: "I"}
    check_changes(five.changes())


def test_what_a_peer_failed_comes_to_us_by_our_own_scheduler(five: Fleet) -> None:
    hasty = Peer(five.transport.database, five.backend.schema, TABLE, "hasty", [0.001])

    def fail(number: int) -> None:
        raise HandlerFailed

    assert hasty.receive(fail) is not None
    assert five.states()[0] == "R"
    assert eventually(lambda: five.transport.move_due(five.transport.resolve(QUEUE))) == 1
    messages, _, _ = five.transport.claims.messages(claim(five, 10))
    (retried,) = [message for message in messages if wire.RETRIES in message.headers]
    assert (int(retried.headers[wire.MESSAGE_ID], 16), retried.headers[wire.RETRIES]) == (0, "1")
