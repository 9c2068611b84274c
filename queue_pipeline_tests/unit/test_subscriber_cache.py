"""Who subscribed is asked once in a while, by one thread for all, and an answer that never came is not remembered."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_pipeline.transport.subscriber_cache import SubscriberCache

A, B = frozenset({"Shop.A"}), frozenset({"Shop.B"})


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Table:
    """Counts the loads, and answers with their number."""

    def __init__(self):
        self.loads = 0

    def __call__(self):
        self.loads += 1
        return (f"load {self.loads}",)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(clock):
    return SubscriberCache(5.0, clock)


def test_an_answer_is_good_for_five_seconds(cache, clock):
    table = Table()
    assert cache.get(A, table) == cache.get(A, table) == ("load 1",)
    clock.now += 4.9
    assert cache.get(A, table) == ("load 1",)
    clock.now += 0.1
    assert cache.get(A, table) == ("load 2",)


def test_every_set_of_topics_has_an_answer_of_its_own(cache):
    assert cache.get(A, lambda: ("a",)) == ("a",)
    assert cache.get(B, lambda: ("b",)) == ("b",)
    assert cache.get(A, lambda: ("other",)) == ("a",)


def test_nothing_is_remembered_for_no_time(clock):
    cache, table = SubscriberCache(0.0, clock), Table()
    assert [cache.get(A, table), cache.get(A, table)] == [("load 1",), ("load 2",)]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_load_that_failed_or_was_cancelled_is_not_cached(cache, error):
    """UT-40: the next one asks again."""

    def interrupted():
        raise error

    table = Table()
    with pytest.raises(error):
        cache.get(A, interrupted)
    assert cache.get(A, table) == ("load 1",)
    assert cache.get(A, table) == ("load 1",)


def test_an_answer_is_forgotten_with_any_of_its_topics(cache):
    both, table = A | B, Table()
    cache.get(both, table)
    cache.forget(["Shop.C"])
    assert cache.get(both, table) == ("load 1",)
    cache.forget(["Shop.B"])
    assert cache.get(both, table) == ("load 2",)


def test_an_answer_from_before_a_change_is_not_remembered(cache):
    def while_somebody_subscribes():
        cache.forget(["Shop.A"])
        return ("old",)

    assert cache.get(A, while_somebody_subscribes) == ("old",)
    assert cache.get(A, lambda: ("new",)) == ("new",)


class Gate:
    """A load that waits until others wait for it."""

    def __init__(self, error=None):
        self.entered, self.opened, self.loads, self.error = threading.Event(), threading.Event(), 0, error

    def __call__(self):
        self.loads += 1
        self.entered.set()
        assert self.opened.wait(30)
        if self.error is not None:
            raise self.error
        return ("loaded once",)


def together(cache, gate, others):
    """One thread that loads, and others that ask meanwhile."""
    with ThreadPoolExecutor(4) as threads:
        first = threads.submit(cache.get, A, gate)
        assert gate.entered.wait(30)
        waiting = [threads.submit(cache.get, A, others) for _ in range(3)]
        gate.opened.set()
        return first, waiting


def test_of_several_threads_one_loads_for_all(cache):
    gate, table = Gate(), Table()
    first, waiting = together(cache, gate, table)
    assert [each.result() for each in (first, *waiting)] == [("loaded once",)] * 4
    assert (gate.loads, table.loads) == (1, 0)


def test_those_who_waited_for_a_load_that_was_cancelled_ask_again_once(cache):
    table = Table()
    first, waiting = together(cache, Gate(SystemExit()), table)
    assert isinstance(first.exception(), SystemExit)
    assert [each.result() for each in waiting] == [("load 1",)] * 3
    assert table.loads == 1
