"""Control messages, as real endpoints wrote them, in the input queue of a pipeline with a body schema."""

import json

import pytest

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.processed import process

REPLY_CODE = {
    "NServiceBus.MessageId": "57128c17-d0a8-42d8-a665-b50600122816",
    "NServiceBus.MessageIntent": "Reply",
    "NServiceBus.RelatedTo": "ba96d5e1-84c9-4d01-8ef2-b506001223eb",
    "NServiceBus.ConversationId": "02f7ca8b-21cb-42ac-9dd4-b506001223ec",
    "NServiceBus.CorrelationId": "ba96d5e1-84c9-4d01-8ef2-b506001223eb",
    "NServiceBus.ReturnMessage.ErrorCode": "404",
    "NServiceBus.ControlMessage": "True",
    "NServiceBus.ReplyToAddress": '"public"."prices"',
    "NServiceBus.OriginatingEndpoint": "prices",
    "NServiceBus.Version": "10.2.7",
    "NServiceBus.TimeSent": "2026-11-18 01:06:06:375571 Z",
}
CONFIRMATION = {
    "ServiceControl.Retry.Successful": "2026-11-18 01:18:59:948547 Z",
    "ServiceControl.Retry.UniqueMessageId": "6bd66ed1-4bf2-1192-c892-a15b2fa2bab1",
    "NServiceBus.ControlMessage": "True",
    "NServiceBus.Version": "10.2.7",
    "NServiceBus.TimeSent": "2026-11-18 01:18:59:948934 Z",
}


@pytest.mark.parametrize("route", ["local", "executors"])
def test_control_messages_are_processed_without_the_transform_and_audited(postgresql, spark, route):
    """Only a message without a body that is none of them fails."""
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error", "audit"])
    order, empty = new_message(json.dumps({"n": 1})), new_message("")
    transport.send("orders", [OutgoingMessage(b"", REPLY_CODE), order, OutgoingMessage(b"", CONFIRMATION), empty])
    pipeline = QueuePipeline(
        name="orders",
        input_queue="orders",
        output_queues=["billing"],
        audit_queue="audit",
        body_schema="n int NOT NULL",
        transform=lambda messages: messages.select("origin", "body"),
        route=route,
    )
    sessions = AttemptSessions(lambda: spark)
    executors = Executors(pipeline, transport, sessions)
    processor = BatchProcessor(pipeline, transport, SparkTransformer(pipeline, sessions), executors)
    report = process(processor, pipeline, transport.claim("orders", "me", 100))
    assert (report.messages, report.sent, len(report.failed)) == (4, 1, 1)
    assert [shown.body for shown in transport.show("billing")] == [order.body]
    (failed,) = transport.show("error")
    assert failed.headers[wire.MESSAGE_ID] == empty.headers[wire.MESSAGE_ID]
    audited = transport.show("audit")
    assert [shown.headers.get(wire.CONTROL_MESSAGE) for shown in audited] == ["True", None, "True"]
    assert audited[0].headers.items() >= REPLY_CODE.items()
