from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from queue_pipeline.errors import ClaimLostError, CommitUnknownError, ConfigurationError, QueueNotFoundError
from queue_pipeline.transport import Operation, OutgoingMessage, new_message
from queue_pipeline.transport.claims.completion import Completer, Completion
from queue_pipeline.transport.database.database import Database
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.both_drivers

MINUTE = 60.0


@pytest.fixture
def orders(transport):
    return transport.resolve("orders")


@pytest.fixture
def claims(transport):
    return transport.claims


def send(transport, count, queue="orders", size=0):
    transport.send(queue, [OutgoingMessage(str(n).encode().ljust(size), {"n": str(n)}) for n in range(count)])


def numbers(transport, claim):
    bodies = [body for batch in transport.claim_reader.read(claim) for body in batch.column("body").to_pylist()]
    return [int(body) for body in bodies]


def abandon(transport, backend, claim):
    """Let a claim's lease run out, as if its owner had died."""
    table, column = transport.book.own("QueueClaims").qualified, "lease_until"
    past = {
        "postgresql": "now() - interval '1 second'",
        "sqlite": "0",
        "sqlserver": "DATEADD(second, -1, SYSUTCDATETIME())",
    }
    if backend.name != "postgresql":
        column = "LeaseUntil"
    backend.sql(transport, f"UPDATE {table} SET {column} = {past[backend.name]}")


def is_empty(transport, backend):
    """No message and no claim is left behind anywhere."""
    claimed = transport.book.claim_tables(transport.resolve("orders")).claimed.qualified
    left = backend.sql(transport, f"SELECT count(*) FROM {claimed}")[0][0]
    return left == 0 and transport.claims.list() == []


def test_an_empty_queue_has_nothing_to_claim(claims, orders):
    assert claims.claim(orders, "me", 10) is None
    assert claims.list() == []


def test_a_claim_takes_the_oldest_messages_out_of_the_queue(transport, claims, orders):
    send(transport, 10)
    claim = claims.claim(orders, "me", 4)
    assert (claim.messages, claim.generation, claim.owner) == (4, 1, "me")
    assert numbers(transport, claim) == [0, 1, 2, 3]
    assert transport.peek("orders") == 6
    (listed,) = claims.list(orders)
    assert (listed.claim_id, listed.messages, listed.owner) == (claim.claim_id, 4, "me")
    assert 200 < listed.lease_seconds <= 300


def test_completion_sends_the_results_and_deletes_the_messages_at_once(transport, backend, claims, orders):
    transport.install("billing")
    send(transport, 3)
    claim = claims.claim(orders, "me", 10)
    assert (
        claims.complete(Completion(claim, [Operation("billing", new_message(str(n))) for n in range(3)], read=None))
        == 3
    )
    assert transport.peek("billing") == 3
    assert transport.peek("orders") == 0
    assert is_empty(transport, backend)


def test_a_completion_that_fails_changes_nothing(transport, claims, orders):
    send(transport, 3)
    claim = claims.claim(orders, "me", 10)
    with pytest.raises(QueueNotFoundError):
        claims.complete(
            Completion(
                claim, [Operation("orders", new_message("a")), Operation("nowhere", new_message("b"))], read=None
            )
        )
    assert transport.peek("orders") == 0
    assert numbers(transport, claim) == [0, 1, 2]
    assert claims.complete(Completion(claim, [Operation("orders", new_message("a"))], read=None)) == 1


def test_the_callers_own_work_commits_with_the_completion(transport, backend, claims, orders):
    ledger = transport.book.own("ledger").qualified
    backend.sql(transport, f"CREATE TABLE {ledger} (n int NOT NULL)")
    send(transport, 1)
    claim = claims.claim(orders, "me", 10)

    def note(connection):
        connection.execute(text(f"INSERT INTO {ledger} (n) VALUES (:n)"), {"n": 5})

    with pytest.raises(QueueNotFoundError):
        claims.complete(Completion(claim, [Operation("nowhere", new_message("b"))], work=note, read=None))
    assert backend.sql(transport, f"SELECT count(*) FROM {ledger}")[0][0] == 0
    claims.complete(Completion(claim, work=note, read=None))
    assert [row[0] for row in backend.sql(transport, f"SELECT n FROM {ledger}")] == [5]


def test_a_claim_whose_lease_ran_out_is_taken_over_before_newer_messages(transport, backend, claims, orders):
    send(transport, 5)
    lost = claims.claim(orders, "dies", 3)
    abandon(transport, backend, lost)
    taken = claims.claim(orders, "heir", 3)
    assert taken == replace(lost, owner="heir", generation=2)
    assert numbers(transport, taken) == [0, 1, 2]


def test_a_zombie_can_neither_send_nor_renew_nor_release_nor_split(transport, backend, claims, orders):
    """The fence: after another took over, nothing that the former owner does has an effect."""
    send(transport, 4)
    zombie = claims.claim(orders, "zombie", 4)
    abandon(transport, backend, zombie)
    heir = claims.claim(orders, "zombie", 4)
    for act in (
        lambda: claims.complete(Completion(zombie, [Operation("orders", new_message("twice"))], read=None)),
        lambda: claims.renew(zombie),
        lambda: claims.release(zombie),
        lambda: claims.split(zombie, 2),
        lambda: claims.give_back(zombie),
        lambda: claims.dead_letter(zombie, [1]),
    ):
        with pytest.raises(ClaimLostError, match="no longer held"):
            act()
    assert transport.peek("orders") == 0
    assert transport.peek("error") == 0
    assert numbers(transport, heir) == [0, 1, 2, 3]
    assert claims.complete(Completion(heir, read=None)) == 0


def test_renewing_keeps_a_claim(transport, backend, claims, orders):
    send(transport, 1)
    claim = claims.claim(orders, "me", 1, lease_seconds=0.001)
    claims.renew(claim, 60)
    assert claims.claim(orders, "other", 1) is None
    assert 50 < claims.list(orders)[0].lease_seconds <= 60


def test_a_released_claim_comes_first_at_its_next_attempt(transport, claims, orders):
    send(transport, 4)
    claim = claims.claim(orders, "me", 2)
    claims.release(claim)
    assert claims.list(orders)[0].owner is None
    again = claims.claim(orders, "you", 2)
    assert (again.claim_id, again.generation) == (claim.claim_id, 2)
    assert numbers(transport, again) == [0, 1]
    assert numbers(transport, claims.claim(orders, "you", 2)) == [2, 3]


def test_the_oldest_abandoned_claim_comes_first(transport, claims, orders):
    send(transport, 6)
    held = [claims.claim(orders, "me", 2) for _ in range(3)]
    for claim in reversed(held):
        claims.release(claim)
    taken = [claims.claim(orders, "you", 2) for _ in range(3)]
    assert [claim.claim_id for claim in taken] == [claim.claim_id for claim in held]


def test_a_larger_claim_is_taken_over_in_parts_that_fit(transport, backend, claims, orders):
    send(transport, 10)
    claims.release(claims.claim(orders, "me", 10))
    seen = []
    while claim := claims.claim(orders, "you", 4):
        assert claim.messages <= 4
        seen += numbers(transport, claim)
        claims.complete(Completion(claim, read=None))
    assert seen == list(range(10))
    assert is_empty(transport, backend)


def test_a_claim_is_bounded_by_bytes_but_never_empty(transport, claims, orders):
    send(transport, 6, size=1000)
    claim = claims.claim(orders, "me", 100, max_bytes=2500)
    assert claim.messages == 3
    assert 3000 <= claim.bytes < 4000
    one = claims.claim(orders, "me", 100, max_bytes=1)
    assert one.messages == 1
    claims.release(claim)
    assert claims.claim(orders, "me", 100, max_bytes=1).messages == 1


def test_a_split_claim_goes_on_as_two(transport, backend, claims, orders):
    send(transport, 5)
    first, second = claims.split(claims.claim(orders, "me", 5), 2)
    assert (first.messages, second.messages) == (2, 3)
    assert numbers(transport, first) == [0, 1]
    assert numbers(transport, second) == [2, 3, 4]
    assert sorted(status.messages for status in claims.list(orders)) == [2, 3]
    claims.complete(Completion(second, read=None))
    claims.release(first)
    assert numbers(transport, claims.claim(orders, "you", 10)) == [0, 1]


@pytest.mark.parametrize("keep", [0, 5, -1])
def test_a_split_must_leave_messages_on_both_sides(transport, claims, orders, keep):
    send(transport, 5)
    claim = claims.claim(orders, "me", 5)
    with pytest.raises(ConfigurationError, match="at least one"):
        claims.split(claim, keep)


def test_expired_messages_are_dropped_on_the_way_into_a_claim(transport, claims, orders):
    transport.send("orders", [new_message("x", time_to_be_received=timedelta(milliseconds=1)) for _ in range(5)])
    send(transport, 1)
    eventually(lambda: transport.status("orders")[0].expired == 5)
    claim = claims.claim(orders, "me", 3)
    assert (claim.messages, claim.expired) == (1, 5)
    assert numbers(transport, claim) == [0]
    transport.send("orders", new_message("x", time_to_be_received=timedelta(milliseconds=1)))
    eventually(lambda: transport.status("orders")[0].expired == 1)
    assert claims.claim(orders, "me", 3) is None
    assert transport.peek("orders") == 0


def test_messages_given_back_are_received_by_programs_that_know_nothing_of_claims(transport, backend, claims, orders):
    send(transport, 4)
    claim = claims.claim(orders, "me", 2)
    assert claims.give_back(claim) == 2
    expected = [2, 3, 0, 1] if backend.name == "sqlserver" else [0, 1, 2, 3]
    with transport.receive("orders") as batch:
        assert [int(message.body) for message in batch] == expected
    assert is_empty(transport, backend)


def test_abandoned_claims_are_given_back_and_held_ones_are_not(transport, backend, claims, orders):
    send(transport, 6)
    released, held, dead = (claims.claim(orders, "me", 2) for _ in range(3))
    claims.release(released)
    assert claims.give_back_abandoned(orders) == 2
    assert [status.claim_id for status in claims.list()] == [held.claim_id, dead.claim_id]
    abandon(transport, backend, dead)
    assert claims.give_back_abandoned(orders) == 4
    assert transport.peek("orders") == 6
    assert is_empty(transport, backend)


def test_messages_with_unreadable_headers_leave_a_claim_byte_for_byte(transport, backend, claims, orders):
    send(transport, 3)
    claim = claims.claim(orders, "me", 10)
    good, poison, _ = claims.messages(claim)
    assert (len(good), poison) == (3, [])
    left = claims.dead_letter(claim, [good[1].row_version])
    assert left.messages == 2
    assert numbers(transport, left) == [0, 2]
    assert [(shown.body, shown.headers["n"]) for shown in transport.show("error")] == [(b"1", "1")]
    assert claims.dead_letter(left, [message.row_version for message in good]) is None
    assert is_empty(transport, backend)


def test_a_claim_is_read_in_bounded_parts(transport, claims, orders):
    send(transport, 100, size=100)
    claim = claims.claim(orders, "me", 100)
    reader = transport.claim_reader
    parts = reader.parts(claim, max_messages=30)
    assert [part.messages for part in parts] == [30, 30, 30, 10]
    assert sum(part.bytes for part in parts) == claim.bytes
    assert all(part.bytes < 2100 for part in reader.parts(claim, max_bytes=2000))
    middle = [reader.read_part(claim, part) for part in parts[1:3]]
    assert [int(body) for batch in middle for body in batch.column("body").to_pylist()] == list(range(30, 90))
    for batch in reader.read(claim, body=False):
        assert batch.column("body").null_count == batch.num_rows
        assert batch.column("headers").null_count == 0


def test_a_commit_whose_answer_was_lost_is_looked_up_not_repeated(transport, claims, orders, monkeypatch):
    """The server committed, the connection broke: the results are there once and completion succeeds."""
    transport.install("billing")
    send(transport, 2)
    claim = claims.claim(orders, "me", 10)
    genuine = Database._commit
    lost = []

    def commit(database, connection):
        genuine(database, connection)
        if not lost:
            lost.append(True)
            raise CommitUnknownError("the answer was lost")

    monkeypatch.setattr(Database, "_commit", commit)
    assert claims.complete(Completion(claim, [Operation("billing", new_message("once"))], read=None)) == 1
    assert lost and transport.peek("billing") == 1


def test_a_commit_that_is_done_after_the_claim_was_looked_up_is_no_lost_claim(transport, claims, orders, monkeypatch):
    """The server was still committing: the claim's row was there at the first look, and gone for the next try."""
    transport.install("billing")
    send(transport, 2)
    claim = claims.claim(orders, "me", 10)
    genuine_commit, genuine_look = Database._commit, Completer._is_ended
    lost, looks = [], []

    def commit(database, connection):
        genuine_commit(database, connection)
        if not lost:
            lost.append(True)
            raise CommitUnknownError("the answer was lost")

    def look(completer, claim):
        looks.append(claim)
        return len(looks) > 1 and genuine_look(completer, claim)

    monkeypatch.setattr(Database, "_commit", commit)
    monkeypatch.setattr(Completer, "_is_ended", look)
    assert claims.complete(Completion(claim, [Operation("billing", new_message("once"))], read=None)) == 1
    assert len(looks) == 2 and transport.peek("billing") == 1


def test_a_commit_that_never_arrived_is_done_again(transport, claims, orders, monkeypatch):
    transport.install("billing")
    send(transport, 2)
    claim = claims.claim(orders, "me", 10)
    genuine = Database._commit
    lost = []

    def commit(database, connection):
        if not lost:
            lost.append(True)
            connection.rollback()
            raise CommitUnknownError("the connection broke before the commit")
        genuine(database, connection)

    monkeypatch.setattr(Database, "_commit", commit)
    assert claims.complete(Completion(claim, [Operation("billing", new_message("once"))], read=None)) == 1
    assert lost and transport.peek("billing") == 1


def test_a_claim_whose_commits_never_arrive_is_not_reported_as_lost(transport, claims, orders, monkeypatch):
    send(transport, 2)
    claim = claims.claim(orders, "me", 10)

    def commit(database, connection):
        connection.rollback()
        raise CommitUnknownError("the connection broke before the commit")

    with monkeypatch.context() as patch, pytest.raises(CommitUnknownError):
        patch.setattr(Database, "_commit", commit)
        claims.complete(Completion(claim, read=None))
    claims.complete(Completion(claim, read=None))
    assert claims.list() == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"max_messages": 0}, "at least one"),
        ({"max_messages": -5}, "at least one"),
        ({"max_messages": 1, "max_bytes": 0}, "at least one"),
        ({"max_messages": 1, "lease_seconds": 0}, "more than 0"),
        ({"max_messages": 1, "lease_seconds": 1e9}, "at most"),
        ({"max_messages": 1, "owner": ""}, "name"),
    ],
)
def test_a_claim_with_invalid_arguments_is_refused(transport, claims, orders, arguments, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as raised:
        claims.claim(orders, **{"owner": "me", **arguments})
    assert "orders" in str(raised.value)


def test_receivers_pass_over_what_others_are_taking(transport, claims, orders, needs_row_locks):
    send(transport, 4)
    with transport.receive("orders", 2) as batch:
        assert [int(message.body) for message in batch] == [0, 1]
        claim = claims.claim(orders, "me", 10)
        assert numbers(transport, claim) == [2, 3]
        assert claims.claim(orders, "me", 10) is None


def test_a_release_of_listed_claims_takes_nothing_from_a_newer_owner(transport, claims, orders):
    send(transport, 2)
    claims.claim(orders, "dead", 2)
    (listed,) = claims.list()
    heir = claims.adopt(listed.held, "dead")
    with pytest.raises(ClaimLostError):
        claims.release(listed.held)
    assert claims.held_by("dead") == [heir], "also where the owner's name is the same"
