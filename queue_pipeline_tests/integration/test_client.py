"""Requests and their replies on real databases: each gets its own, and what nobody waits for is not lost."""

import contextlib
import gc
import json
import logging
import random
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from queue_pipeline.client import CallbackSettings, ClientClosedError, QueueClient, RequestTimeoutError
from queue_pipeline.client import callback_receiver as receiving
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.errors import (
    AddressError,
    CommitUnknownError,
    ConfigurationError,
    DatabaseUnavailableError,
    InvalidMessageError,
    QueueNotFoundError,
)
from queue_pipeline_tests.support.responder import Responder, answer_waiting, echo, reply_to
from queue_pipeline_tests.support.waiting import eventually

QUICK = {"first_delay": 0.005, "peek_delay": 0.05, "idle_delay": 0.05}


@pytest.fixture
def make(transport):
    """Makes clients, closed at the end of the test; none leaves a thread behind."""
    before, clients = set(threading.enumerate()), []

    def made(discriminator="web1", *, create=True, using=transport, endpoint="shop", **settings):
        client = QueueClient(
            using,
            endpoint,
            discriminator=discriminator,
            settings=CallbackSettings(**{**QUICK, **settings}),
            create=create,
        )
        clients.append(client)
        return client

    yield made
    for client in clients:
        client.close()
    assert set(threading.enumerate()) <= before


def failed(transport):
    return [shown.headers for shown in transport.show("error", 1_000)]


def test_a_request_carries_what_brings_its_reply_back(transport, make):
    """AP-04: the reply goes to the queue of the instance that asked, which is named by its discriminator."""
    client = make()
    future = client.submit("orders", {"id": 1}, message_type="Shop.Ask", headers={"tenant": "north"})
    (shown,) = transport.show("orders")
    asked = shown.headers
    canonical = client.callback_queue.canonical
    assert asked[wire.REPLY_TO_ADDRESS] == canonical
    assert transport.resolve(canonical).table == "shop.web1"
    assert asked[wire.MESSAGE_ID] == asked[wire.CORRELATION_ID]
    assert (asked[wire.MESSAGE_INTENT], asked[wire.ENCLOSED_MESSAGE_TYPES]) == ("Send", "Shop.Ask")
    assert (asked[wire.ORIGINATING_ENDPOINT], asked["tenant"]) == ("shop", "north")
    assert json.loads(shown.body) == {"id": 1}
    answer_waiting(transport, "orders")
    reply = future.result(20)
    assert (reply.body, reply.code, reply.headers[wire.MESSAGE_INTENT]) == (b're: {"id":1}', None, "Reply")
    assert (transport.peek(canonical), failed(transport)) == (0, [])


def test_on_postgresql_the_address_of_an_instance_is_quoted(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    with QueueClient(transport, "My.Shop", discriminator="web.1", create=True) as client:
        assert client.callback_queue.canonical == f'"{postgresql.schema}"."My.Shop.web.1"'
        assert transport.peek(client.callback_queue.canonical) == 0


def test_a_machine_name_is_the_discriminator_unless_another_is_given(transport, make):
    assert make(None).callback_queue.table == f"shop.{wire.machine_name()}"


def test_hundreds_of_requests_in_flight_each_get_the_reply_to_their_own(backend, transport, make):
    """Out of order, with duplicates, numbers, and replies to requests of strangers among them."""
    client, count, threads = make(), 300, 30
    strangers = [OutgoingMessage(b"stranger", {wire.CORRELATION_ID: f"stranger {n}"}) for n in range(7)]

    def ask(number):
        return number, client.submit("orders", str(number), 60)

    with ThreadPoolExecutor(threads) as askers:
        futures = list(askers.map(ask, range(count)))
    assert transport.peek("orders") == count
    with transport.receive("orders", count) as batch:
        requests = list(batch)
    assert len(requests) == count
    random.Random(1).shuffle(requests)
    answers = []
    for request in requests:
        number = int(request.body)
        answer = reply_to(request, code=number) if number % 2 else reply_to(request, request.body)
        answers += [answer] * (2 if number % 10 == 0 else 1)
    for position, stranger in enumerate(strangers):
        answers.insert(40 * position, stranger)
    for answer in answers:
        transport.send(client.callback_queue, answer)
    for number, future in futures:
        reply = future.result(60)
        assert (reply.code, reply.body) == ((number, b"") if number % 2 else (None, str(number).encode()))
    eventually(lambda: len(failed(transport)) == 30 + len(strangers))
    assert transport.peek(client.callback_queue) == 0
    kinds = {headers[wire.EXCEPTION_TYPE] for headers in failed(transport)}
    assert kinds == {"UnmatchedReply"}


def test_many_threads_ask_and_wait_while_somebody_answers(transport, make):
    client = make()

    def ask(asker):
        return all(client.request("orders", f"{asker}.{n}", 60).text == f"re: {asker}.{n}" for n in range(5))

    with Responder(transport, "orders"), ThreadPoolExecutor(12) as askers:
        assert all(askers.map(ask, range(12)))
    assert failed(transport) == []


def test_a_request_that_nobody_answers_ends_with_an_error_that_says_where_to_look(transport, make):
    client = make()
    with pytest.raises(RequestTimeoutError) as caught:
        client.request("orders", "{}", timeout=0.1)
    (shown,) = transport.show("orders")
    told = str(caught.value)
    for part in (str(transport.resolve("orders")), shown.headers[wire.MESSAGE_ID], str(client.callback_queue)):
        assert part in told
    assert "queue-pipeline peek" in told
    assert isinstance(caught.value, TimeoutError)


def test_a_submitted_request_times_out_by_itself(make):
    future = make(peek_delay=60, first_delay=60).submit("orders", "{}", timeout=0.1)
    assert isinstance(future.exception(20), RequestTimeoutError)


def test_a_late_reply_goes_to_the_error_queue_and_is_told_apart(transport, make, caplog):
    client = make()
    with pytest.raises(RequestTimeoutError):
        client.request("orders", "{}", timeout=0.1)
    with caplog.at_level(logging.WARNING, "queue_pipeline.client"):
        answer_waiting(transport, "orders")
        (headers,) = eventually(lambda: failed(transport))
    assert headers[wire.EXCEPTION_TYPE] == "LateReply"
    assert headers[wire.FAILED_QUEUE] == client.callback_queue.canonical
    assert headers[wire.PROCESSING_ENDPOINT] == "shop"
    assert "timed out before" in headers[wire.EXCEPTION_MESSAGE]
    assert headers[wire.CORRELATION_ID] in headers[wire.EXCEPTION_MESSAGE]
    assert headers[wire.MESSAGE_INTENT] == "Reply"
    assert "which timed out before; moved to the error queue" in caplog.text


def test_unmatched_replies_are_discarded_where_that_is_the_policy(transport, make, caplog):
    client = make(unmatched="discard")
    client.open()
    transport.send(client.callback_queue, new_message("whose?", headers={wire.CORRELATION_ID: "nobody"}))
    with caplog.at_level(logging.WARNING, "queue_pipeline.client"), Responder(transport, "orders"):
        assert client.request("orders", "1", 20).text == "re: 1"
        eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert "no request in flight of this client" in caplog.text
    assert "discarded" in caplog.text
    assert failed(transport) == []


def test_a_client_that_starts_again_is_not_confused_by_replies_to_the_one_before(transport, make):
    first = make()
    given_up = first.submit("orders", "old", 60)
    first.close()
    assert isinstance(given_up.exception(0), ClientClosedError)
    answer_waiting(transport, "orders")
    second = make(create=False)
    with Responder(transport, "orders"):
        assert second.request("orders", "new", 20).text == "re: new"
    eventually(lambda: len(failed(transport)) == 1)
    assert transport.show("error")[0].body == b"re: old"


def test_two_clients_with_discriminators_of_their_own_get_their_own_replies(transport, make):
    one, two = make("one"), make("two")
    with Responder(transport, "orders"):
        futures = [(n, client, client.submit("orders", f"{n}", 20)) for n in range(20) for client in (one, two)]
        for n, _, future in futures:
            assert future.result(20).text == f"re: {n}"
    assert failed(transport) == []


def test_a_missing_callback_queue_is_found_at_the_start_with_the_command_that_creates_it(backend, transport, make):
    client = make(create=False)
    with pytest.raises(QueueNotFoundError) as caught, client:
        pass
    assert "queue-pipeline install" in str(caught.value)
    assert client.callback_queue.canonical in str(caught.value)
    assert "create=True" in caught.value.__notes__[0]
    transport.install(plain_queues=[client.callback_queue])
    with make(create=False, discriminator="web1"):
        pass


def test_a_missing_error_queue_is_found_at_the_start_unless_it_is_not_needed(backend):
    transport = backend.transport(error_queue="trouble")
    client = QueueClient(transport, "shop", discriminator="a")
    transport.install(plain_queues=[client.callback_queue])
    with pytest.raises(QueueNotFoundError, match="trouble"):
        client.open()
    with QueueClient(transport, "shop", discriminator="a", settings=CallbackSettings(unmatched="discard")) as careless:
        assert careless.callback_queue == client.callback_queue


@pytest.mark.parametrize("discriminator", ["", " ", "Delayed", "claimed", "a\nb", "a\0b"])
def test_a_discriminator_that_is_no_name_is_refused(transport, discriminator):
    with pytest.raises(AddressError):
        QueueClient(transport, "shop", discriminator=discriminator)


def test_a_name_that_is_too_long_for_the_database_is_refused_before_anything_is_created(postgresql):
    client = QueueClient(postgresql.transport(), "shop", discriminator="x" * 60, create=True)
    with pytest.raises(AddressError, match="choose a shorter name"):
        client.open()


def test_closing_ends_requests_in_flight_and_the_thread(transport, make):
    client = make()
    future = client.submit("orders", "1", 60)
    client.close()
    with pytest.raises(ClientClosedError, match=r"was closed while request .* was in flight"):
        future.result(0)
    for use in (client.request, client.submit, client.send):
        with pytest.raises(ClientClosedError, match="is closed"):
            use("orders", "2")
    client.close()


def test_a_client_that_is_forgotten_takes_its_thread_along(transport):
    before = set(threading.enumerate())
    client = QueueClient(transport, "shop", discriminator="lost", create=True)
    client.submit("orders", "1", 60)
    assert set(threading.enumerate()) > before
    del client
    gc.collect()
    eventually(lambda: set(threading.enumerate()) <= before)


def test_a_forked_process_needs_a_client_of_its_own(transport, make):
    client = make().open()
    client._process += 1
    with pytest.raises(ConfigurationError, match="forked from it"):
        client.request("orders", "1")
    client.close()
    client._process -= 1
    with Responder(transport, "orders"):
        assert client.request("orders", "1", 20).text == "re: 1"


def test_a_plain_send_asks_for_no_reply(transport, make):
    message_id = make().send("orders", {"a": 1}, message_type="Shop.Tell")
    (shown,) = transport.show("orders")
    assert (shown.headers[wire.MESSAGE_ID], shown.body) == (message_id, b'{"a":1}')
    assert wire.REPLY_TO_ADDRESS not in shown.headers


def test_a_request_to_a_queue_that_does_not_exist_fails_at_once(make):
    client = make().open()
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        client.request("nowhere", "1")
    with pytest.raises(ConfigurationError, match="seconds above zero"):
        client.request("orders", "1", timeout=0)
    with pytest.raises(InvalidMessageError, match="is the client's own"):
        client.request("orders", "1", headers={wire.CORRELATION_ID: "mine"})


def test_a_future_that_was_cancelled_gets_no_reply(transport, make):
    client = make()
    future = client.submit("orders", "1", 60)
    assert future.cancel()
    answer_waiting(transport, "orders")
    (headers,) = eventually(lambda: failed(transport))
    assert "was cancelled by its sender" in headers[wire.EXCEPTION_MESSAGE]
    with pytest.raises(CancelledError):
        future.result(0)


def test_a_callback_asks_again_without_waiting(transport, make):
    client, second, refused = make(), [], []

    def ask_again(first):
        second.append(client.submit("orders", "2", 20))
        try:
            client.request("orders", "3")
        except ConfigurationError as error:
            refused.append(error)

    with Responder(transport, "orders"):
        client.submit("orders", "1", 20).add_done_callback(ask_again)
        eventually(lambda: refused)
        assert second[0].result(20).text == "re: 2"


def test_a_database_that_is_away_costs_the_requests_of_that_time_and_no_more(transport, make, monkeypatch, caplog):
    monkeypatch.setattr(receiving, "TROUBLE_BACKOFF", Backoff(0.01, 0.01))
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
def test_a_commit_of_which_nobody_knows_loses_no_reply(transport, make, monkeypatch, committed):
    monkeypatch.setattr(receiving, "TROUBLE_BACKOFF", Backoff(0.01, 0.01))
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
    future = client.submit("orders", "1", 60)
    answer_waiting(transport, "orders")
    assert future.result(20).text == "re: 1"
    assert len(broken[0]) == 1
    eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert failed(transport) == []


def test_two_commits_of_which_nobody_knows_hand_each_reply_over_once(transport, make, monkeypatch):
    """Both were undone: the replies come again, after their requests have ended."""
    monkeypatch.setattr(receiving, "TROUBLE_BACKOFF", Backoff(0.01, 0.01))
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
    first = client.submit("orders", "1", 60)
    answer_waiting(transport, "orders")
    assert first.result(20).text == "re: 1"
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
    monkeypatch.setattr(receiving, "TROUBLE_BACKOFF", Backoff(0.01, 0.01))
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
    first = client.submit("orders", "1", 60)
    answer_waiting(transport, "orders")
    assert first.result(20).text == "re: 1"
    assert client_gets(transport, client, "2") == "re: 2"
    with contextlib.suppress(InterruptedError), locks:
        raise InterruptedError
    eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert failed(transport) == []


def client_gets(transport, client, text):
    future = client.submit("orders", text, 60)
    answer_waiting(transport, "orders")
    return future.result(20).text


def test_a_database_can_be_named_in_place_of_a_transport(sqlite):
    with QueueClient(sqlite.url, "shop", discriminator="own", create=True) as client:
        client.transport.install("orders")
        with Responder(client.transport, "orders", echo):
            assert client.request("orders", "1", 20).text == "re: 1"
