"""What a failed message loses on its way back, and which messages a choice means."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text
from sqlalchemy.dialects.mssql.pyodbc import MSDialect_pyodbc

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.failed.failed_message import Selection, bare_name, first_type, full_name
from queue_pipeline.transport.failed.returns import without_failure
from queue_pipeline.transport.layouts.nservicebus.forwarding import ROWS_PER_STATEMENT, parts
from queue_pipeline.transport.layouts.nservicebus.rows import browsed_row
from queue_pipeline.transport.messages import headers as wire

ROW = "0190A0B0-0000-7000-8000-00000000000A"
TYPES = "Sales.OrderPlaced, Sales.Messages, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null;Sales.IEvent, Sales"
KEPT = {
    wire.MESSAGE_ID: "m-1",
    wire.CORRELATION_ID: "c-1",
    wire.CONVERSATION_ID: "v-1",
    wire.MESSAGE_INTENT: "Publish",
    wire.ENCLOSED_MESSAGE_TYPES: TYPES,
    wire.CONTENT_TYPE: "application/json",
    wire.TIME_SENT: "2026-01-02 03:04:05:000006 Z",
    wire.REPLY_TO_ADDRESS: "sales@[dbo]@[shop]",
    wire.ORIGINATING_ENDPOINT: "Sales",
    wire.ORIGINATING_HOST_ID: "0" * 32,
    wire.PROCESSING_STARTED: "2026-01-02 03:04:05:000006 Z",
    wire.RETRY_UNIQUE_MESSAGE_ID: "u-1",
    wire.RETRY_ACKNOWLEDGEMENT_QUEUE: "Particular.ServiceControl",
    "ServiceControl.RetryTo": "elsewhere",
    "traceparent": "00-1-2-01",
    "tenant": "north",
    "nservicebus.failedq": "names are case-sensitive",
    "NServiceBus.FailedQueue": "another header",
    "NServiceBus.ExceptionInfo": "not under the prefix",
    "": "a header without a name",
}
LOST = {
    wire.FAILED_QUEUE: "orders",
    wire.TIME_OF_FAILURE: "2026-01-02 03:04:05:000006 Z",
    wire.EXCEPTION_TYPE: "System.InvalidOperationException",
    wire.INNER_EXCEPTION_TYPE: "System.Exception",
    wire.EXCEPTION_MESSAGE: "no such order",
    wire.EXCEPTION_STACK_TRACE: "   at Sales.Handler.Handle()",
    wire.EXCEPTION_DATA_PREFIX + "Message type": "Sales.OrderPlaced",
    wire.RETRIES: "3",
    wire.RETRIES_TIMESTAMP: "2026-01-02 03:04:05:000006 Z",
    "NServiceBus.Retries.Whatever": "x",
    wire.FIRST_LEVEL_RETRIES: "5",
    wire.FORWARD_DESTINATION: "orders",
    wire.EDIT_OF: "e-1",
    wire.PROCESSING_ENDPOINT: "Orders",
    wire.PROCESSING_MACHINE: "machine",
    wire.HOST_ID: "1" * 32,
    wire.HOST_DISPLAY_NAME: "machine",
}


def failed(headers=None, text=None):
    header_text = wire.encode(headers or {}) if text is None else text
    return browsed_row((ROW, 7, 0, header_text, None, None, None, None, 3))


def meant(message, failed_in=lambda address: address == "orders", **chosen):
    return Selection(**chosen).matches(message, failed_in)


def test_headers_that_the_failure_added_are_gone_and_the_others_are_unchanged():
    """The headers that ServiceControl drops too, and the traces of its processing."""
    together = {name: value for pair in zip(LOST.items(), KEPT.items(), strict=False) for name, value in pair}
    assert without_failure({**together, **KEPT}) == KEPT
    assert list(without_failure({**KEPT, **LOST})) == list(KEPT), "in another order"


def test_a_message_that_never_failed_keeps_all_its_headers():
    assert without_failure(KEPT) == KEPT
    assert without_failure({}) == {}


def test_a_row_has_why_where_and_when_it_failed():
    message = failed({**KEPT, **LOST})
    assert (message.id, message.row_version, message.message_id, message.body_size) == (ROW.lower(), 7, "m-1", 3)
    assert (
        message.message_type
        == "Sales.OrderPlaced, Sales.Messages, Version=1.0.0.0, Culture=neutral, PublicKeyToken=null"
    )
    assert (message.failed_queue, message.exception_type) == ("orders", "System.InvalidOperationException")
    assert message.exception_message == "no such order"
    assert message.time_of_failure == datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    assert message.headers == {**KEPT, **LOST}
    assert (message.problem, message.raw_headers) == (None, wire.encode({**KEPT, **LOST}))


@pytest.mark.parametrize("text", ["{", "null", "[]", '"x"', '{"a": 1}', "not JSON", "[" * 100_000])
def test_headers_that_cannot_be_read_are_reported_and_kept_unchanged(text):
    message = failed(text=text)
    assert message.problem
    assert (message.headers, message.raw_headers, message.message_id) == ({}, text, ROW.lower())
    assert meant(message, everything=True) and meant(message, ids=[ROW])
    assert not meant(message, message_type="Sales.OrderPlaced")


@pytest.mark.parametrize("text", ["", "{}", '{"NServiceBus.FailedQ": null}', '{"NServiceBus.TimeOfFailure": "soon"}'])
def test_headers_without_useful_values_are_no_problem(text):
    message = failed(text=text)
    assert message.problem is None
    assert (message.failed_queue, message.exception_type, message.time_of_failure) == (None, None, None)
    assert message.message_id == ROW.lower()


@pytest.mark.parametrize("chosen", [{}, {"ids": []}, {"everything": False}])
def test_a_selection_without_criteria_is_refused(chosen):
    with pytest.raises(ConfigurationError, match="nothing is chosen; give ids, a message type, an exception"):
        Selection(**chosen)


@pytest.mark.parametrize(
    ("chosen", "reported"),
    [
        ({"everything": True, "message_type": "T"}, "leave out one or the other"),
        ({"message_type": ""}, "message_type: "),
        ({"ids": [""]}, r"ids\.0: "),
        ({"ids": ["x"], "queue": "orders"}, "queue: "),
    ],
)
def test_an_invalid_selection_is_refused(chosen, reported):
    with pytest.raises(ConfigurationError, match=reported):
        Selection(**chosen)


@pytest.mark.parametrize(
    "chosen",
    [
        {"everything": True},
        {"ids": ["m-1"]},
        {"ids": [ROW]},
        {"ids": ["other", ROW.lower()]},
        {"message_type": TYPES},
        {"message_type": TYPES.partition(";")[0]},
        {"message_type": "Sales.OrderPlaced"},
        {"exception": "System.InvalidOperationException"},
        {"exception": "InvalidOperationException"},
        {"failed_queue": "whatever"},
        {"ids": ["m-1"], "message_type": "Sales.OrderPlaced", "exception": "InvalidOperationException"},
    ],
)
def test_a_message_is_selected_by_its_properties(chosen):
    assert meant(failed({**KEPT, **LOST}), **chosen)


@pytest.mark.parametrize(
    "chosen",
    [
        {"ids": ["M-1"]},
        {"ids": ["m-2"]},
        {"message_type": "sales.orderplaced"},
        {"message_type": "OrderPlaced"},
        {"message_type": "Sales.IEvent"},
        {"exception": "OperationException"},
        {"exception": "System"},
        {"exception": "no such order"},
        {"ids": ["m-1"], "exception": "System.Exception"},
    ],
)
def test_a_message_is_not_selected_by_an_incomplete_match(chosen):
    assert not meant(failed({**KEPT, **LOST}), **chosen)


def test_a_message_is_selected_by_its_queue():
    assert not meant(failed({**LOST, wire.FAILED_QUEUE: "billing"}), failed_queue="orders")
    assert not meant(failed({}), lambda _: True, failed_queue="orders")


def test_names_of_types_are_cut_where_they_end():
    assert first_type(" A, B ; C ") == "A, B"
    assert (first_type(None), first_type(""), first_type(" ; X")) == (None, None, None)
    assert full_name("A.B, Assembly, Version=1") == "A.B"
    assert full_name("A.B`1[[C.D, Assembly]], Assembly") == "A.B`1[[C.D, Assembly]]"
    assert (full_name("A.B"), full_name("")) == ("A.B", "")
    assert (bare_name("a.b.C"), bare_name("C")) == ("C", "C")


def test_many_rows_stay_under_the_length_at_which_pyodbc_describes_parameters():
    dialect = DIALECTS["sqlserver"]
    table = AddressBook(dialect, "s" * 64, "c" * 64).resolve(QueueAddress("q" * 119))
    names = dialect.optional_columns(frozenset({"correlationid", "replytoaddress"}), "deleted")
    for name in ("take", "drop"):
        command = dialect.statement(f"nservicebus/failed.{name}", queue=table, **names)
        sent = text(command.repeated(ROWS_PER_STATEMENT).text).compile(dialect=MSDialect_pyodbc(paramstyle="qmark"))
        assert str(sent).count("?") == ROWS_PER_STATEMENT
        assert len(str(sent)) < 4_000


def test_row_versions_are_cut_for_statements():
    assert [len(part) for part in parts(range(1_200))] == [500, 500, 200]
    assert list(parts([])) == []
