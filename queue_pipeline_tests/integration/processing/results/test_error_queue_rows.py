"""Stored rows of the error and audit queues against what ServiceControl asks of them, and real failures of Spark."""

import json
import uuid
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.results.confirmations import Confirming, confirmations
from queue_pipeline.processing.results.exceptions import describe, error_types
from queue_pipeline.transport import Operation, OutgoingMessage, new_message
from queue_pipeline.transport.failed.error_message import LONGEST_MESSAGE, Failure, error_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.service_control import (
    ACKNOWLEDGEMENT_QUEUE,
    guid_of,
    import_audit,
    import_error,
    retry,
)

HERE = __name__
BODY = '{"Städte": "Köln \U0001f600"}'
OWN = {"Shop.Tenant": "Größe/\U0001f600", "ServiceControl.Later": "x"}


class Unpayable(Exception):
    """A business error with facts."""

    def __init__(self, message):
        super().__init__(message)
        self.data = {"order": 7}


def charge():
    try:
        {}["card"]
    except KeyError as error:
        raise Unpayable("no card") from error


def failure():
    try:
        charge()
    except Unpayable as error:
        return describe(error)


def receive(transport):
    """Send a message to `orders` and take it out: what its stored row said."""
    transport.send("orders", new_message(BODY, message_type="Shop.Order, Shop", endpoint="Web", headers=OWN))
    return take(transport)


def take(transport):
    with transport.receive("orders") as batch:
        (message,) = batch
        return message


def fail(transport, message, reason=None):
    """Put the error copy of a message into the error queue."""
    queue = transport.resolve("orders").canonical
    copy = error_message(message.headers, message.body, reason or failure(), queue, "Orders", message_id=message.id)
    transport.dispatch([Operation("error", copy)])


def stored(transport, queue="error"):
    """The only row of a queue, taken away so that the next is the only one too."""
    (row,) = transport.show(queue)
    with transport.receive(queue) as batch:
        assert len(batch) == 1
    return row


def imported(transport, reason=None):
    message = receive(transport)
    fail(transport, message, reason)
    row = stored(transport)
    return message, import_error(row.raw_headers, row.body)


def test_the_body_and_all_headers_of_the_message_are_kept_but_for_what_counts_retries(transport):
    message = receive(transport)
    counters = {wire.RETRIES: "2", wire.FIRST_LEVEL_RETRIES: "3", wire.FORWARD_DESTINATION: "elsewhere"}
    retried = {wire.RETRIES_TIMESTAMP: wire.format_timestamp(datetime.now(UTC))}
    headers = {**message.headers, **retried}
    transport.dispatch(
        [Operation("error", error_message({**headers, **counters}, message.body, failure(), "orders", "Orders"))]
    )
    row = stored(transport)
    failed = import_error(row.raw_headers, row.body)
    assert row.body == BODY.encode()
    assert failed.headers.items() >= {**headers, **OWN}.items()
    assert not counters.keys() & failed.headers.keys()


def test_the_message_id_and_the_intent_stay_and_the_row_id_is_new(transport):
    message = receive(transport)
    fail(transport, message)
    row = stored(transport)
    failed = import_error(row.raw_headers, row.body)
    assert failed.message_id == message.message_id
    assert failed.headers[wire.MESSAGE_INTENT] == "Send"
    assert row.id != message.id


def test_a_failed_message_never_expires(transport, backend):
    transport.send("orders", new_message("{}", time_to_be_received=timedelta(hours=1)))
    fail(transport, take(transport))
    table = transport.resolve("error").qualified
    assert [tuple(row) for row in backend.sql(transport, f"SELECT Expires FROM {table}")] == [(None,)]


def test_the_failed_queue_is_an_address_that_leads_back(transport):
    _, failed = imported(transport)
    assert failed.failed_queue == transport.resolve("orders").canonical
    transport.send(failed.failed_queue, new_message("back"))
    assert [row.body for row in transport.show("orders")] == [b"back"]


def test_a_message_without_an_id_is_imported_under_that_of_its_row(transport):
    transport.send("orders", OutgoingMessage(b"{}", {"own": "x"}))
    (row,) = transport.show("orders")
    message = take(transport)
    copy = error_message({"own": "x"}, message.body, failure(), "orders", "Orders", message_id=row.id)
    transport.dispatch([Operation("error", copy)])
    error = stored(transport)
    assert import_error(error.raw_headers, error.body).message_id == row.id


def test_the_times_of_sending_and_of_failure_can_be_read(transport):
    _, failed = imported(transport)
    assert failed.time_sent is not None and failed.time_of_failure is not None
    assert timedelta(0) <= failed.time_of_failure - failed.time_sent < timedelta(minutes=5)


def test_the_endpoint_is_the_one_that_processed_the_message_with_its_host(transport):
    _, failed = imported(transport)
    assert (failed.endpoint, failed.host) == ("Orders", wire.machine_name())
    assert failed.host_id == uuid.UUID(wire.host_id())
    assert failed.headers[wire.ORIGINATING_ENDPOINT] == "Web"


def test_the_exception_is_reported_with_its_cause_its_source_and_its_data(transport):
    _, failed = imported(transport)
    reported = {
        name.removeprefix(wire.EXCEPTION_PREFIX): value
        for name, value in failed.headers.items()
        if name.startswith(wire.EXCEPTION_PREFIX)
    }
    assert reported.pop("StackTrace").startswith(f"{HERE}.Unpayable: no card\n ---> builtins.KeyError: 'card'\n   at ")
    assert reported == {
        "ExceptionType": f"{HERE}.Unpayable",
        "InnerExceptionType": "builtins.KeyError",
        "Message": "no card",
        "Source": "queue_pipeline_tests",
        "Data.order": "7",
    }


def test_a_long_message_is_cut_where_the_reference_cuts_it(transport):
    _, failed = imported(transport, describe(ValueError("é" * 50_000)))
    assert failed.exception_message == "é" * LONGEST_MESSAGE


def test_failures_are_grouped_by_type_and_place(transport):
    _, failed = imported(transport)
    assert failed.groups == {
        "Exception Type and Stack Trace": f"{HERE}.Unpayable: {HERE}.charge()",
        "Message Type": "Shop.Order",
        "Endpoint Name": "Orders",
        "Endpoint Instance": wire.host_id(),
        "Endpoint Address": transport.resolve("orders").canonical,
    }
    assert failed.frames[0].file == __file__


def test_a_json_body_is_shown_as_text(transport):
    _, failed = imported(transport)
    assert failed.body_text == BODY


def test_the_failure_of_a_message_is_the_same_each_time_it_fails(transport):
    message, failed = imported(transport)
    assert failed.unique_id == guid_of(message.message_id, "Orders")
    destination, again = retry(failed)
    transport.dispatch([Operation(destination, again)])
    fail(transport, take(transport))
    row = stored(transport)
    repeated = import_error(row.raw_headers, row.body)
    assert repeated.unique_id == failed.unique_id
    assert repeated.headers[wire.RETRY_ACKNOWLEDGEMENT_QUEUE] == ACKNOWLEDGEMENT_QUEUE


@pytest.mark.parametrize("text", ["nul \0", "half a pair \ud83d", "\x1b[31mred\x1e", '\U0001f600 \u2028 \\ " /'])
def test_the_row_of_any_exception_can_be_stored_and_read(transport, text):
    reason = Failure("Bad" + text, text, f"Bad: {text}\n   at a.b()", text, text, {text: text})
    message, failed = imported(transport, reason)
    expected = text.replace("\0", "").replace("\ud83d", "\ufffd")
    assert failed.exception_message == expected
    assert failed.headers[wire.EXCEPTION_DATA_PREFIX + expected] == expected
    assert failed.groups["Exception Type and Stack Trace"] == f"Bad{expected}: a.b()"
    assert failed.message_id == message.message_id


def test_a_retried_message_that_succeeds_is_acknowledged_and_audited(transport):
    transport.install("audit", ACKNOWLEDGEMENT_QUEUE)
    _, failed = imported(transport)
    destination, again = retry(failed)
    transport.dispatch([Operation(destination, again)])
    (row,) = transport.show("orders")
    message = take(transport)
    assert (message.message_id, message.body) == (failed.message_id, failed.body)
    assert not any(name.startswith((wire.EXCEPTION_PREFIX, wire.FAILED_QUEUE)) for name in message.headers)
    batch = pa.table({"headers": [row.raw_headers], "message_id": [message.message_id], "body": [message.body]})
    now = datetime.now(UTC)
    confirming = Confirming("Orders", now - timedelta(seconds=1), now, "audit", audit_time_to_live=3600)
    transport.dispatch_columns(confirmations(batch, confirming))
    control = stored(transport, ACKNOWLEDGEMENT_QUEUE)
    control_headers = json.loads(control.raw_headers)
    assert control.body == b""
    assert control_headers["ServiceControl.Retry.UniqueMessageId"] == str(failed.unique_id)
    assert control_headers["ServiceControl.Retry.Successful"] == wire.format_timestamp(now)
    assert control_headers["NServiceBus.ControlMessage"] == "True"
    copy = stored(transport, "audit")
    audited = import_audit(copy.raw_headers)
    assert copy.body == BODY.encode()
    assert audited.acknowledge_retry is False
    assert audited.processing_time == timedelta(seconds=1)
    assert audited.headers[wire.HOST_ID] == wire.host_id()


def test_only_the_audit_copy_expires(transport, backend):
    transport.install("audit")
    message = receive(transport)
    batch = pa.table({"headers": [wire.encode(message.headers)], "message_id": ["m"], "body": [message.body]})
    now = datetime.now(UTC)
    for time_to_live in (None, 3600):
        transport.dispatch_columns(confirmations(batch, Confirming("Orders", now, now, "audit", time_to_live)))
    table = transport.resolve("audit").qualified
    order = "seq" if backend.name == "postgresql" else "RowVersion"
    rows = backend.sql(transport, f"SELECT Expires FROM {table} ORDER BY {order}")
    assert [row[0] is None for row in rows] == [True, False]


def spark_failure(spark, *columns):
    """What the driver hears of a computation over one row that fails."""
    frame = spark.createDataFrame([("abc",)], "x string")
    with pytest.raises(Exception) as caught:
        frame.select(*columns).toArrow()
    return caught.value


def explode(text):
    if text:
        raise ValueError(f"cannot read {text}")


def wrap(text):
    try:
        explode(text)
    except ValueError as error:
        raise Unpayable("two\nlines") from error


def test_an_exception_in_a_udf_is_reported_with_its_type_and_its_place_in_the_udf(spark):
    error = spark_failure(spark, F.udf(explode, "string")("x"))
    assert type(error).__name__ == "PythonException"
    described = describe(error)
    assert (described.error_type, described.message) == ("builtins.ValueError", "cannot read abc")
    assert (described.inner_type, described.source) == (None, "queue_pipeline_tests")
    lines = described.stack_trace.splitlines()
    assert lines[0] == "builtins.ValueError: cannot read abc"
    assert lines[1].startswith(f"   at {HERE}.explode() in {__file__}:line ")
    assert "   at pyspark.worker." in described.stack_trace
    assert "/pyspark/sql/connect/" in described.stack_trace.partition("from previous location")[2]
    assert described.stack_trace.count(f"at {HERE}.explode() in") == 1
    assert "org.apache.spark" not in described.stack_trace
    assert "SQLSTATE" not in described.stack_trace
    assert {"builtins.ValueError", "ValueError", "Exception"} <= set(error_types(error))


def test_the_cause_of_an_exception_in_a_udf_is_reported(spark):
    error = spark_failure(spark, F.udf(wrap, "string")("x"))
    described = describe(error)
    assert (described.error_type, described.message) == (f"{HERE}.Unpayable", "two\nlines")
    assert described.inner_type == "builtins.ValueError"
    lines = described.stack_trace.splitlines()
    assert lines[:3] == [f"{HERE}.Unpayable: two", "lines", " ---> builtins.ValueError: cannot read abc"]
    assert lines[3].startswith(f"   at {HERE}.explode() in {__file__}:line ")
    assert error_types(error)[:2] == (f"{HERE}.Unpayable", "Unpayable")


def test_an_exception_without_a_message_in_an_arrow_function_is_reported(spark):
    def nothing(batches):
        for batch in batches:
            raise ZeroDivisionError
            yield batch

    frame = spark.createDataFrame([("abc",)], "x string")
    with pytest.raises(Exception) as caught:
        frame.mapInArrow(nothing, "x string").toArrow()
    described = describe(caught.value)
    assert (described.error_type, described.message) == ("builtins.ZeroDivisionError", "")
    assert described.stack_trace.splitlines()[1].startswith(f"   at {HERE}.nothing() in {__file__}:line ")


def test_the_failure_of_a_udf_is_grouped_by_its_own_place(spark, sqlite):
    transport = sqlite.transport()
    transport.install("orders")
    _, failed = imported(transport, describe(spark_failure(spark, F.udf(explode, "string")("x"))))
    assert failed.groups["Exception Type and Stack Trace"] == f"builtins.ValueError: {HERE}.explode()"


@pytest.mark.parametrize(
    ("column", "kind", "condition"),
    [
        ("nope", "AnalysisException", "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        ("cast(x as int)", "NumberFormatException", "[CAST_INVALID_INPUT]"),
        ("1 / 0", "ArithmeticException", "[DIVIDE_BY_ZERO]"),
        ("raise_error('oh')", "SparkRuntimeException", "[USER_RAISED_EXCEPTION] oh"),
    ],
)
def test_other_errors_of_spark_are_described_by_their_class_and_condition(spark, column, kind, condition):
    error = spark_failure(spark, F.expr(column))
    described = describe(error)
    assert described.error_type == f"pyspark.errors.exceptions.connect.{kind}"
    assert described.message.startswith(condition)
    assert (described.inner_type, described.source) == (None, "pyspark")
    assert "JVM stacktrace" not in described.stack_trace
    assert "\tat " not in described.stack_trace
    assert f"at {HERE}.spark_failure() in {__file__}:line " in described.stack_trace
    assert {kind, f"pyspark.errors.{kind}"} <= set(error_types(error))
