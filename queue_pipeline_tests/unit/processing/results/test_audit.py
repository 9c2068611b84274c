"""Copies for the audit queue."""

import json
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from queue_pipeline.processing.results.confirmations import Confirming, confirmations
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import check_columns
from queue_pipeline_tests.support.service_control import ImportFailedError, import_audit

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = datetime(2026, 3, 4, 5, 6, 9, tzinfo=UTC)
ADDED = {
    wire.PROCESSING_STARTED: "2026-03-04 05:06:07:000000 Z",
    wire.PROCESSING_ENDED: "2026-03-04 05:06:09:000000 Z",
    wire.PROCESSING_ENDPOINT: "Orders",
    wire.PROCESSING_MACHINE: wire.machine_name(),
    wire.HOST_ID: wire.host_id(),
    wire.HOST_DISPLAY_NAME: wire.machine_name(),
}
RETRIED = {wire.RETRY_UNIQUE_MESSAGE_ID: "3f2a", wire.RETRY_ACKNOWLEDGEMENT_QUEUE: "acks"}


def copies_of(*texts, **options):
    messages = pa.table(
        {
            "headers": list(texts),
            "message_id": [f"m{n}" for n in range(1, len(texts) + 1)],
            "body": [str(n).encode() for n in range(1, len(texts) + 1)],
        }
    )
    *_, ready = confirmations(messages, Confirming("Orders", NOW, LATER, "audit", **options))
    check_columns(ready, "audit")
    return ready


def headers_of(text):
    """The headers of the copy; twice the same name would be a mistake."""
    (copy,) = copies_of(text).headers
    pairs = json.loads(copy, object_pairs_hook=list)
    assert len(pairs) == len(dict(pairs))
    return dict(pairs)


def test_an_audit_copy_is_the_message_as_it_came_with_when_and_by_whom_it_was_processed():
    original = {**wire.standard_headers(message_id="m1"), "own": "a/b \U0001f600"}
    copies = copies_of(wire.encode(original), wire.encode({wire.MESSAGE_ID: "m2"}))
    assert (copies.destination, copies.delayed, list(copies.ids)) == ("audit", False, ["m1", "m2"])
    assert list(copies.bodies) == [b"1", b"2"]
    first, second = map(wire.decode, copies.headers)
    assert first == {**original, **ADDED}
    assert second == {wire.MESSAGE_ID: "m2", **ADDED}


@pytest.mark.parametrize(
    "text", ["{}", '{"own":"x"}', '{"NServiceBus.MessageId":""}', '{"NServiceBus.MessageId":null}']
)
def test_a_copy_of_a_message_without_an_id_has_the_one_that_it_is_known_by(text):
    headers = headers_of(text)
    assert headers[wire.MESSAGE_ID] == "m1"
    assert headers.items() >= ADDED.items()


@pytest.mark.parametrize(
    "text",
    [
        '{ "NServiceBus.MessageId" : "m" , "own" : "x" }\n',
        '{"NServiceBus.MessageId":"m","empty":null,"own":"x"}',
        '{"own":"x","NServiceBus.MessageId":"m","NServiceBus.SqlServer.ForwardDestination":"elsewhere"}',
        '{"NServiceBus.MessageId":"m","own":"x","$.diagnostics.hostid":"old","NServiceBus.ProcessingEndpoint":"old"}',
        '{"NServiceBus.MessageId":"m","own":"x","NServiceBus.ProcessingStarted":"old"}',
    ],
)
def test_a_copy_has_the_same_headers_for_any_form_of_their_text(text):
    assert headers_of(text) == {wire.MESSAGE_ID: "m", "own": "x", **ADDED}


def test_a_value_that_looks_like_headers_is_a_value():
    own = '"NServiceBus.MessageId":"x"}'
    assert headers_of(wire.encode({"own": own})) == {"own": own, wire.MESSAGE_ID: "m1", **ADDED}


def test_copies_never_expire_unless_a_lifetime_is_set():
    text = wire.encode({wire.MESSAGE_ID: "m", wire.TIME_TO_BE_RECEIVED: "00:00:01"})
    assert list(copies_of(text, text).milliseconds) == [NEVER_EXPIRES] * 2
    assert list(copies_of(text, text, audit_time_to_live=2.5).milliseconds) == [2500] * 2
    assert list(copies_of(text, audit_time_to_live=0.0001).milliseconds) == [1]
    assert headers_of(text)[wire.TIME_TO_BE_RECEIVED] == "00:00:01"


def test_a_copy_says_that_a_retry_was_reported_to_servicecontrol():
    text = wire.encode({wire.MESSAGE_ID: "m", **RETRIED})
    assert headers_of(text) == {wire.MESSAGE_ID: "m", **RETRIED, **ADDED, wire.RETRY_ACKNOWLEDGEMENT_SENT: "true"}
    assert import_audit(copies_of(text).headers[0]).acknowledge_retry is False


@pytest.mark.parametrize("missing", RETRIED)
def test_a_copy_does_not_claim_what_was_not_sent(missing):
    for incomplete in ({**RETRIED, missing: ""}, {name: value for name, value in RETRIED.items() if name != missing}):
        headers = headers_of(wire.encode({wire.MESSAGE_ID: "m", **incomplete}))
        assert wire.RETRY_ACKNOWLEDGEMENT_SENT not in headers


def test_no_messages_make_no_copies():
    none = pa.array([], pa.string())
    empty = pa.table({"headers": none, "message_id": none, "body": pa.array([], pa.binary())})
    assert [list(one.headers) for one in confirmations(empty, Confirming("Orders", NOW, LATER, "audit"))] == [[]]


def test_servicecontrol_can_import_a_copy():
    sent = NOW - timedelta(seconds=10)
    text = wire.encode(wire.standard_headers(message_id="m1", sent_at=sent, endpoint="Shop"))
    audited = import_audit(copies_of(text).headers[0])
    assert (audited.message_id, audited.endpoint) == ("m1", "Orders")
    assert audited.host_id is not None and audited.host_id.hex == wire.host_id()
    assert audited.processing_time == timedelta(seconds=2)
    assert audited.critical_time == timedelta(seconds=12)


def test_critical_time_counts_from_when_a_delayed_message_was_due():
    headers = {**wire.standard_headers(sent_at=NOW), wire.DELIVER_AT: wire.format_timestamp(NOW + timedelta(seconds=1))}
    assert import_audit(copies_of(wire.encode(headers)).headers[0]).critical_time == timedelta(seconds=1)


def test_the_same_processing_of_the_same_message_is_one_document():
    text, other = (wire.encode({wire.MESSAGE_ID: name}) for name in ("a", "b"))
    first, again, different = (import_audit(copy) for copy in copies_of(text, text, other).headers)
    assert first.document_id == again.document_id
    assert first.document_id != different.document_id


def test_the_senders_host_id_passes_through_even_if_servicecontrol_refuses_it():
    text = wire.encode({wire.MESSAGE_ID: "m", wire.ORIGINATING_HOST_ID: "my laptop"})
    with pytest.raises(ImportFailedError, match=r"originating\.hostid"):
        import_audit(copies_of(text).headers[0])
