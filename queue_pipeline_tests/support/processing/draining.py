"""Runs without Spark: a worker that completes batches, and what a test needs around it."""

import threading
from unittest.mock import Mock

import pyarrow as pa

from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import Operation, OutgoingMessage
from queue_pipeline.transport.claims.completion import Completion


def declare(**options):
    given = {"batch_messages": 2, "max_concurrency": 2, "linger_seconds": 0, "peek_delay": 0.1}
    return QueuePipeline(name="orders", input_queue="orders", transform=lambda m: m, **{**given, **options})


def fill(transport, count, start=0):
    transport.send("orders", [OutgoingMessage(str(n).encode(), {}) for n in range(start, start + count)])


class Worker:
    """Completes batches with a copy of each message for billing, and counts how many are at it at once."""

    def __init__(self, transport):
        self.transport = transport
        self.done, self.at_once, self.most = [], 0, 0
        self.lock = threading.Lock()
        self.before = lambda claim: None

    def __call__(self, claim):
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        try:
            self.before(claim)
            messages, _, read = self.transport.claims.messages(claim)
            copies = [Operation("billing", OutgoingMessage(message.body, {})) for message in messages]
            self.transport.claims.complete(Completion(claim, copies, read=read))
        finally:
            with self.lock:
                self.at_once -= 1
        with self.lock:
            self.done.append(claim)
        nothing = pa.chunked_array([pa.array([], pa.string())])
        report = BatchReport(
            claim.claim_id, claim.generation, claim.messages, 0, claim.messages, (), 0, 0, 0, 0, 0, nothing,
            pa.chunked_array([pa.array([], pa.float64())]),
        )  # fmt: skip
        return Attempted([report])


def drain(transport, worker, pipeline=None, owner="run 1", **options):
    pipeline = pipeline or declare()
    recovery = Recovery(pipeline, transport, Mock())
    recovery.attempt = worker
    return PipelineRun(pipeline, transport, owner, recovery, **{"slots": pipeline.slots, **options})


def numbers(transport, queue="billing"):
    return sorted(int(shown.body) for shown in transport.show(queue, 1_000))


def meet(barrier):
    """All slots are busy at once at least the first time; later on, no batch waits for long."""
    try:
        barrier.wait(timeout=10)
    except threading.BrokenBarrierError:
        return
    barrier.abort()
