"""Instances of a client: their queues and names, how they start and how they end."""

import gc
import threading

import pytest

from queue_pipeline.client import CallbackSettings, ClientClosedError, QueueClient
from queue_pipeline.errors import AddressError, ConfigurationError, QueueNotFoundError
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.responder import Responder, answer_waiting, echo, failed
from queue_pipeline_tests.support.waiting import eventually


def test_on_postgresql_the_address_of_an_instance_is_quoted(postgresql):
    transport = postgresql.transport()
    transport.install("orders")
    with QueueClient(transport, "My.Shop", discriminator="web.1", create=True) as client:
        assert client.callback_queue.canonical == f'"{postgresql.schema}"."My.Shop.web.1"'
        assert transport.peek(client.callback_queue.canonical) == 0


def test_a_machine_name_is_the_discriminator_unless_another_is_given(transport, make):
    assert make(None).callback_queue.table == f"shop.{wire.machine_name()}"


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


class ClosedMeanwhile:
    """A lock that is free only after another thread has closed the client."""

    def __init__(self, client):
        self._client = client

    def __enter__(self):
        self._client._closed = True

    def __exit__(self, *_):
        pass


def test_a_client_that_is_closed_while_it_is_opened_stays_closed(make):
    client = make()
    client._lock = ClosedMeanwhile(client)
    with pytest.raises(ClientClosedError, match="is closed"):
        client.submit("orders", "1", 60)
    assert client._open is None


def test_the_thread_of_a_garbage_collected_client_ends(transport):
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


def test_a_database_can_be_named_in_place_of_a_transport(sqlite):
    with QueueClient(sqlite.url, "shop", discriminator="own", create=True) as client:
        client.transport.install("orders")
        with Responder(client.transport, "orders", echo):
            assert client.request("orders", "1", 20).text == "re: 1"
