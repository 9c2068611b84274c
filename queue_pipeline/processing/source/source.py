"""`sql_queue`, a data source of Spark's: a claim as a frame, results that complete it, and a queue to look at.

Example::

    claim = transport.claim("orders", owner="nightly", max_messages=1_000_000)
    messages = spark.read.format("sql_queue").option("claim", claim_option(claim)).load()
    results.write.format("sql_queue").option("claim", claim_option(claim)).mode("append").save()
    errors = spark.read.format("sql_queue").option("queue", "error").load()
"""

from __future__ import annotations

import uuid
from typing import ClassVar, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.batch.messages_frame import PAYLOAD, messages_frame
from queue_pipeline.processing.batch.staging import new_job
from queue_pipeline.processing.batch.tasks import Parsing
from queue_pipeline.processing.batch.worker_transport import ExecutorSettings, executor_settings
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.processing.body.schema import BodySchema
from queue_pipeline.processing.results.outcome_writer import OutcomeWriter, check_outcome_schema
from queue_pipeline.processing.source.browse_reader import BROWSED_COLUMNS, BrowseOptions, BrowseReader
from queue_pipeline.processing.source.columns import COLUMNS, PROBLEM
from queue_pipeline.processing.source.reader import ClaimSourceReader
from queue_pipeline.processing.source.stream_reader import QueueStreamReader, StreamOptions
from queue_pipeline.processing.source.stream_writer import StreamOutcomeWriter
from queue_pipeline.processing.spark.settings import PUSHDOWN
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim

FORMAT = "sql_queue"
CLAIM, STREAM, QUEUE = "claim", "stream", "queue"
_Options = TypeVar("_Options", bound=BaseModel)


class QueueSource(DataSource):
    """Claims of a database's queues. A class made of it knows which database."""

    settings: ClassVar[ExecutorSettings]
    instance: ClassVar[str]
    """Distinguishes a stream from an earlier start of it: claims are held under this name."""

    @classmethod
    def name(cls) -> str:
        """What it is called in `format(...)`."""
        return FORMAT

    def schema(self) -> str:
        """Every column that a claim, or a queue, has; `spark.read.schema(...)` asks for fewer."""
        return BROWSED_COLUMNS if self._looks() else COLUMNS

    def reader(self, schema: T.StructType) -> ClaimSourceReader | BrowseReader:
        """Reads the claim of the option `claim`, or looks at the queue of the option `queue`."""
        if self._looks():
            return BrowseReader(self.settings, self._given(BrowseOptions, "read"), schema)
        return ClaimSourceReader(self.settings, self._claim(), schema)

    def writer(self, schema: T.StructType, overwrite: bool) -> OutcomeWriter:
        """Stages results; the job's end completes the claim with them."""
        if overwrite:
            raise ConfigurationError('a queue cannot be overwritten; write with mode("append")')
        claim = self._claim()
        check_outcome_schema(schema)
        return OutcomeWriter(self.settings, claim, new_job())

    def _looks(self) -> bool:
        """Whether a queue is named, and neither a claim of it nor a stream."""
        return QUEUE in self.options and not {CLAIM, STREAM} & set(self.options)

    def _given(self, kind: type[_Options], verb: str) -> _Options:
        """The options that a person typed."""
        given = {name: value for name, value in self.options.items() if name != "path"}
        try:
            return kind.model_validate(given)
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
            raise ConfigurationError(f'{verb}.format("{FORMAT}"): {problems}') from None

    def _claim(self) -> Claim:
        if CLAIM not in self.options:
            raise ConfigurationError(
                f'format("{FORMAT}") needs .option("claim", claim_option(claim)), of a claim from '
                'transport.claim(...), or .option("queue", name) to look at a queue'
            )
        try:
            return TypeAdapter(Claim).validate_json(self.options[CLAIM])
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise ConfigurationError(f"the option {CLAIM} of {FORMAT} cannot be read: {problem}") from None

    def streamReader(self, schema: T.StructType) -> QueueStreamReader:
        """Reads the queue of the option `queue`, a claim a micro-batch."""
        options = self._given(StreamOptions, "readStream")
        return QueueStreamReader(self.settings, options, self._stream_owner(options.stream), schema)

    def streamWriter(self, schema: T.StructType, overwrite: bool) -> StreamOutcomeWriter:
        """Completes the claims of the stream of the option `stream`, with its results."""
        if overwrite:
            raise ConfigurationError('a queue cannot be overwritten; write with outputMode("append")')
        check_outcome_schema(schema)
        stream = self.options.get(STREAM)
        if not stream:
            raise ConfigurationError(
                f'writeStream.format("{FORMAT}") needs .option("{STREAM}", name), the name that the reader was given'
            )
        return StreamOutcomeWriter(self.settings, stream, self._stream_owner(stream))

    def _stream_owner(self, stream: str) -> str:
        return f"stream {stream} {self.instance}"


def register_sql_queue(spark: SparkSession, transport: QueueTransport) -> None:
    """Make `format("sql_queue")` mean the queues of this transport's database, in this session.

    Without it, it means those of the database that the environment of Spark's driver, or Connect server, names.
    """
    spark.dataSource.register(_source_of(transport, uuid.uuid4().hex[:8]))
    # Without it, Spark refuses a reader that can filter by itself.
    spark.conf.set(PUSHDOWN, "true")


def environment_source(instance: str) -> type[QueueSource]:
    """The source of the database that the environment of this process names."""
    return _source_of(QueueTransport(), instance)


def _source_of(transport: QueueTransport, instance: str) -> type[QueueSource]:
    knows = {"settings": executor_settings(transport), "instance": instance}
    return type("QueueSource", (QueueSource,), knows)


def messages_of(claimed: DataFrame, body_schema: BodySchema | None = None) -> DataFrame:
    """The frame of this source as a transform sees it: `origin`, headers as a map and, with a schema, `payload` and
    `problem`, which says in words what is wrong with a body; one of the two is null.

    Rows whose headers cannot be read are left out: the completion of their claim moves them to the error queue.
    """
    readable = claimed.where(F.col(PROBLEM).isNull())
    if body_schema is None:
        return messages_frame(readable, 1)
    parsing = Parsing(body_parser(body_schema))
    parsed: DataFrame = readable.drop(PROBLEM).mapInArrow(parsing, parsing.schema)
    return messages_frame(parsed, 1, PAYLOAD, PROBLEM)


def claim_option(claim: Claim) -> str:
    """A claim as the text that the source's option takes."""
    return TypeAdapter(Claim).dump_json(claim).decode()
