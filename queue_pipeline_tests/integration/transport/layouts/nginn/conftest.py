import pytest

from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, SENDER, Bus, settings


@pytest.fixture
def nginn_options():
    """Settings that a module's tests differ in."""
    return {}


@pytest.fixture
def bus(backend, nginn_options):
    """A transport with the NGinn queues Orders, Billing and Sender installed."""
    transport = backend.transport(nginn=settings(**nginn_options))
    transport.install(ORDERS, BILLING, SENDER)
    return Bus(backend, transport)


@pytest.fixture
def transport(bus):
    return bus.transport


@pytest.fixture
def claims(transport):
    return transport.claims


@pytest.fixture
def orders(transport):
    return transport.resolve(ORDERS)
