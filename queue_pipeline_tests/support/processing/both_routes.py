"""A claim through a transform on a real Spark, over either route: the local backend or the executors."""

import json

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.processing.processed import process as process_claim

ROUTES = ("local", "executors")
STRANGER = "a result of the transform belongs to no message of the batch"


def fill(transport, count, **headers):
    """Messages with the bodies {"n": 0}, {"n": 1}, …"""
    transport.send("orders", [new_message(json.dumps({"n": n}), headers=headers) for n in range(count)])


def numbers(transport, queue):
    """What the bodies of a queue's messages say."""
    return sorted(json.loads(shown.body)["n"] for shown in transport.show(queue, 1_000))


def process(transport, spark, route, transform, claim=None, **options):
    """Read, transform and complete a claim, by default one of all messages; errors reach the test as they are."""
    given = {"name": "orders", "input_queue": "orders", "output_queues": ["billing"], "route": route}
    pipeline = QueuePipeline(**{**given, "transform": transform, **options})
    sessions = AttemptSessions(lambda: spark)
    transformer, executors = SparkTransformer(pipeline, sessions), Executors(pipeline, transport, sessions)
    claim = claim or transport.claim("orders", "me", 1_000)
    assert claim is not None
    report = process_claim(BatchProcessor(pipeline, transport, transformer, executors), pipeline, claim)
    assert report.backend == route
    return report
