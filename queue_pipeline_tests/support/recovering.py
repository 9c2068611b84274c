"""Runs of a pipeline whose transform is plain Python: what the tests of recovery share."""

from queue_pipeline.processing.drain import Drain
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.recoverability import Recoverability
from queue_pipeline.processing.recovery import Recovery
from queue_pipeline.transport import new_message
from queue_pipeline.transport.addressing import DELAYED_SUFFIX

AT_ONCE = Recoverability(immediate_retries=2, delayed_retries=0)


def declare(**options):
    given = {"name": "orders", "input_queue": "orders", "transform": lambda m: m, "linger_seconds": 0}
    return QueuePipeline(**{**given, "peek_delay": 0.1, "recoverability": AT_ONCE, **options})


def fill(transport, count, start=0):
    transport.send("orders", [new_message(f"{n}") for n in range(start, start + count)])


def run(transport, transformer, pipeline=None, **options):
    """One run of a pipeline; returns how it ended and its attempts."""
    pipeline = pipeline or declare()
    recovery, attempts = Recovery(pipeline, transport, transformer), []
    drain = Drain(
        pipeline, transport, "run 1", recovery.attempt,
        limit=recovery.limit, on_attempt=attempts.append, **{"slots": pipeline.slots, **options},
    )  # fmt: skip
    return drain.run(), attempts


def bodies(transport, queue):
    return sorted(int(shown.body) for shown in transport.show(queue, 100_000))


def headers(transport, queue):
    return [shown.headers for shown in transport.show(queue, 100_000)]


def make_due(backend, transport):
    """Let all delayed messages be due now, as if their time had passed."""
    table = transport.book.sibling(transport.resolve("orders"), DELAYED_SUFFIX).qualified
    past = {
        "sqlite": "Due = 0",
        "postgresql": "due = now() - interval '1 second'",
        "sqlserver": "Due = DATEADD(second, -1, GETUTCDATE())",
    }[backend.name]
    backend.sql(transport, f"UPDATE {table} SET {past}")
    return transport.delayed.move_due(transport.resolve("orders"))
