"""Copies for the error queue."""

from datetime import UTC, datetime

import pytest

from queue_pipeline.transport.failed.error_message import LONGEST_MESSAGE, Failure, error_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.service_control import import_error

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_a_failed_message_keeps_its_body_and_headers_and_says_where_when_and_why_it_failed():
    copy = error_message(
        {wire.MESSAGE_ID: "m", "own": "x"}, b"body", Failure("Bad", "why"), "orders@[dbo]", "Orders", NOW
    )
    assert copy.body == b"body"
    assert copy.headers == {
        wire.MESSAGE_ID: "m",
        "own": "x",
        wire.FAILED_QUEUE: "orders@[dbo]",
        wire.TIME_OF_FAILURE: "2026-03-04 05:06:07:000000 Z",
        wire.EXCEPTION_TYPE: "Bad",
        wire.EXCEPTION_MESSAGE: "why",
        wire.EXCEPTION_STACK_TRACE: "Bad: why",
        wire.PROCESSING_ENDPOINT: "Orders",
        wire.PROCESSING_MACHINE: wire.machine_name(),
        wire.HOST_ID: wire.host_id(),
        wire.HOST_DISPLAY_NAME: wire.machine_name(),
    }


def test_a_message_that_fails_again_reports_the_last_failure():
    headers = {wire.EXCEPTION_MESSAGE: "before", wire.FAILED_QUEUE: "elsewhere"}
    copy = error_message(headers, b"", Failure("Bad", "now", "at line 5"), "orders", "Orders", NOW)
    assert (copy.headers[wire.EXCEPTION_MESSAGE], copy.headers[wire.FAILED_QUEUE]) == ("now", "orders")
    assert copy.headers[wire.EXCEPTION_STACK_TRACE] == "at line 5"


def test_a_long_text_is_cut():
    copy = error_message({}, b"", Failure("Bad", "x" * 100_000), "orders", "Orders", NOW)
    assert len(copy.headers[wire.EXCEPTION_MESSAGE]) == LONGEST_MESSAGE
    assert len(copy.headers[wire.EXCEPTION_STACK_TRACE]) < LONGEST_MESSAGE + 10


def copied(headers=None, failure=None, **options):
    return error_message(
        {wire.MESSAGE_ID: "m"} if headers is None else headers,
        b"",
        failure or Failure("Bad", "why"),
        "orders",
        "Orders",
        NOW,
        **options,
    ).headers


def test_a_long_text_is_measured_as_dot_net_measures_it():
    reported = copied(failure=Failure("Bad", "x" + "\U0001f600" * 10_000))[wire.EXCEPTION_MESSAGE]
    assert len(reported.encode("utf-16-le")) // 2 == LONGEST_MESSAGE - 1
    assert set(reported) == {"x", "\U0001f600"}


def test_all_that_is_known_of_an_exception_is_in_the_headers():
    failure = Failure("a.Bad", "why", "a.Bad: why\n   at a.b()", "b.Worse", "shop", {"order": "7", "Message ID": "m"})
    headers = copied(failure=failure)
    assert {name: value for name, value in headers.items() if name.startswith(wire.EXCEPTION_PREFIX)} == {
        wire.EXCEPTION_TYPE: "a.Bad",
        wire.INNER_EXCEPTION_TYPE: "b.Worse",
        wire.EXCEPTION_MESSAGE: "why",
        wire.EXCEPTION_SOURCE: "shop",
        wire.EXCEPTION_STACK_TRACE: "a.Bad: why\n   at a.b()",
        "NServiceBus.ExceptionInfo.Data.order": "7",
        "NServiceBus.ExceptionInfo.Data.Message ID": "m",
    }


def test_an_exception_without_a_message_is_described_by_its_type():
    assert copied(failure=Failure("a.Bad", ""))[wire.EXCEPTION_MESSAGE] == "a.Bad"


def test_counters_of_retries_and_the_forwarding_address_are_left_out_and_the_time_of_the_retry_stays():
    counters = {wire.FORWARD_DESTINATION: "x", wire.RETRIES: "3", wire.FIRST_LEVEL_RETRIES: "5"}
    headers = copied({wire.MESSAGE_ID: "m", **counters, wire.RETRIES_TIMESTAMP: "2026-03-04 05:06:07:000000 Z"})
    assert not counters.keys() & headers.keys()
    assert headers[wire.RETRIES_TIMESTAMP] == "2026-03-04 05:06:07:000000 Z"


def test_headers_of_servicecontrol_and_of_other_systems_stay_unchanged():
    original = {
        wire.MESSAGE_ID: "m",
        wire.MESSAGE_INTENT: "Publish",
        wire.RETRY_UNIQUE_MESSAGE_ID: "9c1b",
        wire.RETRY_ACKNOWLEDGEMENT_QUEUE: "acks",
        wire.EDIT_OF: "old",
        "ServiceControl.Unknown": "x",
        "traceparent": "00-1-2-01",
        "Чужой": "\0\ud800",
    }
    assert copied(original).items() >= original.items()


def test_what_an_earlier_failure_left_behind_does_not_mix_with_this_one():
    stale = {wire.INNER_EXCEPTION_TYPE: "Old", f"{wire.EXCEPTION_DATA_PREFIX}order": "1"}
    stale["NServiceBus.ExceptionInfo.HelpLink"] = "x"
    assert not stale.keys() & copied({wire.MESSAGE_ID: "m", **stale}).keys()


@pytest.mark.parametrize("headers", [{"own": "x"}, {"own": "x", wire.MESSAGE_ID: ""}])
def test_a_message_without_an_id_gets_the_one_that_it_is_known_by(headers):
    assert copied(headers, message_id="row id")[wire.MESSAGE_ID] == "row id"
    assert len(copied(headers)[wire.MESSAGE_ID]) == 36
    assert headers.get(wire.MESSAGE_ID) != "row id"


def test_a_message_with_an_id_keeps_it():
    assert copied(message_id="row id")[wire.MESSAGE_ID] == "m"


def test_characters_that_no_database_stores_are_removed_from_the_error_headers():
    hostile = "a\0b\ud800c"
    headers = copied(failure=Failure(hostile, hostile, hostile, hostile, hostile, {hostile: hostile}))
    reported = {name: value for name, value in headers.items() if name.startswith(wire.EXCEPTION_PREFIX)}
    assert len(reported) == 6
    assert set(reported.values()) == {"ab\ufffdc"}
    assert f"{wire.EXCEPTION_DATA_PREFIX}ab\ufffdc" in reported


def test_servicecontrol_can_import_the_minimal_message():
    failed = import_error(wire.encode(copied({}, message_id="m")), b"")
    assert (failed.message_id, failed.endpoint, failed.failed_queue) == ("m", "Orders", "orders")
    assert failed.time_of_failure == NOW
    assert failed.groups["Exception Type and Stack Trace"] == "Bad: No stacktrace"
