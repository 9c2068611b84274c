"""RunSlots as their owner sees them: what it holds, when it asks again, and when it relies on nothing."""

import subprocess
import sys

from sqlalchemy import create_engine

from queue_pipeline.errors import DatabaseUnavailableError
from queue_pipeline.transport.operations.process_identity import is_gone, this_process
from queue_pipeline.transport.operations.slots import RunSlots
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.elapsed import end_leases
from queue_pipeline_tests.support.databases.slot_table import LEASE
from queue_pipeline_tests.support.waiting import eventually


def mine(transport, owner="a", most=2, lease=LEASE):
    return RunSlots(transport.slots, transport.resolve("orders"), owner, most, lease)


def test_an_owner_knows_what_it_has(transport):
    orders = transport.resolve("orders")
    first, second = mine(transport, "a"), mine(transport, "b")
    assert (first.held, first.take(2), first.held, second.take(1)) == (0, 2, 2, 0)
    assert second.refusal() == f"all 2 slots of {orders} are taken by a (2)"
    first.keep(1)
    assert (first.held, second.take(1)) == (1, 1)
    first.release()
    second.release()
    assert (first.held, transport.slots.list()) == (0, [])
    assert mine(transport, most=1).refusal() == f"the only slot of {orders} is taken by others"


def test_an_owner_that_got_less_than_it_wanted_asks_again_after_a_second(transport, monkeypatch):
    now = clock(monkeypatch)
    first, second = mine(transport, "a"), mine(transport, "b")
    assert (first.take(1), second.take(2)) == (1, 1)
    first.release()
    assert second.take(2) == 1
    now.seconds += 1.0
    assert second.take(2) == 2


def test_an_owner_relies_on_nothing_once_its_lease_has_expired(transport, backend, monkeypatch, caplog):
    now = clock(monkeypatch)
    first, second = mine(transport, "a"), mine(transport, "b")
    first.take(2)
    now.seconds += LEASE - 1
    first.renew()
    now.seconds += LEASE - 1
    assert first.held == 2
    now.seconds += 1
    assert first.held == 0
    end_leases(backend, transport, "a")
    assert second.take(1) == 1
    first.renew()
    assert "1 of 2 slots of" in caplog.text
    assert (first.held, first.take(2)) == (1, 1)


def test_an_owner_whose_slots_were_freed_in_its_absence_has_them_again_at_its_next_renewal(transport, backend):
    orders, first = transport.resolve("orders"), mine(transport, "a")
    first.take(2)
    transport.slots.release_owner("a")
    first.renew()
    assert (first.held, transport.slots.held(orders)) == (2, {"a": 2})


def test_slots_name_the_process_that_uses_them(transport):
    """The step that takes a run's first batches may be a process of its own, which ends before the work begins."""
    orders = transport.resolve("orders")
    mine(transport, "a").take(1)
    assert [one.process for one in transport.slots.list(orders)] == [""]
    working = RunSlots(transport.slots, orders, "a", 2, LEASE, this_process())
    for step in (lambda: working.take(1), working.renew, lambda: working.take(2)):
        step()
        assert [one.process for one in transport.slots.list(orders)] == [this_process()]


def test_a_process_is_gone_once_it_has_ended_and_others_know_nothing_of_other_machines():
    code = (
        "from queue_pipeline.transport.operations.process_identity import this_process; "
        "print(this_process(), flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdin is not None and it.stdout is not None
        other = it.stdout.readline().strip()
        assert (other != this_process(), is_gone(other), is_gone(this_process())) == (True, False, False)
        it.kill()
        eventually(lambda: is_gone(other))
    assert is_gone(other)
    machine, _, process = other.partition(" ")
    assert not is_gone(f"another-{machine} {process}")
    assert not is_gone("")


def test_an_unavailable_database_does_not_keep_an_owner_from_ending(sqlite, caplog):
    mine(QueueTransport(create_engine(sqlite.url, creator=_no_server))).release()
    assert "wait for their lease: no server answers" in caplog.text


def _no_server():
    raise DatabaseUnavailableError("no server answers")


class Clock:
    seconds = 1_000.0


def clock(monkeypatch):
    now = Clock()
    monkeypatch.setattr("queue_pipeline.transport.operations.slots.time.monotonic", lambda: now.seconds)
    return now
