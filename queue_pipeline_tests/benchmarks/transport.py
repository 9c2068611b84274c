"""The transport part: how fast messages move, what a peek costs, what streaming a claim takes in memory."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from queue_pipeline.transport import Claim, Operation, OutgoingMessage, QueueTransport
from queue_pipeline_tests.benchmarks import stream_reader
from queue_pipeline_tests.benchmarks.backlogs import fill, settle
from queue_pipeline_tests.benchmarks.looks import tell_peeks
from queue_pipeline_tests.benchmarks.movement import Movement, claim_one, complete_all
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.workbench import Workbench
from queue_pipeline_tests.benchmarks.workload import make_messages, message_size


def run(plan: Plan, report: Report, bench: Workbench) -> None:
    """Measure on PostgreSQL, then on SQLite for comparison."""
    messages = make_messages(plan.rows)
    report.settings["transport"] = {
        "rows": plan.rows,
        "rounds": plan.rounds,
        "batch": plan.batch,
        "stream_rows": plan.stream_rows,
        "peek_cap": plan.peek_cap,
        **dataclasses.asdict(message_size(messages)),
    }
    with bench.database("transport", report) as (url, transport, connection):
        Movement(transport, connection, plan).measure(messages, report)
        measure_stream(transport, connection, url, plan, report)
    tell_peeks(bench.backlogs, ("1k", "1m"), plan, report)
    measure_sqlite(messages, plan, report)


def measure_stream(transport: QueueTransport, connection: Any, url: str, plan: Plan, report: Report) -> None:
    """One large claim, read by another process."""
    say(f"stream: claiming {plan.stream_rows:,} messages at once")
    transport.install("stream", plain_queues=[])
    fill(connection, "stream", plan.stream_rows)
    settle(connection, "stream")
    claim = claim_one(transport, "stream", plan.stream_rows)
    if claim is None:
        raise RuntimeError("nothing was there to be claimed for the stream")
    answers = [_read_elsewhere(claim, url) for _ in range(plan.side_rounds)]
    if any(answer["messages"] != plan.stream_rows for answer in answers):
        raise RuntimeError(f"the stream of {plan.stream_rows} messages read {answers}")
    report.add("messages_per_s", "stream", [answer["messages"] / answer["seconds"] for answer in answers])
    report.add("memory_mb", "stream_200k", [answer["peak_mb"] for answer in answers])
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
