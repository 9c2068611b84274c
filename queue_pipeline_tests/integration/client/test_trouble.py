"""A client while its database is unavailable, and after commits of unknown outcome: no reply is lost or duplicated."""

import contextlib
import logging
import threading

import pytest

from queue_pipeline.client import callback_receiver as receiving
from queue_pipeline.errors import CommitUnknownError, DatabaseUnavailableError
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline_tests.support.responder import Responder, answer_waiting, failed
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch):
    monkeypatch.setattr(receiving, "TROUBLE_BACKOFF", Backoff(0.01, 0.01))


def client_gets(transport, client, text):
    future = client.submit("orders", text, 60)
    answer_waiting(transport, "orders")
    return future.result(20).text


def test_an_unavailable_database_costs_only_the_requests_of_that_time(transport, make, monkeypatch, caplog):
    client = make()
    waiting = client.submit("orders", "before", 60)
    looked = threading.Event()

    def away():
        if threading.current_thread().name.startswith("replies to"):
            looked.set()
        raise DatabaseUnavailableError("the database cannot be reached: pulled the plug")

    with monkeypatch.context() as plug, caplog.at_level(logging.WARNING, "queue_pipeline.client"):
        plug.setattr(transport.database.engine, "connect", away)
        with pytest.raises(DatabaseUnavailableError, match=r"request .* to .*orders.*: the database cannot be reached"):
            client.request("orders", "meanwhile", 20)
        assert looked.wait(20)
        eventually(lambda: "replies cannot be taken from" in caplog.text)
    with Responder(transport, "orders"):
        assert waiting.result(20).text == "re: before"
        assert client.request("orders", "after", 20).text == "re: after"
    assert failed(transport) == []


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_outcome_is_unknown_loses_no_reply(transport, make, monkeypatch, committed):
    client = make()
    receive, broken = transport.receive, []

    @contextlib.contextmanager
    def break_once(queue, *options):
        first = queue == client.callback_queue and not broken
        with receive(queue, *options) as batch:
            yield batch
            if first:
                broken.append([message.id for message in batch])
                if not committed:
                    raise CommitUnknownError("the connection broke while committing")
        if first:
            raise CommitUnknownError("the connection broke while committing")

    monkeypatch.setattr(transport, "receive", break_once)
    assert client_gets(transport, client, "1") == "re: 1"
    assert len(broken[0]) == 1
    eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert failed(transport) == []


def test_two_commits_whose_outcome_is_unknown_hand_each_reply_over_once(transport, make, monkeypatch):
    """Both were undone: the replies come again, after their requests have ended."""
    client = make()
    receive, broken, second_is_there = transport.receive, [], threading.Event()

    @contextlib.contextmanager
    def break_twice(queue, *options):
        breaks = queue == client.callback_queue and len(broken) < 2
        if breaks and broken:
            assert second_is_there.wait(20)
        with receive(queue, *options) as batch:
            yield batch
            if breaks:
                broken.append([message.id for message in batch])
                raise CommitUnknownError("the connection broke while committing")

    monkeypatch.setattr(transport, "receive", break_twice)
    assert client_gets(transport, client, "1") == "re: 1"
    second = client.submit("orders", "2", 60)
    answer_waiting(transport, "orders")
    second_is_there.set()
    assert second.result(20).text == "re: 2"
    eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert [len(ids) for ids in broken] == [1, 2]
    assert failed(transport) == []


def test_a_reply_of_an_unknown_commit_that_is_locked_for_a_while_is_handed_over_once(
    backend, transport, make, monkeypatch, needs_row_locks
):
    """The server may hold the rows of a lost session long after its client has gone on."""
    client, lost_session = make(), backend.transport()
    receive, held, locks = transport.receive, threading.Event(), contextlib.ExitStack()

    @contextlib.contextmanager
    def break_once(queue, *options):
        breaks = False
        with contextlib.suppress(InterruptedError), receive(queue, *options) as batch:
            yield batch
            breaks = queue == client.callback_queue and len(batch) and not held.is_set()
            if breaks:
                raise InterruptedError
        if breaks:
            lost = locks.enter_context(lost_session.receive(queue, 1))
            assert len(lost) == 1
            held.set()
            raise CommitUnknownError("the connection broke while committing")

    monkeypatch.setattr(transport, "receive", break_once)
    assert client_gets(transport, client, "1") == "re: 1"
    assert client_gets(transport, client, "2") == "re: 2"
    with contextlib.suppress(InterruptedError), locks:
        raise InterruptedError
    eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert failed(transport) == []
