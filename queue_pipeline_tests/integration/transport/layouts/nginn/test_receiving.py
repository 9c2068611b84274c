"""Receiving under the four transaction modes, and what becomes of a message whose work failed."""

import threading

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport import Operation, TransactionMode
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.layouts.nginn.receiving import NGinnReceiver
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, body_of, number_of, placed

MODES = list(TransactionMode)
RELIABLE = [mode for mode in MODES if mode is not TransactionMode.UNRELIABLE]
ATOMIC = [TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, TransactionMode.TRANSACTION_SCOPE]


class Boom(Exception):
    """What a handler raises."""


def numbers(messages):
    return [number_of(message.body) for message in messages]


def fail_to_receive(bus, mode=TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, count=100):
    with pytest.raises(Boom), bus.transport.receive(ORDERS, count, mode):
        raise Boom("no paper")


@pytest.mark.parametrize("mode", MODES)
def test_received_messages_are_processed_in_every_mode(bus, mode):
    bus.send(3)
    with bus.transport.receive(ORDERS, 2, mode) as batch:
        assert numbers(batch) == [0, 1]
    assert bus.subqueues() == "XXI"
    assert bus.claimed() == []


@pytest.mark.parametrize("mode", MODES)
def test_an_empty_queue_hands_over_nothing_in_every_mode(bus, mode):
    with bus.transport.receive(ORDERS, 2, mode) as batch:
        assert len(batch) == 0


@pytest.mark.parametrize("mode", RELIABLE)
def test_the_attempt_of_a_failed_receive_is_counted_in_every_mode_that_keeps_messages(bus, mode):
    bus.send(2)
    fail_to_receive(bus, mode)
    for row in bus.rows():
        assert (row["subqueue"], row["retry_count"]) == ("R", 1)
        assert "Boom: no paper" in row["error_info"]
        assert (row["retry_time"] - bus.now()).total_seconds() == pytest.approx(30, abs=5)
    assert bus.claimed() == []
    assert bus.transport.claims.list() == []


def test_what_was_received_unreliably_is_gone_though_its_work_failed(bus):
    bus.send(1)
    fail_to_receive(bus, TransactionMode.UNRELIABLE)
    (row,) = bus.rows()
    assert (row["subqueue"], row["retry_count"], row["error_info"]) == ("X", 0, None)


@pytest.mark.parametrize("mode", MODES)
def test_sends_are_undone_with_the_receive_in_the_modes_that_say_so(bus, mode):
    bus.send(1)
    with pytest.raises(Boom), bus.transport.receive(ORDERS, 1, mode) as batch:
        batch.send([Operation(BILLING, placed(7))])
        raise Boom
    assert len(bus.rows(BILLING)) == (0 if mode in ATOMIC else 1)


@pytest.mark.parametrize("mode", MODES)
def test_sends_of_a_receive_that_succeeds_arrive_in_every_mode(bus, mode):
    bus.send(1)
    with bus.transport.receive(ORDERS, 1, mode) as batch:
        batch.send([Operation(BILLING, placed(7))])
    assert [number_of(row["msg_text"]) for row in bus.rows(BILLING)] == [7]


def test_statements_of_the_user_are_undone_with_the_receive(bus):
    bus.send(1)
    with pytest.raises(Boom), bus.transport.receive(ORDERS, 1, TransactionMode.TRANSACTION_SCOPE) as batch:
        run_sql(batch.connection, f"UPDATE {bus.table(ORDERS)} SET label = ? WHERE id > 0", ("mine",))
        raise Boom
    assert bus.rows()[0]["label"] != "mine"


def test_every_retry_waits_for_longer_and_the_last_one_fails_for_good(bus):
    other = bus.other(retry_seconds=(10, 20))
    other.send(1)
    waits = []
    for _ in range(3):
        fail_to_receive(other)
        (row,) = other.rows()
        waits.append(
            (row["subqueue"], row["retry_count"], round((row["retry_time"] - other.now()).total_seconds(), -1))
        )
        other.set_due(-1, row["id"])
        other.peer_schedules()
    assert waits == [("R", 1, 10), ("R", 2, 20), ("F", 3, 0)]
    assert other.transport.nginn.failed(other.transport.resolve(ORDERS))[0].attempts == 3


def test_without_retries_the_first_failure_is_for_good(bus):
    other = bus.other(retry_seconds=())
    other.send(1)
    fail_to_receive(other)
    assert other.subqueues() == "F"


def test_an_interrupt_puts_messages_back_uncounted(bus):
    bus.send(1)
    with pytest.raises(KeyboardInterrupt), bus.transport.receive(ORDERS):
        raise KeyboardInterrupt
    (row,) = bus.rows()
    assert (row["subqueue"], row["retry_count"]) == ("I", 0)


def between_rollback_and_mark(monkeypatch, act):
    """Let another process act at the moment at which a failed message is ready again."""
    original = NGinnReceiver.mark

    def mark(self, message, error):
        act(message.row_version)
        return original(self, message, error)

    monkeypatch.setattr(NGinnReceiver, "mark", mark)


def test_a_message_that_a_peer_processed_meanwhile_is_not_changed(bus, monkeypatch):
    bus.send(2)
    between_rollback_and_mark(monkeypatch, lambda row: bus.peer_receives(row) if row == 1 else None)
    fail_to_receive(bus)
    first, second = bus.rows()
    assert (first["subqueue"], first["retry_count"], first["error_info"]) == ("X", 0, None)
    assert (second["subqueue"], second["retry_count"]) == ("R", 1)


def test_a_message_that_was_claimed_meanwhile_stays_in_its_claim(bus, monkeypatch):
    bus.send(1)
    held = []
    between_rollback_and_mark(monkeypatch, lambda _: held.append(bus.transport.claim(ORDERS, "other", 1)))
    fail_to_receive(bus)
    assert bus.rows()[0]["retry_count"] == 0
    bus.transport.claims.complete(Completion(held[0], read=None))
    assert bus.subqueues() == "X"


def test_an_attempt_that_cannot_be_counted_does_not_hide_the_error(bus, monkeypatch, caplog):
    bus.send(1)

    def broken(*_):
        raise RuntimeError("no connection")

    monkeypatch.setattr(NGinnReceiver, "fail", broken)
    fail_to_receive(bus)
    assert bus.subqueues() == "I"
    assert "could not be counted: no connection" in caplog.text


def test_messages_are_taken_in_due_order(bus):
    for due in (-1, -3, -2, -4):
        bus.insert(body_of(-due), retry_time=due)
    with bus.transport.receive(ORDERS, 3) as batch:
        assert numbers(batch) == [4, 3, 2]
    assert bus.subqueues() == "IXXX"


def test_messages_sent_at_the_same_time_are_taken_in_the_order_of_sending(bus):
    bus.transport.send(ORDERS, [placed(n) for n in range(20)])
    with bus.transport.receive(ORDERS, 20) as batch:
        assert numbers(batch) == list(range(20))


def test_messages_are_taken_in_the_order_of_their_ids_on_request(bus):
    other = bus.other(fifo=True)
    for due in (-1, -3, -2, -4):
        other.insert(body_of(-due), retry_time=due)
    with other.transport.receive(ORDERS, 3) as batch:
        assert numbers(batch) == [1, 3, 2]


def test_urgent_messages_come_first(bus):
    bus.send(2)
    bus.transport.send(ORDERS, placed(9, headers={"_NG-Priority": "high"}))
    with bus.transport.receive(ORDERS, 1) as batch:
        assert numbers(batch) == [9]


def test_a_receive_of_no_messages_is_refused(bus):
    with pytest.raises(ConfigurationError, match=r"at least one"), bus.transport.receive(ORDERS, 0):
        pass


def test_two_receivers_pass_over_each_others_messages(bus, needs_row_locks):
    bus.send(4)
    other = bus.other()
    with bus.transport.receive(ORDERS, 2) as mine, other.transport.receive(ORDERS, 2) as theirs:
        assert (numbers(mine), numbers(theirs)) == ([0, 1], [2, 3])
    assert bus.subqueues() == "XXXX"


def test_competing_receivers_hand_over_every_message_once(bus):
    bus.send(60)
    found, lock = [], threading.Lock()

    def work():
        own = bus.other()
        while True:
            with own.transport.receive(ORDERS, 5) as batch:
                if not len(batch):
                    return
                with lock:
                    found.extend(numbers(batch))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(60))
    assert set(bus.subqueues()) == {"X"}
