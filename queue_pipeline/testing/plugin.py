"""The fixtures that pytest finds by itself where this package is installed. Nothing is imported before their first use.

- `queue_spark`: the Spark session that pipelines use here, by default one on the server that stays warm between runs.
- `queue_transport`: queues in a temporary file, gone after the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from queue_pipeline.transport import QueueTransport


@pytest.fixture(scope="session")
def queue_spark() -> SparkSession:
    """A Spark session for transforms, configured as for a run; the first test of a session may have to start it."""
    from queue_pipeline.transport.extras import needed_by

    with needed_by("the fixture queue_spark", "spark"):
        from queue_pipeline.testing.transform import spark_session

    return spark_session()


@pytest.fixture
def queue_transport() -> Iterator[QueueTransport]:
    """A transport on a database of its own: install the queues that the test needs, then send, receive and claim."""
    from queue_pipeline.testing.transport import temporary_transport

    with temporary_transport() as transport:
        yield transport
