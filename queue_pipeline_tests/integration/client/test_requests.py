"""Requests and their replies on real databases: each gets its own, and unmatched replies are not lost."""

import json
import logging
import random
from concurrent.futures import CancelledError, ThreadPoolExecutor

import pytest

from queue_pipeline.client import RequestTimeoutError
from queue_pipeline.client.client import OWN_HEADERS
from queue_pipeline.errors import ConfigurationError, InvalidMessageError, QueueNotFoundError
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.responder import Responder, answer_waiting, failed, reply_to
from queue_pipeline_tests.support.waiting import eventually


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


def test_hundreds_of_requests_in_flight_each_get_their_own_reply(backend, transport, make):
    """Out of order, with duplicates, numbers, and replies to requests of other clients among them."""
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


def test_many_threads_send_requests_and_wait_while_another_answers(transport, make):
    client = make()

    def ask(asker):
        return all(client.request("orders", f"{asker}.{n}", 60).text == f"re: {asker}.{n}" for n in range(5))

    with Responder(transport, "orders"), ThreadPoolExecutor(12) as askers:
        assert all(askers.map(ask, range(12)))
    assert failed(transport) == []


def test_a_request_without_an_answer_ends_with_an_error_that_says_where_to_look(transport, make):
    client = make()
    with pytest.raises(RequestTimeoutError) as caught:
        client.request("orders", "{}", timeout=0.1)
    (shown,) = transport.show("orders")
    message = str(caught.value)
    for part in (str(transport.resolve("orders")), shown.headers[wire.MESSAGE_ID], str(client.callback_queue)):
        assert part in message
    assert "queue-pipeline peek" in message
    assert isinstance(caught.value, TimeoutError)


def test_a_submitted_request_times_out_by_itself(make):
    future = make(peek_delay=60, first_delay=60).submit("orders", "{}", timeout=0.1)
    assert isinstance(future.exception(20), RequestTimeoutError)


def test_a_late_reply_goes_to_the_error_queue_and_has_a_type_of_its_own(transport, make, caplog):
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
    transport.send(client.callback_queue, new_message("whose?", headers={wire.CORRELATION_ID: "a stranger"}))
    with caplog.at_level(logging.WARNING, "queue_pipeline.client"), Responder(transport, "orders"):
        assert client.request("orders", "1", 20).text == "re: 1"
        eventually(lambda: transport.peek(client.callback_queue) == 0)
    assert "no request in flight of this client" in caplog.text
    assert "discarded" in caplog.text
    assert failed(transport) == []


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
    for name in OWN_HEADERS:
        with pytest.raises(InvalidMessageError, match=f"{name} .* is the client's own"):
            client.request("orders", "1", headers={name: "mine"})


def test_a_future_that_was_cancelled_gets_no_reply(transport, make):
    client = make()
    future = client.submit("orders", "1", 60)
    assert future.cancel()
    answer_waiting(transport, "orders")
    (headers,) = eventually(lambda: failed(transport))
    assert "was cancelled by its sender" in headers[wire.EXCEPTION_MESSAGE]
    with pytest.raises(CancelledError):
        future.result(0)


def test_a_callback_can_submit_requests_but_not_wait_for_them(transport, make):
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
