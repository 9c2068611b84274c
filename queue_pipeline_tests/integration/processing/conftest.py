"""What the tests of processing share."""

import pytest


@pytest.fixture
def transport(backend):
    """The queues of a pipeline; modules with other needs have a fixture of their own."""
    transport = backend.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    return transport


def pytest_collection_modifyitems(config, items):
    """Leave what takes long to one database: executors over SQLite are tested by `test_batch` alone."""
    spared = [item for item in items if _is_spared(item)]
    if spared:
        config.hook.pytest_deselected(items=spared)
        items[:] = [item for item in items if item not in set(spared)]


def _is_spared(item):
    values = getattr(item, "callspec", None) and [str(value) for value in item.callspec.params.values()]
    here = "integration/processing/" in item.nodeid and "test_batch.py" not in item.nodeid
    if not values or not here or "sqlite" not in values:
        return False
    return "executors" in values or item.get_closest_marker("server_only") is not None
