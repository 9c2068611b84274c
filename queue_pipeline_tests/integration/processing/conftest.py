"""What the tests of processing share."""

import pytest


@pytest.fixture
def transport(backend):
    """The queues of a pipeline; modules with other needs have a fixture of their own."""
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    return transport
