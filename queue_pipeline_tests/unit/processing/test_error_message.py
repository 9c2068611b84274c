"""Copies for the error and the audit queue."""

from datetime import UTC, datetime

import pyarrow as pa

from queue_pipeline.processing.audit import audit_copies
from queue_pipeline.processing.error_message import LONGEST_MESSAGE, Failure, error_message
from queue_pipeline.transport import headers as wire
from queue_pipeline.transport.dialect import NEVER_EXPIRES

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = datetime(2026, 3, 4, 5, 6, 9, tzinfo=UTC)


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


def test_a_message_that_fails_again_tells_of_the_last_time():
    headers = {wire.EXCEPTION_MESSAGE: "before", wire.FAILED_QUEUE: "elsewhere"}
    copy = error_message(headers, b"", Failure("Bad", "now", "at line 5"), "orders", "Orders", NOW)
    assert (copy.headers[wire.EXCEPTION_MESSAGE], copy.headers[wire.FAILED_QUEUE]) == ("now", "orders")
    assert copy.headers[wire.EXCEPTION_STACK_TRACE] == "at line 5"


def test_a_long_story_is_cut():
    copy = error_message({}, b"", Failure("Bad", "x" * 100_000), "orders", "Orders", NOW)
    assert len(copy.headers[wire.EXCEPTION_MESSAGE]) == LONGEST_MESSAGE
    assert len(copy.headers[wire.EXCEPTION_STACK_TRACE]) < LONGEST_MESSAGE + 10


def test_an_audit_copy_is_the_message_as_it_came_with_when_and_by_whom_it_was_processed():
    texts = [wire.encode({"own": "a/b", wire.FORWARD_DESTINATION: "x"}), wire.encode({wire.MESSAGE_ID: "given"})]
    messages = pa.table({"headers": texts, "message_id": ["m1", "given"], "body": [b"1", b""]})
    copies = audit_copies("audit", messages, NOW, LATER, "Orders")
    assert (copies.destination, copies.delayed, list(copies.ids)) == ("audit", False, ["m1", "given"])
    assert (list(copies.bodies), set(copies.milliseconds)) == ([b"1", b""], {NEVER_EXPIRES})
    first, second = map(wire.decode, copies.headers)
    assert (first["own"], first[wire.MESSAGE_ID], second[wire.MESSAGE_ID]) == ("a/b", "m1", "given")
    assert wire.FORWARD_DESTINATION not in first
    assert first[wire.PROCESSING_STARTED] == "2026-03-04 05:06:07:000000 Z"
    assert first[wire.PROCESSING_ENDED] == "2026-03-04 05:06:09:000000 Z"
    assert second[wire.PROCESSING_ENDPOINT] == "Orders"
