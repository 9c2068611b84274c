"""Runs that take their slots at the same time: threads, processes, and one that waits in a transaction."""

import multiprocessing
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_pipeline.transport import new_message
from queue_pipeline.transport.addresses.queues import SLOTS_TABLE
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.slot_table import LEASE, table_of

MOST = 3


class Census:
    """Counts who is at work from outside: raised after a slot was taken, lowered before it is given back."""

    def __init__(self, number, lock, highest):
        self.number, self.lock, self.highest = number, lock, highest

    def change(self, by):
        with self.lock:
            self.number.value += by
            self.highest.value = max(self.highest.value, self.number.value)


def work(transport, owner, census, rounds, seed):
    """Take, look, give back, in changing numbers; returns what was seen whenever there were too many."""
    chance, holders, orders = random.Random(seed), transport.slots, transport.resolve("orders")
    too_many = []
    for _ in range(rounds):
        held = holders.take(orders, owner, chance.randint(1, MOST), MOST, LEASE)
        census.change(held)
        live = holders.held(orders)
        too_many += [live] if sum(live.values()) > MOST else []
        if held > 1 and chance.random() < 0.5:
            census.change(1 - held)
            holders.release(orders, owner, keep=1)
            held = 1
        census.change(-held)
        holders.release(orders, owner)
    return too_many


def some_above(transport):
    """Somebody who came when more were allowed, and is still at it in the slots above."""
    holders, orders = transport.slots, transport.resolve("orders")
    assert holders.take(orders, "first", MOST + 1, MOST + 2, LEASE) == MOST + 1
    assert holders.take(orders, "old", 1, MOST + 2, LEASE) == 1
    holders.release(orders, "first")
    return 1


@pytest.mark.parametrize("lowered", [False, True], ids=["", "after-the-limit-was-lowered"])
def test_never_more_slots_are_held_than_allowed_however_many_owners_ask(transport, backend, lowered):
    taken = some_above(transport) if lowered else 0
    census = Census(multiprocessing.Value("i", taken, lock=False), threading.Lock(), multiprocessing.Value("i", taken))
    threads, rounds = 6, 8 if backend.name == "sqlserver" else 25
    together = threading.Barrier(threads)

    def start(number):
        own = backend.transport()
        together.wait(timeout=30)
        return work(own, f"run {number}", census, rounds, number)

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(start, range(threads))) == [[]] * threads
    assert 0 < census.highest.value <= MOST
    assert transport.slots.held(transport.resolve("orders")) == ({"old": 1} if lowered else {})


def in_process(url, schema, number, census, together):
    with QueueTransport(url, schema=schema) as transport:
        transport.slots.list()
        together.wait(60)
        assert work(transport, f"run {number}", census, 25, number) == []


def test_never_more_slots_are_held_than_allowed_where_every_receiver_is_a_process(transport, backend):
    context = multiprocessing.get_context("spawn")
    census = Census(context.Value("i", 0, lock=False), context.Lock(), context.Value("i", 0, lock=False))
    together = context.Barrier(3)
    arguments = [(backend.url, backend.schema, number, census, together) for number in range(3)]
    children = [context.Process(target=in_process, args=each) for each in arguments]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert [child.exitcode for child in children] == [0, 0, 0]
    assert 0 < census.highest.value <= MOST
    assert transport.slots.list() == []


def test_only_one_of_several_owners_gets_the_last_slot(transport, backend):
    orders = transport.resolve("orders")
    own = [backend.transport() for _ in range(5)]
    together = threading.Barrier(len(own))

    def last(number):
        together.wait(timeout=30)
        return own[number].slots.take(orders, f"run {number}", 1, 1, LEASE)

    for _ in range(3):
        with ThreadPoolExecutor(len(own)) as pool:
            assert sorted(pool.map(last, range(len(own)))) == [0, 0, 0, 0, 1]
        # The first ever on a queue make its row together, so let them be the first again.
        backend.sql(transport, f"DELETE FROM {table_of(transport)}")


def test_only_takers_wait_for_an_owner_that_takes_slots(transport, backend, needs_row_locks):
    transport.send("orders", new_message("1"))
    orders = transport.resolve("orders")
    assert transport.slots.take(orders, "b", 1, 3, LEASE) == 1
    gate = transport.database.dialect.statement("operations.slot_gate", slots=transport.book.own(SLOTS_TABLE))
    with transport.database.transaction() as unfinished:
        unfinished.execute(gate, queue=orders.canonical)
        other = backend.transport()
        assert other.claim("orders", "b", 1).messages == 1
        assert other.slots.renew(orders, "b", LEASE) == 1
        assert other.slots.held(orders) == {"b": 1}
        assert other.slots.release_owner("b") == 1
