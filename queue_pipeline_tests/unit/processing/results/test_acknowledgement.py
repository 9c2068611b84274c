"""Telling ServiceControl that a message which it sent again was processed."""

import uuid
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from queue_pipeline.processing.results.confirmations import acknowledgements
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import check_columns

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
TOLD = "2026-03-04 05:06:07:000000 Z"


def retried(unique_id, queue="acks"):
    return {wire.RETRY_UNIQUE_MESSAGE_ID: unique_id, wire.RETRY_ACKNOWLEDGEMENT_QUEUE: queue}


def sent_for(*headers, endpoint="Orders"):
    texts = [wire.encode({wire.MESSAGE_ID: f"m{n}", **own}) for n, own in enumerate(headers)]
    chunks = [texts[:1], texts[1:]]
    ready = acknowledgements(pa.table({"headers": pa.chunked_array(chunks, pa.string())}), NOW, endpoint)
    for messages in ready:
        check_columns(messages, str(messages.destination))
    return ready


def test_a_retried_message_is_acknowledged_with_an_empty_control_message():
    (ready,) = sent_for({}, retried("3f2a"), {"own": "x"})
    assert (ready.destination, ready.delayed) == ("acks", False)
    assert (list(ready.bodies), list(ready.milliseconds)) == ([b""], [NEVER_EXPIRES])
    headers = wire.decode(ready.headers[0])
    assert (
        headers.items()
        >= {
            "ServiceControl.Retry.Successful": TOLD,
            "ServiceControl.Retry.UniqueMessageId": "3f2a",
            "NServiceBus.ControlMessage": "True",
            "NServiceBus.TimeSent": TOLD,
            "NServiceBus.MessageIntent": "Send",
            "NServiceBus.OriginatingEndpoint": "Orders",
            "NServiceBus.OriginatingMachine": wire.machine_name(),
            "$.diagnostics.originating.hostid": wire.host_id(),
        }.items()
    )
    assert headers[wire.MESSAGE_ID] == ready.ids[0]
    assert uuid.UUID(ready.ids[0]).version == 4


def test_an_acknowledgement_is_no_message_of_a_type_and_asks_for_none_itself():
    (ready,) = sent_for(retried("3f2a"))
    headers = wire.decode(ready.headers[0])
    unwanted = {wire.ENCLOSED_MESSAGE_TYPES, wire.CONTENT_TYPE, wire.RETRY_ACKNOWLEDGEMENT_QUEUE, wire.REPLY_TO_ADDRESS}
    assert not unwanted & headers.keys()


def test_each_queue_gets_an_acknowledgement_of_its_own():
    first, second = sent_for(retried("1", "a@[dbo]"), retried("2", "b"), retried("3", "a@[dbo]"))
    ids = [[wire.decode(text)[wire.RETRY_UNIQUE_MESSAGE_ID] for text in ready.headers] for ready in (first, second)]
    assert (first.destination, second.destination, ids) == ("a@[dbo]", "b", [["1", "3"], ["2"]])
    assert len({*first.ids, *second.ids}) == 3


@pytest.mark.parametrize(
    "headers",
    [
        {wire.RETRY_UNIQUE_MESSAGE_ID: "3f2a"},
        {wire.RETRY_ACKNOWLEDGEMENT_QUEUE: "acks"},
        retried("", "acks"),
        retried("3f2a", ""),
        {"own": f"{wire.RETRY_UNIQUE_MESSAGE_ID} {wire.RETRY_ACKNOWLEDGEMENT_QUEUE}"},
    ],
)
def test_an_incomplete_request_gets_no_acknowledgement(headers):
    assert sent_for({}, headers) == []


def test_null_is_no_value():
    text = f'{{"{wire.RETRY_UNIQUE_MESSAGE_ID}":"x","{wire.RETRY_ACKNOWLEDGEMENT_QUEUE}":null}}'
    assert acknowledgements(pa.table({"headers": [text]}), NOW, "Orders") == []


def test_headers_are_not_parsed_when_no_retry_was_requested(monkeypatch):
    monkeypatch.setattr(wire, "decode", lambda text: pytest.fail("taken apart"))
    assert sent_for({}, {"own": "x"}) == []
    assert acknowledgements(pa.table({"headers": pa.array([], pa.string())}), NOW, "Orders") == []


def test_the_sender_has_a_name_even_if_none_is_given():
    (ready,) = sent_for(retried("3f2a"), endpoint=None)
    assert wire.decode(ready.headers[0])[wire.ORIGINATING_ENDPOINT] == "queue_pipeline"
