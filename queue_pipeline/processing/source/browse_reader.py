"""`format("sql_queue")` with the option `queue`: the messages of a queue as a frame, left where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceReader, Filter

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.source.pushed_filters import MOST_VALUES, pushed_condition
from queue_pipeline.processing.spark.internals.calls import arrow_schema
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.inspection.conditions import Condition, columns_of

BROWSED_COLUMNS = (
    "row_version BIGINT NOT NULL, id STRING NOT NULL, message_id STRING NOT NULL, message_type STRING, sent TIMESTAMP, "
    "expires TIMESTAMP, expired BOOLEAN NOT NULL, headers MAP<STRING, STRING> NOT NULL, body BINARY NOT NULL, "
    "problem STRING, failed_queue STRING, exception_type STRING, exception_message STRING, time_of_failure TIMESTAMP"
)
_NAMES = tuple(part.split()[0] for part in BROWSED_COLUMNS.replace("MAP<STRING, STRING>", "MAP").split(","))
BODY = "body"
BATCH = 1_000


class BrowseOptions(BaseModel):
    """What a frame shows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: str = Field(min_length=1)
    failed: bool = Field(default=False, description="the failed messages that an NGinn queue keeps")


class BrowseReader(DataSourceReader):
    """Reads pages of a queue in one task; the database checks the filters that it can."""

    def __init__(self, settings: ExecutorSettings, options: BrowseOptions, schema: T.StructType) -> None:
        if unknown := [name for name in schema.fieldNames() if name not in _NAMES]:
            raise ConfigurationError(f"a queue has no column {', '.join(unknown)}; it has {', '.join(_NAMES)}")
        self._settings = settings
        self._options = options
        self._schema = schema
        self._conditions: list[Condition] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take over what the database can check; Spark checks the others, and those that it checks in part.

        The driver calls this: it may not reach the database as executors do.
        """
        columns = columns_of(self._options.queue)
        left = MOST_VALUES
        for one in filters:
            condition = pushed_condition(one, columns, left)
            if condition is not None:
                self._conditions.append(condition)
                left -= len(condition.values)
            if condition is None or not columns[condition.column].exact:
                yield one

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages that are there now; bodies are fetched only if the schema has them."""
        transport = self._settings.open()
        messages = transport.browser.scan(
            transport.resolve(self._options.queue),
            failed=self._options.failed,
            conditions=self._conditions,
            with_body=BODY in self._schema.fieldNames(),
        )
        kept = arrow_schema(self._schema)
        while page := list(islice(messages, BATCH)):
            columns = [pa.array([_VALUES[name](one) for one in page], kept.field(name).type) for name in kept.names]
            yield pa.RecordBatch.from_arrays(columns, schema=kept)


def _attribute(name: str) -> Callable[[BrowsedMessage], Any]:
    return lambda message: getattr(message, name)


_VALUES: dict[str, Callable[[BrowsedMessage], Any]] = {
    **{name: _attribute(name) for name in _NAMES},
    "headers": lambda message: list(message.headers.items()),
}
