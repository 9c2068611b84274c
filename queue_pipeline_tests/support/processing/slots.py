"""Batches of one pipeline one after the other on the same Spark, each by another transform."""

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.processing.processed import process as process_claim


def through_a_view(messages):
    """The commonest way to write a transform: a view of a fixed name, and SQL over it."""
    messages.createOrReplaceTempView("messages")
    return messages.sparkSession.sql("select origin, body from messages")


def declare(**options):
    given = {"name": "orders", "input_queue": "orders", "output_queues": ["billing"], "transform": through_a_view}
    at_once = Recoverability(immediate_retries=1, delayed_retries=0)
    return QueuePipeline(**{**given, "linger_seconds": 0, "peek_delay": 0.1, "recoverability": at_once, **options})


def fill(transport, count):
    transport.send("orders", [new_message(str(n)) for n in range(count)])


class Slots:
    """Processes batches one after the other with the same sessions, as the slots of a run do."""

    def __init__(self, transport, spark, **options):
        self.transport = transport
        self.pipeline = declare(transform=self._transform, **options)
        self.sessions = AttemptSessions(lambda: spark)
        transformer = SparkTransformer(self.pipeline, self.sessions)
        executors = Executors(self.pipeline, transport, self.sessions)
        self.processor = BatchProcessor(self.pipeline, transport, transformer, executors)
        self._next = through_a_view

    def process(self, transform, count=2):
        """One batch by this transform; returns what it sent."""
        self._next = transform
        fill(self.transport, count)
        report = process_claim(self.processor, self.pipeline, self.transport.claim("orders", "me", 100))
        assert report.backend == self.pipeline.route
        with self.transport.receive("billing", 100) as received:
            return [message.body.decode() for message in received.messages]

    def _transform(self, messages):
        return self._next(messages)
