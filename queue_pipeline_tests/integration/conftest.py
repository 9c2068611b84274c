"""Which tests run on which databases, and engines of a caller's own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from queue_pipeline.transport.database.engine import open_engine
from queue_pipeline.transport.database.setting import database_url


def pytest_collection_modifyitems(config, items):
    """Leave what takes long to one database: Spark runs over SQLite only where a module asks for it, its executors
    where `test_batch` does.
    """
    spared = {item for item in items if _is_spared(item)}
    if spared:
        config.hook.pytest_deselected(items=list(spared))
        items[:] = [item for item in items if item not in spared]


def _is_spared(item):
    values = [str(value) for value in item.callspec.params.values()] if hasattr(item, "callspec") else []
    if "sqlite" not in values or not item.nodeid.startswith("queue_pipeline_tests/integration/"):
        return False
    if "executors" in values:
        return item.path.name != "test_batch.py"
    has_spark = not {"spark", "warm"}.isdisjoint(item.fixturenames)
    return has_spark and not item.get_closest_marker("spark_on_sqlite")


@pytest.fixture
def engines(backend):
    """Engines of the caller's own on the same database, without anything of ours."""
    opened = []

    def open_one(**options):
        # Opened as ours is, so that ODBC's driver is found, and then as the caller wants it.
        url = open_engine(database_url(backend.url)).url
        if backend.is_babelfish:
            # SQLAlchemy asks for extended properties otherwise, and Babelfish fails.
            options["supports_comments"] = False
        opened.append(create_engine(url, **options))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.dispose()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where temporary files go; the server's own user has to get there."""
    made = Path(tempfile.mkdtemp(prefix="queue_pipeline-chaos-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)
