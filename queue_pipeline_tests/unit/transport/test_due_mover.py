"""The mover of due messages under a clock of its own: time passes when the test says so."""

import logging

import pytest

from queue_pipeline.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    QueueNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.transport.due_mover import BACKOFF, LOOK_SECONDS, RARE_LOOK_SECONDS, RETRY_SECONDS, DueMover


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Transport:
    """Queues with messages that are due at given moments of the clock, on a database that can fail."""

    def __init__(self, clock, url="postgresql://here"):
        self.clock, self.due, self.held, self.errors = clock, {}, set(), {}
        self.away = None
        self.looks, self.moves = [], []
        self.database = self
        self.url = url

    def next_due_seconds(self, queue):
        self.looks.append((queue, self.clock()))
        if self.away or queue in self.errors:
            raise self.away or self.errors[queue]
        moments = self.due.get(queue, [])
        return min(moments) - self.clock() if moments else None

    def move_due(self, queue, batch, *, once):
        assert once
        self.moves.append((queue, batch))
        if queue in self.held:
            return 0
        moments = self.due[queue]
        moved = [moment for moment in sorted(moments) if moment <= self.clock()][:batch]
        for moment in moved:
            moments.remove(moment)
        return len(moved)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def transport(clock):
    return Transport(clock)


def mover_of(transport, *queues, **options):
    return DueMover([(transport, queue) for queue in queues or ("orders",)], clock=transport.clock, **options)


def run_for(mover, clock, seconds):
    """Poll as a loop would; returns its waits."""
    end, waits = clock() + seconds, []
    while clock() < end:
        waits.append(mover.poll())
        assert waits[-1] > 0, "a busy loop"
        clock.now += waits[-1]
    return waits


@pytest.mark.parametrize(
    ("due_in", "wait"),
    [(0.3, 0.3), (0.499, 0.499), (0.5, 0.5), (0.501, LOOK_SECONDS), (86_400, LOOK_SECONDS), (None, LOOK_SECONDS)],
)
def test_the_next_message_counts_if_it_is_due_before_the_next_look(transport, clock, due_in, wait):
    """UT-33, UT-34: one that is due later does not put the look off."""
    transport.due["orders"] = [] if due_in is None else [clock() + due_in]
    assert mover_of(transport).poll() == pytest.approx(wait)


def test_a_wait_of_a_millisecond_is_exact(transport, clock):
    """UT-37: neither rounded to nothing, which would be a busy loop, nor to a look's interval."""
    transport.due["orders"] = [clock() + 0.001]
    mover = mover_of(transport)
    wait = mover.poll()
    assert wait == pytest.approx(0.001)
    clock.now += wait
    mover.poll()
    assert mover.moved == 1


def test_a_poll_before_its_time_queries_nothing(transport, clock):
    mover = mover_of(transport)
    mover.poll()
    clock.now += LOOK_SECONDS / 2
    assert mover.poll() == pytest.approx(LOOK_SECONDS / 2)
    assert len(transport.looks) == 1


def test_a_poll_moves_one_batch_of_a_backlog_and_the_next_poll_continues_at_once(transport, clock):
    transport.due["orders"] = [clock() - n for n in range(25)]
    transport.due["returns"] = [clock() - 1]
    mover = mover_of(transport, "orders", "returns", batch=10)
    waits, counts = [], []
    for _ in range(3):
        waits.append(mover.poll())
        counts.append(mover.moved)
    assert counts == [11, 21, 26]
    assert waits == [0, 0, LOOK_SECONDS]


def test_failures_back_off_by_1_2_4_seconds_up_to_half_a_minute(transport, clock):
    """UT-32: only failures back off; a table without messages is looked at twice a second, for others write too."""
    mover, transport.away = mover_of(transport), DatabaseUnavailableError("away")
    assert run_for(mover, clock, 120)[:8] == pytest.approx([1, 2, 4, 8, 16, 30, 30, 30])
    transport.away = None
    clock.now += BACKOFF.longest
    assert mover.poll() == LOOK_SECONDS
    clock.now += LOOK_SECONDS
    transport.away = DatabaseUnavailableError("away again")
    assert mover.poll() == pytest.approx(1)


def test_messages_are_moved_when_they_are_due(transport, clock):
    """UT-33, UT-35: exactly then, also between two looks, and each once."""
    transport.due["orders"] = [clock() + seconds for seconds in (0.3, 1.7, 1.701, 9.0)]
    arrived = []
    mover = mover_of(transport, on_moved=lambda queue, count: arrived.append((queue, round(clock() - 1000, 3), count)))
    waits = run_for(mover, clock, 10)
    assert [(queue, count) for queue, _, count in arrived] == [("orders", 1)] * 4
    assert [moment for _, moment, _ in arrived] == pytest.approx([0.3, 1.7, 1.701, 9.0])
    assert mover.moved == 4
    assert max(waits) <= LOOK_SECONDS


def test_what_others_store_is_seen_within_half_a_second(transport, clock):
    """UT-30, UT-31: a message a day away hides nothing."""
    transport.due["orders"] = [clock() + 86_400]
    mover = mover_of(transport)
    run_for(mover, clock, 3)
    transport.due["orders"].append(clock() - 1)
    run_for(mover, clock, LOOK_SECONDS)
    assert mover.moved == 1


def test_nothing_is_written_while_nothing_is_due(transport, clock):
    transport.due["orders"] = [clock() + 100]
    run_for(mover_of(transport), clock, 10)
    assert transport.moves == []
    assert 20 <= len(transport.looks) <= 21


def test_a_message_that_another_mover_holds_is_tried_again_soon_but_not_at_once(transport, clock):
    transport.due["orders"], transport.held = [clock() - 1], {"orders"}
    mover = mover_of(transport)
    assert set(map(round_, run_for(mover, clock, 1))) == {RETRY_SECONDS}
    assert mover.moved == 0
    transport.held.clear()
    run_for(mover, clock, RETRY_SECONDS)
    assert mover.moved == 1


def round_(seconds):
    return round(seconds, 6)


def test_a_queue_without_a_delayed_table_is_looked_at_rarely(transport, clock):
    transport.errors["plain"] = QueueNotFoundError("plain.Delayed")
    transport.due["orders"] = [clock() + n for n in range(60)]
    mover = mover_of(transport, "plain", "orders")
    run_for(mover, clock, 61)
    assert [moment - 1000 for queue, moment in transport.looks if queue == "plain"] == pytest.approx(
        [0, RARE_LOOK_SECONDS, 2 * RARE_LOOK_SECONDS], abs=LOOK_SECONDS
    )
    assert (mover.moved, mover.last_error) == (60, None)


def test_an_unavailable_database_is_reported_once_and_tried_less_and_less_often(transport, clock, caplog):
    caplog.set_level(logging.INFO)
    mover = mover_of(transport, "orders", "returns")
    run_for(mover, clock, 1)
    transport.looks.clear()
    transport.away, began = DatabaseUnavailableError("postgresql at here cannot be reached"), clock()
    run_for(mover, clock, 100)
    assert len(transport.looks) == 8, "one queue asks for all of its database"
    assert [moment - began for _, moment in transport.looks] == pytest.approx([0, 1, 3, 7, 15, 31, 61, 91], abs=1)
    assert mover.last_error == "postgresql at here cannot be reached"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "orders cannot be moved: postgresql at here cannot be reached" in caplog.text
    transport.away = None
    transport.due["returns"] = [clock() - 1]
    run_for(mover, clock, BACKOFF.longest)
    assert (mover.moved, mover.last_error) == (1, None)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    transport.away = DatabaseUnavailableError("again")
    run_for(mover, clock, 1)
    assert caplog.records[-1].levelname == "WARNING"


@pytest.mark.parametrize(
    "error",
    [AccessDeniedError("no right on orders"), TransientDatabaseError("busy"), ZeroDivisionError("a bug")],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_one_queue_does_not_affect_the_others(transport, clock, error):
    transport.errors["orders"] = error
    transport.due["returns"] = [clock() + n for n in range(10)]
    mover = mover_of(transport, "orders", "returns")
    run_for(mover, clock, 10)
    assert mover.moved == 10
    assert str(error) in mover.last_error
    del transport.errors["orders"]
    run_for(mover, clock, 10)
    assert mover.last_error is None


def test_an_unavailable_database_does_not_affect_another(transport, clock):
    other = Transport(clock, "postgresql://there")
    transport.away = DatabaseUnavailableError("away")
    other.due["orders"] = [clock() + n for n in range(10)]
    mover = DueMover([(transport, "orders"), (other, "orders")], clock=clock)
    run_for(mover, clock, 10)
    assert mover.moved == 10
    assert mover.last_error == "away"


def test_a_batch_has_the_requested_size(transport, clock):
    transport.due["orders"] = [clock()]
    mover_of(transport, batch=7).poll()
    assert transport.moves == [("orders", 7)]


def test_a_failing_output_is_not_taken_for_a_database_error(transport, clock):
    """The command line ends when its output is no longer read."""

    def broken(queue, count):
        raise BrokenPipeError

    transport.due["orders"] = [clock()]
    mover = mover_of(transport, on_moved=broken)
    with pytest.raises(BrokenPipeError):
        mover.poll()
    assert (mover.moved, mover.last_error) == (1, None)


def test_without_queues_nothing_happens(clock):
    assert DueMover([], clock=clock).poll() == RARE_LOOK_SECONDS
