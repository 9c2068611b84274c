from datetime import timedelta

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.waiting import eventually


def test_peek_counts_up_to_its_limit(transport):
    assert transport.peek("orders") == 0
    transport.send("orders", [new_message(str(n)) for n in range(25)])
    assert transport.peek("orders") == 25
    assert transport.peek("orders", max_records_to_peek=10) == 10
    assert transport.peek("orders") == 25


def test_peek_does_not_count_what_is_being_received(transport, needs_row_locks):
    """XT-01, XT-02: two messages, one held by an open receive: one waits."""
    transport.send("orders", [new_message("1"), new_message("2")])
    with transport.receive("orders", 1):
        assert transport.peek("orders") == 1
    assert transport.peek("orders") == 1


def test_peek_counts_what_a_failed_receive_gave_back(transport):
    transport.send("orders", [new_message("1"), new_message("2")])
    with pytest.raises(ZeroDivisionError), transport.receive("orders", 2):
        raise ZeroDivisionError
    assert transport.peek("orders") == 2


def test_peek_is_not_blocked_by_a_long_receive_and_blocks_no_receive(transport, backend, needs_row_locks):
    """IT-05: peeking succeeds while a receive is open, and a receive beside an open peek takes every row."""
    transport.send("orders", [new_message(str(n)) for n in range(3)])
    with transport.receive("orders", 1), transport.database.transaction() as peeking:
        command = transport.database.dialect.statement("nservicebus/queue.peek", queue=transport.resolve("orders"))
        assert peeking.count(command, limit=100) == 2
        with transport.receive("orders", 10) as batch:
            assert len(batch) == 2


def test_peek_is_right_when_transaction_numbers_have_grown(postgresql):
    """xmax of a finished deleter, an aborted one and a running one, with other transactions in between."""
    transport = postgresql.transport()
    transport.install("orders")
    transport.send("orders", [new_message(str(n)) for n in range(4)])
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), transport.receive("orders", 2):
            transport.send("orders", new_message("between"))
            raise ZeroDivisionError
    with transport.receive("orders", 1):
        transport.send("orders", new_message("between"))
        assert transport.peek("orders") == 7
    assert transport.peek("orders") == 7


def test_a_purge_deletes_the_expired_and_nothing_else(transport):
    """AS-03: in batches, and the message that lives on is received."""
    short = timedelta(milliseconds=1)
    transport.send("orders", [new_message("x", time_to_be_received=short) for _ in range(7)])
    transport.send("orders", new_message("alive", time_to_be_received=timedelta(hours=1)))
    transport.send("orders", new_message("for ever"))
    eventually(lambda: transport.status("orders")[0].expired == 7)
    assert transport.purge("orders", batch=3) == 7
    assert transport.purge("orders") == 0
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"alive", b"for ever"]


def test_a_purge_passes_over_what_is_being_received(transport, needs_row_locks):
    transport.send("orders", [new_message("x", time_to_be_received=timedelta(milliseconds=1)) for _ in range(2)])
    eventually(lambda: transport.status("orders")[0].expired == 2)
    with transport.database.transaction() as receiving:
        orders = transport.resolve("orders")
        command = transport.database.shapes.statement(receiving, "nservicebus/queue.receive", orders, "deleted")
        assert len(receiving.rows(command, limit=1)) == 1
        assert transport.purge("orders") == 1


def test_status_shows_how_many_messages_wait_in_which_queue(transport, backend):
    transport.send("orders", [new_message(str(n)) for n in range(5)])
    transport.send("orders", new_message("later", delay=timedelta(hours=1)))
    transport.claims.claim(transport.resolve("orders"), "me", 2)
    (status,) = transport.status("orders")
    assert (status.pending, status.delayed, status.claims, status.claimed, status.expired) == (3, 1, 1, 2, 0)
    assert status.abandoned_claims == 0
    assert 0 <= status.oldest_seconds < 120
    assert 3500 < status.next_due_seconds <= 3600
    names = {each.queue.lower() for each in transport.status()}
    assert names == {transport.resolve(name).canonical.lower() for name in ("orders", "error")}


def test_the_age_of_a_message_without_a_readable_time_is_unknown(transport):
    from queue_pipeline.transport import OutgoingMessage

    transport.send("orders", OutgoingMessage(b"", {}))
    assert transport.status("orders")[0].oldest_seconds is None


@pytest.mark.parametrize("act", ["peek", "show", "purge"])
def test_limits_below_one_are_refused(transport, act):
    with pytest.raises(ConfigurationError, match="at least one"):
        getattr(transport, act)("orders", 0)
