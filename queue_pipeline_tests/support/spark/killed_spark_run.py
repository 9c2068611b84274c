"""A run in a process of its own, on the warm Spark that its environment names, which a message of it may kill.

Arguments: the database, its schema, the pipeline, and its transform in `killing_transforms`. Prints how it ended.
"""

from __future__ import annotations

import json
import os
import sys

from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import NO_RETRIES
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.run_spark import RunSpark
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.support.processing import killing_transforms
from queue_pipeline_tests.support.processing.recovering import THIS_CODE


def main(database: str, schema: str, name: str, transform: str) -> None:
    """PipelineRun a queue with two slots, in batches of two."""
    pipeline = QueuePipeline(
        name=name, input_queue=name, output_queues=["billing"], transform=getattr(killing_transforms, transform),
        linger_seconds=0, batch_messages=2, max_concurrency=2, recoverability=NO_RETRIES, route="local",
    )  # fmt: skip
    transport = QueueTransport(database, endpoint=name, schema=schema or None)
    resource = SparkResource(spark_config=spark_config())
    spark = RunSpark(lambda: resource.spark_session, resource.properties)
    sessions = AttemptSessions(spark.session, pipeline.batch_seconds)
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, sessions), proof=THIS_CODE, spark=spark)
    try:
        owner = f"run of {name}, process {os.getpid()}"
        ended = PipelineRun(pipeline, transport, owner, recovery, slots=2).run()
    finally:
        spark.close()
    print(json.dumps({"reason": ended.reason, "failure": str(ended.failure or "")}))


if __name__ == "__main__":
    main(*sys.argv[1:])
