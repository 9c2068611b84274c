"""`route="auto"` on a real Spark: the local server of the suite, and the same one taken for a cluster."""

import pytest

from queue_pipeline.processing.batch.backend import is_local
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import new_message


class Asked(Executors):
    """Counts how often Spark's master is asked for; a test may name another."""

    named = None

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = 0

    def master(self):
        self.asked += 1
        return self.named or super().master()


def forward(messages):
    return messages.select("origin", "body")


@pytest.mark.parametrize(("master", "chosen"), [(None, "local"), ("spark://somewhere:7077", "executors")])
def test_the_master_decides_once_a_run(postgresql, spark, monkeypatch, master, chosen):
    monkeypatch.setattr(Asked, "named", master)
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    pipeline = QueuePipeline(name="orders", input_queue="orders", output_queues=["billing"], transform=forward)
    executors = Asked(pipeline, transport, AttemptSessions(lambda: spark))
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, AttemptSessions(lambda: spark)), executors)
    for n in range(2):
        transport.send("orders", new_message(f'{{"n": {n}}}'))
        (report,) = recovery.attempt(transport.claim("orders", "me", 10)).reports
        assert (report.sent, report.backend) == (1, chosen)
    assert executors.asked == 1
    assert transport.peek("billing") == 2


def test_the_local_server_names_a_local_master(postgresql, spark):
    transport = postgresql.transport(endpoint="orders")
    pipeline = QueuePipeline(name="orders", input_queue="orders", transform=forward)
    assert is_local(Executors(pipeline, transport, AttemptSessions(lambda: spark)).master())
