"""What the parts share: one PostgreSQL and one warm Spark, started by the first part that needs them."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.spark.settings import PROPERTIES_VARIABLE, spark_config
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.backlogs import Backlogs
from queue_pipeline_tests.benchmarks.plan import say
from queue_pipeline_tests.benchmarks.processor_time import Look, look
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.server import private_postgresql, stated_settings, versions
from queue_pipeline_tests.support.spark.warm_spark import DISCOVERY_VARIABLE, private_spark
from tools.postgres_cluster import PostgresCluster

DRIVER_JAR = Path("/usr/share/java/postgresql.jar")


class Workbench:
    """A database of its own for each part, on one server."""

    def __init__(self) -> None:
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @functools.cached_property
    def cluster(self) -> PostgresCluster:
        """The server: durable, with settings that the report states."""
        say("starting PostgreSQL")
        return self._stack.enter_context(private_postgresql())

    @functools.cached_property
    def spark(self) -> SparkResource:
        """A local Spark of two cores, as the product keeps it warm, with Debian's JDBC driver."""
        if not DRIVER_JAR.exists():
            raise SystemExit(
                f"bench: {DRIVER_JAR} is missing; scripts/bootstrap bench installs it (libpostgresql-jdbc-java)"
            )
        say("starting Spark")
        self._stack.enter_context(_properties(f"spark.jars={DRIVER_JAR}"))
        folder = tempfile.TemporaryDirectory(prefix="queue_pipeline-bench-", ignore_cleanup_errors=True)
        self._stack.enter_context(private_spark(Path(self._stack.enter_context(folder))))
        return SparkResource(spark_config=spark_config())

    def processes(self) -> Look:
        """This process, the database, Spark's server and all that they started, with the processor time they used."""
        discovery = os.environ.get(DISCOVERY_VARIABLE)
        if discovery is None or not Path(discovery).exists():
            return look()
        return look([int(json.loads(Path(discovery).read_text())["pid"])])

    @functools.cached_property
    def backlogs(self) -> Backlogs:
        """Queues in which messages wait, in a database of their own."""
        url = self._create("waiting")
        transport = self._stack.enter_context(QueueTransport(url))
        return Backlogs(transport, self._stack.enter_context(peers.connect(url)))

    @contextlib.contextmanager
    def database(self, name: str, report: Report, **options: Any) -> Iterator[tuple[str, QueueTransport, Any]]:
        """A new database: its address, the transport of ours, and a psycopg connection. Dropped at the end."""
        url = self._create(name)
        with QueueTransport(url, **options) as transport, peers.connect(url) as connection:
            report.versions.update(versions(connection))
            report.settings["postgresql"] = stated_settings(connection)
            connection.commit()
            yield url, transport, connection
        self.cluster.run_sql(f'DROP DATABASE "{name}" WITH (FORCE)')

    def _create(self, name: str) -> str:
        self.cluster.create_database(name)
        return self.cluster.url(name)


@contextlib.contextmanager
def _properties(text: str) -> Iterator[None]:
    before = os.environ.get(PROPERTIES_VARIABLE)
    os.environ[PROPERTIES_VARIABLE] = text
    try:
        yield
    finally:
        os.environ.pop(PROPERTIES_VARIABLE)
        if before is not None:
            os.environ[PROPERTIES_VARIABLE] = before
