"""What a run says of a batch in its log."""

import logging

import pyarrow as pa
import pytest

from queue_pipeline.orchestration.metadata import lines
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.failures.decision import Step
from queue_pipeline.processing.results.exceptions import describe
from queue_pipeline.processing.results.failed_copies import MessageFailure
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.transport import Claim


def report(failed):
    times = pa.chunked_array([pa.array([], pa.float64())])
    figures = {"messages": 9, "bytes": 0, "sent": 0, "expired": 0, "table_rows": 0}
    seconds = {"read_seconds": 0.0, "transform_seconds": 0.0, "complete_seconds": 0.0}
    return BatchReport("claim", 1, failed=failed, latencies=times, **figures, **seconds)


@pytest.mark.parametrize(
    ("queue", "place"), [("orders", "error"), ("sql://db/Orders", "the failed ones of sql://db/Orders")]
)
def test_refused_messages_are_named_with_their_reason_the_first_few_of_each_cause(queue, place):
    pipeline = QueuePipeline(name="p", input_queue=queue, transform=lambda messages: messages)
    bodies = [MessageFailure(f"row-{n}", None, "MessageBodyUnreadable", f"n: {n} is odd", f"m-{n}") for n in range(5)]
    headers = MessageFailure("row-9", None, "MessageHeadersUnreadable", "not JSON")
    first, second = lines(pipeline, Attempted([report([*bodies, headers])]))
    assert first == (
        logging.ERROR,
        f"refused and moved to {place}: 5 messages, MessageBodyUnreadable: m-0: n: 0 is odd; m-1: n: 1 is odd; "
        "m-2: n: 2 is odd; and 2 more",
    )
    assert second[1] == f"refused and moved to {place}: 1 message, MessageHeadersUnreadable: row-9: not JSON"


@pytest.mark.parametrize(("messages", "words"), [(1, "1 message was in work"), (5, "5 messages were in work")])
def test_messages_that_were_in_work_when_spark_died_are_counted_in_a_sentence(messages, words):
    pipeline = QueuePipeline(name="p", input_queue="orders", transform=lambda messages: messages)
    claim = Claim("c", "orders", "run x", 1, messages, 0, 1, isolated=True)
    attempted = Attempted(again=[claim], failure=describe(OSError("gone")), step=Step.ISOLATE)
    ((_, line),) = lines(pipeline, attempted)
    assert line.startswith(words)
