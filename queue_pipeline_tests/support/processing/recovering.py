"""Runs of a pipeline whose transform is plain Python: what the tests of recovery share."""

from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.databases.elapsed import end_delays
from queue_pipeline_tests.support.processing.transforming import batch

THIS_CODE = "the code of these runs"
AT_ONCE = Recoverability(immediate_retries=2, delayed_retries=0)


def declare(**options):
    given = {"name": "orders", "input_queue": "orders", "transform": lambda m: m, "linger_seconds": 0}
    return QueuePipeline(**{**given, "peek_delay": 0.1, "recoverability": AT_ONCE, **options})


def fill(transport, count, start=0):
    transport.send("orders", [new_message(f"{n}") for n in range(start, start + count)])


def prove(transport):
    """Let some message have succeeded before, with the code of these runs."""
    transport.failures.prove(transport.resolve("orders").canonical, THIS_CODE)


def succeed_once(recovery):
    """Let a message have succeeded in this run: probes work on it."""
    recovery.judge.succeeded(batch("a good one"))


def run(transport, transformer, pipeline=None, executors=None, *, proven=True, **options):
    """One run of a pipeline; returns how it ended and its attempts."""
    pipeline = pipeline or declare()
    if proven:
        prove(transport)
    recovery, attempts = Recovery(pipeline, transport, transformer, executors, THIS_CODE), []
    options = {"slots": pipeline.slots, **options}
    return PipelineRun(pipeline, transport, "run 1", recovery, on_attempt=attempts.append, **options).run(), attempts


def bodies(transport, queue):
    return sorted(int(shown.body) for shown in transport.show(queue, 100_000))


def headers(transport, queue):
    return [shown.headers for shown in transport.show(queue, 100_000)]


def make_due(backend, transport):
    """Let all delayed messages be due now, and move them; returns how many."""
    end_delays(backend, transport)
    return transport.move_due(transport.resolve("orders"))
