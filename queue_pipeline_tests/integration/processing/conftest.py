"""What the tests of processing share."""

import pytest

from queue_pipeline_tests.support.killed_run import Children
from queue_pipeline_tests.support.killed_shop import Shop


@pytest.fixture
def transport(backend):
    """The queues of a pipeline; modules with other needs have a fixture of their own."""
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    return transport


@pytest.fixture(scope="module")
def children():
    """Runs in processes that may be killed."""
    with Children() as children:
        yield children


@pytest.fixture
def shop(backend):
    """Queues of which every message has to come out once, whoever is killed."""
    return Shop(backend)
