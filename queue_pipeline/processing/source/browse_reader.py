"""`format("sql_queue")` with the option `queue`: the messages of a queue as a frame, left where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field
from pyspark.sql import types as T
from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from queue_pipeline.processing.batch.worker_transport import ExecutorSettings
from queue_pipeline.processing.spark.internals.calls import arrow_schema
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.inspection.browsed import BrowsedMessage

BROWSED_COLUMNS = (
    "row_version BIGINT NOT NULL, id STRING NOT NULL, message_id STRING NOT NULL, message_type STRING, sent TIMESTAMP, "
    "expired BOOLEAN NOT NULL, headers MAP<STRING, STRING> NOT NULL, body BINARY NOT NULL, problem STRING, "
    "failed_queue STRING, exception_type STRING, exception_message STRING, time_of_failure TIMESTAMP"
)
_NAMES = tuple(part.split()[0] for part in BROWSED_COLUMNS.replace("MAP<STRING, STRING>", "MAP").split(","))
_TEXTS = ("id", "message_id", "message_type", "failed_queue", "exception_type", "exception_message")
BATCH = 1_000


class BrowseOptions(BaseModel):
    """What a frame shows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    queue: str = Field(min_length=1)
    failed: bool = Field(default=False, description="the failed messages that an NGinn queue keeps")


@dataclass
class Pushed:
    """The conditions that the reader checks by itself: a range of row versions, and texts that are among some."""

    after: int = BEFORE_ALL
    last: int | None = None
    texts: tuple[tuple[str, frozenset[Any]], ...] = ()

    def allows(self, message: BrowsedMessage) -> bool:
        """Whether a message meets the conditions on texts."""
        return all(getattr(message, name) in values for name, values in self.texts)

    def add(self, filter_: Filter) -> bool:
        """Take a condition over, if it is one that can be checked here."""
        column: tuple[str, ...] = getattr(filter_, "attribute", ())
        if column == ("row_version",):
            return self._bound(filter_)
        if len(column) == 1 and column[0] in _TEXTS and isinstance(filter_, EqualTo | In):
            wanted = filter_.value if isinstance(filter_, In) else (filter_.value,)
            # Nothing equals NULL.
            self.texts = (*self.texts, (column[0], frozenset(wanted) - {None}))
            return True
        return False

    def _bound(self, filter_: Filter) -> bool:
        value = getattr(filter_, "value", None)
        if not isinstance(value, int):
            return False
        if isinstance(filter_, EqualTo | GreaterThanOrEqual):
            self.after = max(self.after, value - 1)
        if isinstance(filter_, EqualTo | LessThanOrEqual):
            self.last = value if self.last is None else min(self.last, value)
        if isinstance(filter_, GreaterThan):
            self.after = max(self.after, value)
        if isinstance(filter_, LessThan):
            self.last = value - 1 if self.last is None else min(self.last, value - 1)
        return isinstance(filter_, EqualTo | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual)


class BrowseReader(DataSourceReader):
    """Reads pages of a queue in one task; a range of row versions is one in the database, too."""

    def __init__(self, settings: ExecutorSettings, options: BrowseOptions, schema: T.StructType) -> None:
        if unknown := [name for name in schema.fieldNames() if name not in _NAMES]:
            raise ConfigurationError(f"a queue has no column {', '.join(unknown)}; it has {', '.join(_NAMES)}")
        self._settings = settings
        self._options = options
        self._schema = schema
        self._pushed = Pushed()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Keep conditions on row versions and texts; Spark checks the others."""
        return [one for one in filters if not self._pushed.add(one)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """The messages that are there now."""
        transport = self._settings.open()
        queue, pushed = transport.resolve(self._options.queue), self._pushed
        found = transport.browser.scan(queue, failed=self._options.failed, after=pushed.after)
        messages = filter(pushed.allows, _up_to(found, pushed.last))
        kept = arrow_schema(self._schema)
        while page := list(islice(messages, BATCH)):
            columns = [pa.array([_VALUES[name](one) for one in page], kept.field(name).type) for name in kept.names]
            yield pa.RecordBatch.from_arrays(columns, schema=kept)


def _up_to(messages: Iterable[BrowsedMessage], last: int | None) -> Iterator[BrowsedMessage]:
    """Messages as far as a row version; what lies beyond is not read."""
    for message in messages:
        if last is not None and message.row_version > last:
            return
        yield message


def _attribute(name: str) -> Callable[[BrowsedMessage], Any]:
    return lambda message: getattr(message, name)


_VALUES: dict[str, Callable[[BrowsedMessage], Any]] = {
    **{name: _attribute(name) for name in _NAMES},
    "headers": lambda message: list(message.headers.items()),
}
