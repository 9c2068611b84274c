"""Bloat: a queue through which a million messages have passed, beside one that is fresh."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.backlogs import fill
from queue_pipeline_tests.benchmarks.movement import OWNER
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report, paired
from queue_pipeline_tests.benchmarks.server import private_postgresql
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch

AS_IN_PRODUCTION = {"autovacuum": "on", "checkpoint_timeout": "5min", "max_wal_size": "1GB"}
"""PostgreSQL's own defaults, instead of what the other measurements need."""
USED, FRESH = "used", "fresh"
BATCH = 10_000
COMPARED = 20_000
"""Messages a round that are received from either queue."""
LEAD = 2
"""Batches that the sender may be ahead of the receiver: a queue is short most of its life."""


def tell_bloat(plan: Plan, report: Report) -> None:
    """On a server of its own, with autovacuum as production has it."""
    with private_postgresql(**AS_IN_PRODUCTION) as cluster:
        url = cluster.url()
        with QueueTransport(url) as transport, peers.connect(url) as connection:
            transport.install(USED, FRESH, plain_queues=[])
            say(f"passing {plan.passed:,} messages through a queue")
            watch = Stopwatch()
            watch.time("pass", lambda: _pass(url, transport, plan.passed))
            report.add("messages_per_s", "passed_1m", [plan.passed / watch.seconds["pass"]])
            for name, size in _sizes(connection, USED).items():
                report.add("megabytes", f"{name}_after_1m", [size])
            speed = _compare(transport, connection, plan)
            for name, size in _sizes(connection, FRESH).items():
                report.add("megabytes", f"{name}_fresh", [size])
    report.add("ratios", "after_1m_vs_fresh", paired(speed[USED], speed[FRESH]))
    report.add("messages_per_s", "receive_after_1m", speed[USED])
    report.add("messages_per_s", "receive_fresh", speed[FRESH])
    report.settings["scale"]["passed"] = plan.passed
    report.settings["bloat"] = {"rounds": plan.bloat_rounds, **AS_IN_PRODUCTION}


def _pass(url: str, transport: QueueTransport, count: int) -> None:
    """One sends while the other receives, a few batches apart."""
    ahead = threading.Semaphore(LEAD)
    sent = threading.Semaphore(0)
    failures: list[BaseException] = []
    stopping = threading.Event()

    def send() -> None:
        try:
            with peers.connect(url) as connection:
                for _ in range(count // BATCH):
                    ahead.acquire()
                    if stopping.is_set():
                        return
                    fill(connection, USED, BATCH)
                    sent.release()
        except BaseException as error:
            failures.append(error)
        finally:
            sent.release()

    sender = threading.Thread(target=send, name="sender", daemon=True)
    sender.start()
    try:
        received = 0
        while received < count:
            sent.acquire()
            if failures:
                raise failures[0]
            received += _receive(transport, USED, BATCH)
            ahead.release()
    finally:
        stopping.set()
        ahead.release()
        sender.join()


def _compare(transport: QueueTransport, connection: Any, plan: Plan) -> dict[str, list[float]]:
    speed: dict[str, list[float]] = {USED: [], FRESH: []}
    for number in range(plan.bloat_rounds + 1):
        for queue in speed:
            fill(connection, queue, COMPARED)
        watch = Stopwatch()
        for turn in range(COMPARED // BATCH):
            for queue in (USED, FRESH) if (number + turn) % 2 else (FRESH, USED):
                watch.time(queue, partial(_receive, transport, queue, BATCH))
        if number:  # the first round only warms up
            for queue, values in speed.items():
                values.append(COMPARED / watch.seconds[queue])
    return speed


def _receive(transport: QueueTransport, queue: str, batch: int) -> int:
    claim = transport.claim(queue, OWNER, batch)
    if claim is None:
        raise RuntimeError(f"{queue}: nothing was there to be received")
    transport.claims.complete(Completion(claim, read=None))
    return claim.messages


def _sizes(connection: Any, queue: str) -> dict[str, float]:
    """Megabytes of each table that receiving writes to, and of its indexes."""
    found: dict[str, float] = {}
    for name, table in {"queue": queue, "claimed": f"{queue}.Claimed", "queue_claims": "QueueClaims"}.items():
        query = "SELECT pg_table_size(to_regclass(%s)), pg_indexes_size(to_regclass(%s))"
        quoted = f'"{table}"'
        rows, indexes = connection.execute(query, (quoted, quoted)).fetchone()
        found |= {f"{name}_table": rows / 1e6, f"{name}_indexes": indexes / 1e6}
    connection.commit()
    return found
