"""Which tests run on which databases."""

ON_SQLITE_TOO = (
    "test_batch.py",
    "test_transform.py",
    "test_pipeline_job.py",
    "test_publish.py",
    "test_request_reply.py",
)
"""Modules with Spark that show that SQLite does as well; so do all that are about NGinn's queues."""


def pytest_collection_modifyitems(config, items):
    """Leave what takes long to one database: Spark over SQLite to a few modules, its executors to `test_batch`."""
    spared = {item for item in items if _is_spared(item)}
    if spared:
        config.hook.pytest_deselected(items=list(spared))
        items[:] = [item for item in items if item not in spared]


def _is_spared(item):
    values = [str(value) for value in item.callspec.params.values()] if hasattr(item, "callspec") else []
    module = item.nodeid.partition("::")[0]
    if "sqlite" not in values or not module.startswith("queue_pipeline_tests/integration/"):
        return False
    if "executors" in values:
        return not module.endswith("test_batch.py")
    spark = {"spark", "warm"} & set(item.fixturenames)
    kept = module.endswith(ON_SQLITE_TOO) or "nginn" in module
    return bool(spark) and not kept
