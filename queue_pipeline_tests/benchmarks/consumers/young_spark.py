"""The worked example by a Spark that was just started, in a process of its own."""

from __future__ import annotations

from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks import ours


class YoungSpark:
    """Opens the first session of the server that the environment names, which starts it, and runs nothing yet."""

    def __init__(self, url: str) -> None:
        self._transport = QueueTransport(url, **ours.TRANSPORT)
        self._spark = SparkResource(spark_config=spark_config())
        _ = self._spark.spark_session

    def drain(self) -> int:
        """Work until the queue is empty; returns the number of messages."""
        return ours.drain(ours.example(), self._transport, self._spark).messages
