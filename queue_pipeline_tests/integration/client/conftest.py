"""Clients, and the threads that they must not leave behind."""

import threading

import pytest

from queue_pipeline.client import CallbackSettings, QueueClient

QUICK = {"first_delay": 0.005, "peek_delay": 0.05, "idle_delay": 0.05}


@pytest.fixture
def make(transport):
    """Makes clients, closed at the end of the test; none leaves a thread behind."""
    before, clients = set(threading.enumerate()), []

    def made(discriminator="web1", *, create=True, **options):
        settings = CallbackSettings(**{**QUICK, **options})
        client = QueueClient(transport, "shop", discriminator=discriminator, settings=settings, create=create)
        clients.append(client)
        return client

    yield made
    for client in clients:
        client.close()
    assert set(threading.enumerate()) <= before
