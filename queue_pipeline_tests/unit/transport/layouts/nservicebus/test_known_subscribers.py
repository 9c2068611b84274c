"""Who subscribed is asked once in a while, and an answer that never came is not remembered."""

import pytest

from queue_pipeline.transport.layouts.nservicebus.subscriptions import KnownSubscribers

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
    return KnownSubscribers(clock)


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
