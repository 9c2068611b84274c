import threading

import pytest

from queue_pipeline.transport.ahead import ahead


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_the_items_come_in_order_and_all_of_them(count):
    assert list(ahead(iter(range(count)))) == list(range(count))


def test_the_next_item_is_made_while_the_last_one_is_used():
    made = []
    third_made = threading.Event()

    def items():
        for number in range(4):
            made.append((number, threading.current_thread() is threading.main_thread()))
            if number == 2:
                third_made.set()
            yield number

    for number in ahead(items()):
        if number == 1:
            assert third_made.wait(10)
    assert made == [(0, True), (1, True), (2, False), (3, False)]


def test_a_failure_reaches_whoever_asks_for_the_item():
    def items():
        yield from range(3)
        raise ZeroDivisionError

    seen = []
    with pytest.raises(ZeroDivisionError):
        for number in ahead(items()):
            seen.append(number)
    assert seen == [0, 1, 2]


def test_stopping_early_leaves_no_thread_behind():
    before = threading.active_count()
    for number in ahead(iter(range(100))):
        if number == 5:
            break
    assert threading.active_count() == before
