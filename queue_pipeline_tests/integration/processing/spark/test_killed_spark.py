"""A message that kills the Spark that works on it goes alone to the error queue, with what killed in its error copy."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import NO_RETRIES
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.own_server import OwnServer
from queue_pipeline.processing.spark.run_spark import RunSpark
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport import new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing import killing_transforms
from queue_pipeline_tests.support.processing.recovering import THIS_CODE, bodies, fill, headers, prove
from queue_pipeline_tests.support.spark import killed_spark_run
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def queues(sqlite):
    transport = sqlite.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def isolate(transport):
    """Send the killer and a message beside it, both in work when a process died: one per claim."""
    fill(transport, 2, start=4)
    for _ in range(2):
        transport.claims.begin(transport.claim("orders", "died", 1))
    transport.claims.release_owner("died", died=True)


def run(transport, shared, transform):
    """One run whose isolated batches get a Spark of their own."""
    pipeline = QueuePipeline(
        name="orders", input_queue="orders", output_queues=["billing"], transform=transform, linger_seconds=0,
        batch_messages=1, recoverability=NO_RETRIES, route="local",
    )  # fmt: skip
    prove(transport)
    spark = RunSpark(lambda: shared, spark_config())
    transformer = SparkTransformer(pipeline, AttemptSessions(spark.session, pipeline.batch_seconds))
    recovery = Recovery(pipeline, transport, transformer, proof=THIS_CODE, spark=spark)
    try:
        return PipelineRun(pipeline, transport, "run 1", recovery, slots=2).run()
    finally:
        spark.close()


def what_killed(queues):
    """What the error copy of the killer says; the other message is processed."""
    assert (bodies(queues, "billing"), bodies(queues, "error")) == ([4], [5])
    (stored,) = headers(queues, "error")
    assert stored[wire.EXCEPTION_TYPE].endswith("SparkKilledError")
    return stored[wire.EXCEPTION_MESSAGE]


def test_a_killer_that_is_tried_alone_kills_only_its_own_spark(queues, spark):
    isolate(queues)
    assert run(queues, spark, killing_transforms.kill_server).failure is None
    assert "it was killed (signal 9, SIGKILL)" in what_killed(queues)
    # The Spark that others use was never touched.
    assert spark.range(3).count() == 3


@pytest.mark.slow
def test_a_message_that_fills_the_memory_of_java_is_found_and_named(queues, spark):
    isolate(queues)
    assert run(queues, spark, killing_transforms.fill_heap).failure is None
    assert "java.lang.OutOfMemoryError" in what_killed(queues)


@pytest.mark.slow
def test_a_server_of_a_runs_own_ends_with_it_and_leaves_nothing_behind(spark_settings):
    server = OwnServer(spark_config())
    folder = Path(server.log).parent
    group = os.getpgid(server.pid)
    assert folder.exists()
    server.end()
    assert not folder.exists()
    eventually(lambda: not _is_there(group))


def _is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class Runs:
    """Runs in processes of their own on one warm Spark, and the environment that names it."""

    def __init__(self, backend, folder):
        self._backend = backend
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        self.environment = {
            **inherited,
            "SPARK_LOCAL_CONNECT_DISCOVERY": str(folder / "spark" / "server.json"),
            "QUEUE_PIPELINE_SPARK": "warm:local[4]",
            "SPARK_TESTING": "1",
            "PYTHONPATH": os.getcwd(),
            killing_transforms.MEETING: str(folder),
        }

    def start(self, name, transform):
        command = [sys.executable, "-m", killed_spark_run.__name__, self._backend.url, self._backend.schema, name]
        return subprocess.Popen(
            [*command, transform], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def result(self, child):
        out, errors = child.communicate(timeout=280)
        assert child.returncode == 0, errors[-3000:]
        return json.loads(out.splitlines()[-1])

    def end(self):
        stop = [sys.executable, "-m", "pyspark.sql.connect.local_server", "--stop"]
        subprocess.run(stop, env=self.environment, capture_output=True)


@pytest.fixture
def runs(postgresql, tmp_path):
    runs = Runs(postgresql, tmp_path)
    yield runs
    runs.end()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_with_two_pipelines_on_one_warm_spark_only_the_killer_message_fails(postgresql, runs):
    """Two slots, and a batch of another pipeline beside them: nothing but the killer is counted."""
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", "refunds", plain_queues=["billing", "error"])
    fill(transport, 8)
    transport.send("refunds", new_message("100"))
    first = {name: runs.start(name, how) for name, how in (("orders", "kill_server"), ("refunds", "be_killed"))}
    ended = {name: runs.result(child) for name, child in first.items()}
    assert all("Nothing was counted" in one["failure"] for one in ended.values()), ended
    waiting = [(one.queue, one.failures, one.isolated) for one in transport.claims.list()]
    assert {(failures, isolated) for _, failures, isolated in waiting} == {(0, True)}
    assert {queue for queue, *_ in waiting} == {transport.resolve(name).canonical for name in ("orders", "refunds")}
    second = {name: runs.start(name, how) for name, how in (("orders", "kill_server"), ("refunds", "be_killed"))}
    assert [runs.result(child)["failure"] for child in second.values()] == ["", ""]
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0, 1, 2, 3, 4, 6, 7, 100], [5])
    (stored,) = headers(transport, "error")
    assert "it was killed (signal 9, SIGKILL)" in stored[wire.EXCEPTION_MESSAGE]
    assert transport.claims.list() == []
