"""What the tests of processing share."""

import pytest

from queue_pipeline_tests.support.processing.both_routes import ROUTES
from queue_pipeline_tests.support.processing.killed_run import Children
from queue_pipeline_tests.support.processing.killed_shop import Shop
from queue_pipeline_tests.support.processing.routes import Routed


@pytest.fixture
def transport(backend):
    """The queues of a pipeline; modules with other needs have a fixture of their own."""
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    return transport


@pytest.fixture(params=ROUTES)
def route(request):
    """How a batch reaches Spark; modules that need another choice have a fixture of their own."""
    return request.param


@pytest.fixture(scope="module")
def children():
    """Runs in processes that may be killed."""
    with Children() as children:
        yield children


@pytest.fixture
def shop(backend):
    """Queues of which every message has to come out once, whatever process is killed."""
    return Shop(backend)


@pytest.fixture(params=["local, a file", "local", "executors"])
def routed(request, sqlite, postgresql, spark):
    """The local backend on SQLite and PostgreSQL, the executors on PostgreSQL."""
    route, _, is_file = request.param.partition(", ")
    backend = sqlite if is_file else postgresql
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    routed = Routed(route, backend, transport, spark)
    routed.create("totals", "country text, day date, orders bigint, revenue numeric(20, 2), PRIMARY KEY (country, day)")
    routed.create("seen", "n bigint, token text")
    return routed
