"""`format("sql_queue")` with a queue: SQL over messages that stay where they are."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.datasource import GreaterThan

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.source import source
from queue_pipeline.processing.spark.internals.calls import physical_plan
from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline_tests.support.browse_source import read
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


def test_an_error_queue_is_asked_in_sql_and_keeps_its_messages(transport, spark):
    source.register_sql_queue(spark, transport)
    spark.read.format("sql_queue").option("queue", "error").load().createOrReplaceTempView("failed")
    found = spark.sql(
        "SELECT exception_type, count(*), min(time_of_failure), max(headers['Shop.N']) FROM failed "
        "WHERE exception_type IN ('Shop.NoStockError', 'Shop.LateError') AND NOT expired GROUP BY ALL ORDER BY 2"
    ).collect()
    assert [(row[0], row[1], row[3]) for row in found] == [("Shop.LateError", 1, None), ("Shop.NoStockError", 3, "2")]
    assert found[0][2].replace(tzinfo=NOON.tzinfo) == NOON
    assert spark.sql("SELECT * FROM failed WHERE row_version < 0").count() == 0
    assert transport.peek("error") == 4


def test_queues_of_nginn_are_read_and_their_failed_messages_separately(transport, backend):
    table = transport.resolve(ORDERS).qualified
    backend.sql(transport, f"UPDATE {table} SET subqueue = 'F', error_info = 'Shop.LateError: late' WHERE id = 2")
    assert len(read(transport, ORDERS, columns=["row_version"])[0]) == 3
    found, left = read(
        transport, ORDERS, GreaterThan(("row_version",), 1), columns=["row_version", "exception_type"], failed=True
    )
    assert (found, left) == ([{"row_version": 2, "exception_type": "Shop.LateError"}], [])


def test_spark_lets_the_database_check_what_it_can_and_checks_the_rest(transport, spark):
    source.register_sql_queue(spark, transport)
    spark.read.format("sql_queue").option("queue", "error").load().createOrReplaceTempView("failed")
    first, *_ = spark.sql("SELECT row_version, id FROM failed ORDER BY row_version").collect()
    query = spark.sql(
        f"SELECT row_version FROM failed WHERE id = '{first.id}' AND row_version <= {first.row_version} "
        "AND NOT expired AND expires IS NULL AND exception_type LIKE 'Shop.No%' AND sent > timestamp '2020-01-01'"
    )
    assert [row.row_version for row in query.collect()] == [first.row_version]
    filters = [line for line in physical_plan(query).splitlines() if "Filter " in line]
    assert all(name in filters[0] for name in ("exception_type", "sent")), filters
    assert not any(name in filters[0] for name in ("id#", "row_version", "expire")), filters


def test_options_and_columns_that_mean_nothing_are_named(transport, spark):
    with pytest.raises(ConfigurationError, match="a queue has no column weight; it has row_version, id"):
        read(transport, "error", columns=["weight"])
    source.register_sql_queue(spark, transport)
    with pytest.raises(PySparkException, match="colour: Extra inputs are not permitted"):
        spark.read.format("sql_queue").option("queue", "error").option("colour", "red").load().collect()
