"""The transport part: how fast messages move, what a peek costs, what streaming a claim takes in memory."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from queue_pipeline.transport import Claim, Operation, OutgoingMessage, QueueTransport
from queue_pipeline_tests.benchmarks import peers, stream_reader
from queue_pipeline_tests.benchmarks.movement import Movement, claim_one, complete_all
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report, Target, paired
from queue_pipeline_tests.benchmarks.server import (
    outside_transaction,
    private_postgresql,
    stated_settings,
    versions,
)
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.workload import FILL, make_messages, message_size

PEEK_GROWTH = Target(at_most=2)
STREAM_MEMORY_MB = Target(at_most=300)


def run(plan: Plan, report: Report) -> None:
    """Measure on PostgreSQL, then on SQLite for comparison."""
    messages = make_messages(plan.rows)
    report.settings.update(dataclasses.asdict(plan) | dataclasses.asdict(message_size(messages)))
    with (
        private_postgresql() as cluster,
        QueueTransport(cluster.url()) as transport,
        peers.connect(cluster.url()) as connection,
    ):
        report.versions.update(versions(transport, connection))
        report.settings["postgresql"] = stated_settings(connection)
        connection.commit()
        Movement(transport, connection, plan).measure(messages, report)
        measure_peek(transport, connection, plan, report)
        measure_stream(transport, connection, cluster.url(), plan, report)
    measure_sqlite(messages, plan, report)


def measure_peek(transport: QueueTransport, connection: Any, plan: Plan, report: Report) -> None:
    """The same peek on a short queue and on a long one, by turns."""
    backlogs = {"peek_1k": plan.peek_backlog_small, "peek_1m": plan.peek_backlog}
    say(f"peek: filling {plan.peek_backlog:,} messages")
    for queue, count in backlogs.items():
        _fill(transport, connection, queue, count)
    medians: dict[str, list[float]] = {queue: [] for queue in backlogs}
    for number in range(plan.rounds + 1):
        took: dict[str, list[float]] = {queue: [] for queue in backlogs}
        for _ in range(plan.peeks):
            for queue in backlogs:
                start = time.perf_counter()
                transport.peek(queue, plan.peek_cap)
                took[queue].append((time.perf_counter() - start) * 1000)
        if number:  # the first round only warms up
            for queue in backlogs:
                medians[queue].append(statistics.median(took[queue]))
    report.add("ratios", "peek_1m_vs_1k", paired(medians["peek_1m"], medians["peek_1k"]), PEEK_GROWTH)
    for queue in backlogs:
        report.add("milliseconds", queue, medians[queue])


def measure_stream(transport: QueueTransport, connection: Any, url: str, plan: Plan, report: Report) -> None:
    """One large claim, read by another process."""
    say(f"stream: claiming {plan.stream_rows:,} messages at once")
    _fill(transport, connection, "stream", plan.stream_rows)
    claim = claim_one(transport, "stream", plan.stream_rows)
    if claim is None:
        raise RuntimeError("nothing was there to be claimed for the stream")
    answers = [_read_elsewhere(claim, url) for _ in range(plan.side_rounds)]
    if any(answer["messages"] != plan.stream_rows for answer in answers):
        raise RuntimeError(f"the stream of {plan.stream_rows} messages read {answers}")
    report.add("messages_per_s", "stream", [answer["messages"] / answer["seconds"] for answer in answers])
    report.add("memory_mb", "stream_200k", [answer["peak_mb"] for answer in answers], STREAM_MEMORY_MB)
    report.add("memory_mb", "stream_200k_before_reading", [answer["before_mb"] for answer in answers])


def measure_sqlite(messages: list[OutgoingMessage], plan: Plan, report: Report) -> None:
    """The embedded default, for comparison: a file in the temporary directory."""
    rounds = []
    for number in range(1, plan.side_rounds + 1):
        rounds.append(_sqlite_round(messages, plan.batch))
        say(f"round {number} of {plan.side_rounds}: {rounds[-1].in_short(len(messages))}")
    for name in rounds[0].seconds:
        report.add("messages_per_s", name, [len(messages) / watch.seconds[name] for watch in rounds])


def _sqlite_round(messages: list[OutgoingMessage], batch: int) -> Stopwatch:
    watch = Stopwatch()
    operations = [Operation("results", message) for message in messages]
    claims: list[Claim] = []
    with (
        tempfile.TemporaryDirectory(prefix="queue_pipeline-bench-") as folder,
        QueueTransport(f"sqlite:///{Path(folder) / 'queues.db'}") as transport,
    ):
        transport.install("sent", plain_queues=["results"])
        watch.time("sqlite_send", lambda: transport.send("sent", messages))
        while claim := watch.time("sqlite_claim", lambda: claim_one(transport, "sent", batch)):
            claims.append(claim)
        watch.time("sqlite_complete", lambda: complete_all(transport, claims, operations))
    return watch


def _fill(transport: QueueTransport, connection: Any, queue: str, count: int) -> None:
    transport.install(queue, plain_queues=[])
    connection.execute(FILL.format(queue=queue, count=count))
    connection.commit()
    outside_transaction(connection, f"VACUUM (ANALYZE) {queue}")
    outside_transaction(connection, "CHECKPOINT")


def _read_elsewhere(claim: Claim, url: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", stream_reader.__name__],
        input=json.dumps(dataclasses.asdict(claim)),
        env=os.environ | {stream_reader.URL_VARIABLE: url},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"reading the stream failed: {done.stderr.strip()}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
