"""Which reply belongs to whom, as values: a clock that the test sets, and no database."""

from concurrent.futures import CancelledError

import pytest

from queue_pipeline.client import pending as module
from queue_pipeline.client.pending import Ending, PendingRequests
from queue_pipeline.client.reply import Reply
from queue_pipeline.errors import ClientClosedError, RequestTimeoutError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pending(clock):
    return PendingRequests("shop.web1", clock)


def reply(text):
    return Reply(text.encode(), {})


def test_a_reply_ends_the_request_that_it_answers_and_no_other(pending):
    futures = {name: pending.add(name, "orders", 10) for name in "abc"}
    assert pending.answer("b", reply("for b"))
    assert futures["b"].result(0).text == "for b"
    assert (futures["a"].done(), futures["c"].done(), len(pending)) == (False, False, 2)
    assert [pending.is_waiting(name) for name in (*"abc", None, "d")] == [True, False, True, False, False]


def test_a_second_reply_and_a_foreign_reply_match_no_request(pending):
    pending.add("a", "orders", 10)
    pending.answer("a", reply("1"))
    assert not pending.answer("a", reply("2"))
    assert not pending.answer("stranger", reply("3"))
    assert (pending.ending("a"), pending.ending("stranger"), pending.ending(None)) == (Ending.ANSWERED, None, None)


def test_requests_end_when_their_time_is_up_and_not_before(pending, clock):
    short, long = pending.add("short", "orders", 5), pending.add("long", "orders", 50)
    assert pending.seconds_left() == 5
    clock.now += 4.9
    pending.time_out_all()
    assert not short.done()
    clock.now += 0.1
    pending.time_out_all()
    error = short.exception(0)
    assert isinstance(error, RequestTimeoutError)
    assert (error.queue, error.message_id, error.callback_queue) == ("orders", "short", "shop.web1")
    assert "within 5 s" in str(error)
    assert (long.done(), pending.ending("short"), pending.seconds_left()) == (False, Ending.TIMED_OUT, 45)
    assert not pending.answer("short", reply("late"))


def test_a_request_ends_only_once(pending):
    future = pending.add("a", "orders", 5)
    pending.answer("a", reply("1"))
    pending.time_out("a")
    pending.drop("a", Ending.NOT_SENT)
    pending.fail_all(Ending.CLOSED, lambda request: ClientClosedError("closed"))
    assert (future.result(0).text, pending.ending("a"), pending.seconds_left()) == ("1", Ending.ANSWERED, None)


def test_a_future_that_its_owner_cancelled_takes_no_reply(pending):
    future = pending.add("a", "orders", 5)
    future.cancel()
    assert not pending.answer("a", reply("1"))
    assert pending.ending("a") is Ending.CANCELLED
    with pytest.raises(CancelledError):
        future.result(0)


def test_closing_ends_all_of_them_each_with_its_own_error(pending):
    futures = [pending.add(name, "orders", 5) for name in "ab"]
    pending.fail_all(Ending.CLOSED, lambda request: ClientClosedError(request.message_id))
    assert [str(future.exception(0)) for future in futures] == ["a", "b"]
    assert len(pending) == 0


def test_only_the_last_ended_requests_are_remembered(pending, monkeypatch):
    monkeypatch.setattr(module, "REMEMBERED", 2)
    for name in "abc":
        pending.add(name, "orders", 5)
        pending.answer(name, reply(name))
    assert [pending.ending(name) for name in "abc"] == [None, Ending.ANSWERED, Ending.ANSWERED]
