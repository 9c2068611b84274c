"""`format("sql_queue")` with a queue: SQL over messages that stay where they are."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import EqualTo, GreaterThan, In, IsNotNull, LessThanOrEqual
from pyspark.sql.types import StructType

from queue_pipeline.processing.batch.worker_transport import executor_settings
from queue_pipeline.processing.source import source
from queue_pipeline.processing.source.browse_reader import BrowseOptions, BrowseReader
from queue_pipeline.transport import new_message
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline_tests.support.databases.failed import NOON, fail, failure

ORDERS = "sql://shop/BusOrders"


@pytest.fixture
def transport(backend):
    transport = backend.transport(nginn=NGinnSettings(aliases=("shop",), endpoint="sql://shop/Web"))
    transport.install("orders", ORDERS)
    fail(transport, *(failure(transport, body=b"%d" % n, **{"Shop.N": str(n)}) for n in range(3)))
    fail(transport, failure(transport, kind="Shop.LateError", body=b"3"))
    transport.send(ORDERS, [new_message(f'{{"n": {n}}}', message_type="Shop.Order, Shop") for n in range(4)])
    return transport


def read(transport, *filters, queue="error", columns="row_version bigint not null, body binary not null", failed=False):
    """What the reader gives without Spark, after it has taken filters over, and the filters that it left."""
    options = BrowseOptions(queue=queue, failed=failed)
    reader = BrowseReader(executor_settings(transport), options, StructType.fromDDL(columns))
    left = list(reader.pushFilters(list(filters)))
    return [row for batch in reader.read(None) for row in batch.to_pylist()], left


def test_an_error_queue_is_asked_in_sql_and_keeps_its_messages(transport, spark):
    source.register(spark, transport)
    spark.read.format("sql_queue").option("queue", "error").load().createOrReplaceTempView("failed")
    found = spark.sql(
        "SELECT exception_type, count(*), min(time_of_failure), max(headers['Shop.N']) FROM failed "
        "WHERE exception_type IN ('Shop.NoStockError', 'Shop.LateError') AND NOT expired GROUP BY ALL ORDER BY 2"
    ).collect()
    assert [(row[0], row[1], row[3]) for row in found] == [("Shop.LateError", 1, None), ("Shop.NoStockError", 3, "2")]
    assert found[0][2].replace(tzinfo=NOON.tzinfo) == NOON
    assert spark.sql("SELECT * FROM failed WHERE row_version < 0").count() == 0
    assert transport.peek("error") == 4


def test_conditions_on_row_versions_and_texts_are_checked_while_reading(transport):
    everything, _ = read(transport)
    first, second, third, last = (row["row_version"] for row in everything)
    assert [row["body"] for row in everything] == [b"0", b"1", b"2", b"3"]
    version, kind = ("row_version",), ("exception_type",)
    between, left = read(transport, GreaterThan(version, first), LessThanOrEqual(version, third), IsNotNull(version))
    assert ([row["row_version"] for row in between], left) == ([second, third], [IsNotNull(version)])
    assert [row["row_version"] for row in read(transport, EqualTo(version, last))[0]] == [last]
    assert [row["body"] for row in read(transport, EqualTo(kind, "Shop.LateError"))[0]] == [b"3"]
    assert read(transport, In(kind, ("Shop.NoStockError", None)), EqualTo(version, last)) == ([], [])


def test_queues_of_nginn_are_read_and_their_failed_messages_apart(transport, backend):
    table = transport.resolve(ORDERS).qualified
    backend.sql(transport, f"UPDATE {table} SET subqueue = 'F', error_info = 'Shop.LateError: late' WHERE id = 2")
    assert len(read(transport, queue=ORDERS)[0]) == 3
    kind = EqualTo(("exception_type",), "Shop.LateError")
    assert [row["row_version"] for row in read(transport, kind, queue=ORDERS, failed=True)[0]] == [2]


def test_options_and_columns_that_mean_nothing_are_named(transport, spark):
    with pytest.raises(ConfigurationError, match="a queue has no column weight; it has row_version, id"):
        read(transport, columns="weight double")
    source.register(spark, transport)
    with pytest.raises(PySparkException, match="colour: Extra inputs are not permitted"):
        spark.read.format("sql_queue").option("queue", "error").option("colour", "red").load().collect()
