"""The resources of pipelines: the transport to the queues, and Spark."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field, PrivateAttr

from queue_pipeline.orchestration.names import Names
from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.spark.session import start_session
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.addresses.queues import SUBSCRIPTIONS_VARIABLE
from queue_pipeline.transport.extras import has
from queue_pipeline.transport.layouts.nginn.settings import parse_nginn_settings


class QueueTransportResource(dg.ConfigurableResource["QueueTransportResource"]):
    """The database whose tables are the queues. Connections are kept for the life of the process.

    Dagster sets resources up for every tick and every step: else a tick per second would mean a login per second.
    """

    database: str | None = Field(
        default=None,
        description="sqlite:///…, postgresql://… or mssql://…; give it as an EnvVar, which the UI never shows. "
        "Without it, QUEUE_PIPELINE_DATABASE, else a SQLite file.",
    )
    default_schema: str | None = Field(default=None, description="For addresses of queues without a schema.")
    default_catalog: str | None = Field(default=None, description="For addresses of queues without a database.")
    queue_schemas: dict[str, str] = Field(default={}, description="Schemas of single queues, by name.")
    queue_catalogs: dict[str, str] = Field(default={}, description="Databases of single queues, by name.")
    subscriptions_table: str | None = Field(
        default=None,
        description="The address of the table of subscriptions, the same for all who share events. Without it, "
        "QUEUE_PIPELINE_SUBSCRIPTIONS_TABLE, else SubscriptionRouting in the default schema.",
    )
    nginn: str | None = Field(
        default=None,
        description="The settings of NGinn.MessageBus queues: JSON, or a file of it. Without it, QUEUE_PIPELINE_NGINN.",
    )

    def transport(self, endpoint: str | None = None, error_queue: str = "error") -> QueueTransport:
        """The transport of this process for these settings; `endpoint` is the queue whose delayed table sends use."""
        settings = json.dumps(
            [
                self.default_schema,
                self.default_catalog,
                self.queue_schemas,
                self.queue_catalogs,
                self.nginn,
                self.subscriptions_table or os.environ.get(SUBSCRIPTIONS_VARIABLE) or None,
            ]
        )
        return _transport(self.database, settings, endpoint, error_queue)


def transport_of(context: Any, names: Names) -> QueueTransportResource:
    """The resource of a step, a check or a tick. By its key: the name of a parameter cannot have a prefix."""
    resource: QueueTransportResource = getattr(context.resources, names.transport)
    return resource


@functools.cache
def _transport(database: str | None, settings: str, endpoint: str | None, error_queue: str) -> QueueTransport:
    schema, catalog, queue_schemas, queue_catalogs, nginn, subscriptions_table = json.loads(settings)
    return QueueTransport(
        database,
        schema=schema,
        catalog=catalog,
        queue_schemas=queue_schemas,
        queue_catalogs=queue_catalogs,
        error_queue=error_queue,
        endpoint=endpoint,
        nginn=None if nginn is None else parse_nginn_settings(nginn),
        subscriptions_table=subscriptions_table,
    )


if TYPE_CHECKING or has("dagster_pyspark"):
    from dagster_pyspark import LazyPySparkResource
else:
    # Each release of dagster-pyspark needs one patch release of Dagster, so a project may be without it.
    class LazyPySparkResource(dg.ConfigurableResource):
        """The part of dagster-pyspark's resource of this name that is used here."""

        spark_config: dict[str, Any]
        _spark_session: Any = PrivateAttr(default=None)

        @property
        def spark_session(self) -> Any:
            """The session, started at the first use."""
            self._init_session()
            return self._spark_session


_building = threading.Lock()


class SparkResource(LazyPySparkResource):
    """A session that is started when the first batch needs it: an empty queue never starts a JVM."""

    spark_config: dict[str, Any] = Field(
        description="All of Spark's properties: spark.master, or spark.remote for Spark Connect, and any other. A "
        "Spark that is warm keeps those that are read only when it starts, such as spark.driver.memory."
    )
    _interrupted: bool = PrivateAttr(default=False)

    @property
    def properties(self) -> dict[str, str]:
        """Spark's properties, by their full names."""
        return dict(_flat(self.spark_config))

    def _init_session(self) -> None:
        with _building:
            if self._spark_session is not None:
                return
            if self._interrupted:
                raise SparkUnavailableError("the run was terminated before Spark was needed")
            self._spark_session = start_session(self.properties)

    def interrupt(self) -> None:
        """Stop what is being computed, for a run that is terminated."""
        self._interrupted = True
        session: Any = self._spark_session
        if session is not None:
            # The run ends either way; a server that is gone has nothing left to stop.
            with contextlib.suppress(Exception):
                session.interruptAll()


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)
