"""What a batch deletes is what it read: a difference rolls everything back, over both ways that a batch can take."""

import json

import pytest

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer, Transformed
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline_tests.support.databases.claimed_rows import add_row, change_row_version, remove_row
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.processed import process
from queue_pipeline_tests.support.processing.recovering import declare

WAYS = ("local", "executors")
ATOMIC = "sends_atomic_with_receive"


def fill(transport, count):
    transport.send("orders", [new_message(json.dumps({"n": n})) for n in range(count)])


def work(transport, spark, way, claim, transform=lambda messages: messages.select("origin", "body"), mode=ATOMIC):
    pipeline = QueuePipeline(
        name="orders",
        input_queue="orders",
        output_queues=["billing"],
        transform=transform,
        route=way,
        transaction_mode=mode,
    )
    sessions = AttemptSessions(lambda: spark)
    executors = Executors(pipeline, transport, sessions)
    processor = BatchProcessor(pipeline, transport, SparkTransformer(pipeline, sessions), executors)
    return process(processor, pipeline, claim)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tamper", [add_row, remove_row, change_row_version])
def test_a_claim_that_changed_after_it_was_read_is_not_completed(backend, transport, spark, way, tamper):
    """A transform is called after the claim was read by the run, or cut into parts for the executors."""
    fill(transport, 3)
    claim = transport.claim("orders", "me", 100)

    def transform(messages):
        tamper(backend, transport, claim)
        return messages.select("origin", "body")

    with pytest.raises(QueuePipelineError, match=r"claim .* of .*orders"):
        work(transport, spark, way, claim, transform)
    assert transport.peek("billing") == 0
    (left,) = transport.claims.list()
    assert (left.claim_id, left.owner, left.generation) == (claim.claim_id, "me", 1)


def test_an_unreliable_batch_ends_its_claim_only_if_it_read_all_of_it(backend, transport, spark):
    fill(transport, 3)
    claim = transport.claim("orders", "me", 100)
    add_row(backend, transport, claim)
    with pytest.raises(QueuePipelineError, match="claims return"):
        work(transport, spark, "local", claim, mode="unreliable")
    assert [status.messages for status in transport.claims.list()] == [3]
    transport.claims.release(claim)
    assert transport.claims.give_back_abandoned(transport.resolve("orders")) == 4


def test_a_failure_of_a_message_that_the_batch_does_not_have_ends_no_message(transport):
    """The message that it means would be neither processed nor failed."""

    class Confused(PlainTransformer):
        def transform(self, batch, sending):
            return Transformed([], {batch.messages["row_version"][0].as_py() + 1_000: Failure("Refused", "no")})

    fill(transport, 2)
    claim = transport.claim("orders", "me", 100)
    processor = BatchProcessor(declare(), transport, Confused())
    with pytest.raises(TransformError, match="belongs to no message of the batch"):
        processor.process(processor.local.read(claim))
    assert [status.messages for status in transport.claims.list()] == [2]
