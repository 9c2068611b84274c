"""The outbox: what counts is what was reported, row for row, and only for the owner that still holds the claim."""

import threading

import pytest

from queue_pipeline.errors import ClaimLostError, QueueNotFoundError, StagedLostError
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline_tests.support.databases.backends import chosen_driver
from queue_pipeline_tests.support.waiting import eventually
from tools.postgres_cluster import PostgresCluster

pytestmark = pytest.mark.both_drivers


@pytest.fixture
def transport(transport):
    transport.install("billing", "shipping")
    transport.send("orders", [new_message(str(number)) for number in range(10)])
    return transport


@pytest.fixture
def claim(transport):
    return transport.claim("orders", "me", 100)


def results(first, count, queue="billing", milliseconds=NEVER_EXPIRES, delayed=False):
    numbers = range(first, first + count)
    ids = [f"00000000-0000-4000-8000-{number:012d}" for number in numbers]
    headers = [wire.encode({wire.MESSAGE_ID: each, "note": "Grüße"}) for each in ids]
    contents = [str(each).encode() for each in numbers]
    return MessageColumns(queue, delayed, ids, [milliseconds] * count, headers, contents)


def bodies(transport, queue="billing"):
    return [int(shown.body) for shown in transport.show(queue, 100)]


def staged(backend, transport):
    return backend.sql(transport, f"SELECT count(*) FROM {transport.book.own('QueueOutbox').qualified}")[0][0]


def test_what_tasks_staged_arrives_with_the_completion_in_their_order(backend, transport, claim):
    first = transport.outbox.stage(claim, "job.0.1", [results(0, 5), results(50, 2, "shipping")])
    second = transport.outbox.stage(claim, "job.1.2", [results(5, 5)])
    assert [(group.destination, group.messages) for group in first] == [("billing", 5), ("shipping", 2)]
    assert (bodies(transport), bodies(transport, "shipping")) == ([], [])
    assert transport.claims.complete(Completion(claim, staged=[*first, *second], read=None)) == 12
    assert (bodies(transport), bodies(transport, "shipping")) == (list(range(10)), [50, 51])
    assert {shown.headers["note"] for shown in transport.show("billing", 100)} == {"Grüße"}
    assert (staged(backend, transport), transport.claims.list(), transport.peek("orders")) == (0, [], 0)


def test_an_attempt_that_was_never_reported_leaves_nothing(backend, transport, claim):
    transport.outbox.stage(claim, "job.0.1", [results(0, 5)])
    again = transport.outbox.stage(claim, "job.0.7", [results(0, 5)])
    transport.claims.complete(Completion(claim, staged=again, read=None))
    assert bodies(transport) == list(range(5))
    assert staged(backend, transport) == 0


def test_a_claim_is_not_completed_with_less_than_was_reported(backend, transport, claim):
    groups = transport.outbox.stage(claim, "job.0.1", [results(0, 5), results(50, 2, "shipping")])
    outbox = transport.book.own("QueueOutbox").qualified
    one_body = {"sqlite": "Body = CAST('3' AS BLOB)", "postgresql": "body = '3'::bytea", "sqlserver": "Body = 0x33"}
    backend.sql(transport, f"DELETE FROM {outbox} WHERE {one_body[backend.name]}")
    with pytest.raises(StagedLostError, match="1 of 5 messages for billing"):
        transport.claims.complete(Completion(claim, staged=groups, read=None))
    assert (bodies(transport), bodies(transport, "shipping")) == ([], [])
    assert [one.messages for one in transport.claims.list()] == [10]
    backend.sql(transport, f"DELETE FROM {outbox}")
    with pytest.raises(StagedLostError, match="nothing was sent, and the claim is processed again"):
        transport.claims.complete(Completion(claim, staged=groups, read=None))
    assert transport.claim_reader.parts(claim)[0].messages == 10


def test_a_task_that_outlived_its_claim_stages_nothing(backend, transport, claim):
    taken = transport.claims.adopt(claim, "somebody else")
    with pytest.raises(ClaimLostError):
        transport.outbox.stage(claim, "job.0.1", [results(0, 5)])
    assert staged(backend, transport) == 0
    transport.claims.complete(Completion(taken, read=None))
    with pytest.raises(ClaimLostError):
        transport.outbox.stage(taken, "job.0.1", [results(0, 5)])
    assert staged(backend, transport) == 0


def test_what_a_zombie_staged_is_not_sent_by_its_successor(backend, transport, claim):
    transport.outbox.stage(claim, "job.0.1", [results(0, 5)])
    taken = transport.claims.adopt(claim, "somebody else")
    groups = transport.outbox.stage(taken, "job.0.2", [results(0, 5)])
    # The zombie may give up, too late, and must not drop what its successor staged.
    assert transport.outbox.abandon(claim) == 0
    transport.claims.complete(Completion(taken, staged=groups, read=None))
    assert bodies(transport) == list(range(5))
    assert staged(backend, transport) == 0


def test_giving_up_drops_what_was_staged_and_is_harmless_after_the_completion(backend, transport, claim):
    groups = transport.outbox.stage(claim, "job.0.1", [results(0, 5)])
    assert transport.outbox.abandon(claim) == 5
    assert staged(backend, transport) == 0
    with pytest.raises(StagedLostError):
        transport.claims.complete(Completion(claim, staged=groups, read=None))
    transport.claims.complete(
        Completion(claim, staged=transport.outbox.stage(claim, "job.0.2", [results(0, 5)]), read=None)
    )
    assert transport.outbox.abandon(claim) == 0
    assert bodies(transport) == list(range(5))


def test_times_to_live_and_delays_count_from_the_completion(transport, claim):
    ready = [results(0, 1, milliseconds=3_600_000), results(1, 1, milliseconds=86_400_000 + 1, delayed=True)]
    groups = transport.outbox.stage(claim, "job.0.1", ready)
    transport.claims.complete(Completion(claim, staged=groups, read=None))
    assert bodies(transport) == [0]
    (status,) = transport.status("billing")
    assert status.expired == 0
    due = transport.status("orders")[0].next_due_seconds or transport.status("billing")[0].next_due_seconds
    assert 86_300 < due <= 86_401


def test_a_queue_that_is_missing_is_named_and_nothing_is_lost(transport, claim):
    # SQL Server is asked for the columns of the table while staging, the others find out at the completion.
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        transport.claims.complete(
            Completion(claim, staged=transport.outbox.stage(claim, "job.0.1", [results(0, 2, "nowhere")]), read=None)
        )
    assert [one.messages for one in transport.claims.list()] == [10]


def test_what_belongs_to_no_claim_is_swept(backend, transport, claim):
    transport.outbox.stage(claim, "job.0.1", [results(0, 5)])
    outbox = transport.book.own("QueueOutbox").qualified
    column = "claim_id" if backend.name == "postgresql" else "ClaimId"
    backend.sql(transport, f"UPDATE {outbox} SET {column} = '00000000-0000-4000-8000-00000000dead'")
    other = transport.outbox.stage(claim, "job.0.2", [results(0, 3)])
    assert transport.outbox.sweep() == 5
    transport.claims.complete(Completion(claim, staged=other, read=None))
    assert bodies(transport) == [0, 1, 2]


def test_a_completion_waits_for_a_task_that_is_staging_and_drops_what_it_left(
    backend, transport, claim, needs_row_locks
):
    """A task that loses the race is seen: its rows cannot appear after the claim was ended."""
    groups = transport.outbox.stage(claim, "job.0.1", [results(0, 5)])
    late, holding, go_on = backend.transport(), threading.Event(), threading.Event()
    hold = late.outbox._hold

    def slowly(transaction, claim):
        hold(transaction, claim)
        holding.set()
        go_on.wait(20)

    late.outbox._hold = slowly
    staging = threading.Thread(target=late.outbox.stage, args=(claim, "job.0.9", [results(0, 5)]))
    staging.start()
    assert holding.wait(20)
    done = []
    completing = threading.Thread(
        target=lambda: done.append(transport.claims.complete(Completion(claim, staged=groups, read=None)))
    )
    completing.start()
    completing.join(0.3)
    assert done == []
    go_on.set()
    eventually(lambda: done == [5])
    staging.join()
    assert bodies(backend.transport()) == list(range(5))
    assert staged(backend, late) == 0


def test_a_crash_of_the_database_empties_the_outbox_and_completes_nothing():
    """The table is not logged: what the server lost is noticed, and the claim is there to be processed again."""
    with PostgresCluster(driver=chosen_driver()) as cluster, QueueTransport(cluster.url()) as transport:
        transport.install("orders", "billing")
        transport.send("orders", [new_message(str(number)) for number in range(10)])
        claim = transport.claim("orders", "me", 100)
        groups = transport.outbox.stage(claim, "job.0.1", [results(0, 10)])
        cluster.restart("immediate")
        with pytest.raises(StagedLostError, match="10 of 10 messages for billing"):
            transport.claims.complete(Completion(claim, staged=groups, read=None))
        groups = transport.outbox.stage(claim, "job.0.2", [results(0, 10)])
        assert transport.claims.complete(Completion(claim, staged=groups, read=None)) == 10
        assert bodies(transport) == list(range(10))
