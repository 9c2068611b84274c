"""What the data source `sql_queue` reads of a queue, without Spark."""

from pyspark.sql import types as T

from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.source.browse_reader import BrowseOptions, BrowseReader

TYPES = {
    "row_version": T.LongType(),
    "expired": T.BooleanType(),
    "headers": T.MapType(T.StringType(), T.StringType()),
    "body": T.BinaryType(),
    **dict.fromkeys(("sent", "expires", "time_of_failure"), T.TimestampType()),
}


def read(transport, queue, *filters, columns, failed=False):
    """The rows that the reader gives after it has taken filters over, and the filters that it left to Spark."""
    schema = T.StructType([T.StructField(name, TYPES.get(name, T.StringType())) for name in columns])
    reader = BrowseReader(executor_settings(transport), BrowseOptions(queue=queue, failed=failed), schema)
    left = list(reader.pushFilters(list(filters)))
    return [row for batch in reader.read(None) for row in batch.to_pylist()], left
