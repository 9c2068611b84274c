"""One queue, more and more processes that receive from it."""

from __future__ import annotations

from functools import partial
from typing import Any

from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks.backlogs import fill, settle
from queue_pipeline_tests.benchmarks.consumers.crew import Crew
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.server import outside_transaction
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch

COUNTS = (1, 2, 4, 8)
QUEUE = "shared"
BATCH = 500


def tell_receivers(url: str, transport: QueueTransport, connection: Any, plan: Plan, report: Report) -> None:
    """Messages a second that all of them claim and complete together."""
    transport.install(QUEUE, plain_queues=[])
    speed: dict[int, list[float]] = {count: [] for count in COUNTS}
    with Crew("claims", "Claims", url, max(COUNTS)) as crew:
        for number in range(plan.side_rounds + 1):
            for count in COUNTS:
                outside_transaction(connection, f'TRUNCATE {QUEUE}, "{QUEUE}.Claimed", "QueueClaims"')
                fill(connection, QUEUE, plan.receiver_rows)
                settle(connection, QUEUE)
                watch = Stopwatch()
                done = watch.time("drain", partial(crew.drain, size=count, queue=QUEUE, batch=BATCH))
                if done != plan.receiver_rows:
                    raise RuntimeError(f"{count} receivers took {done:,} of {plan.receiver_rows:,} messages")
                # The first round warms every process up.
                speed[count] += [done / watch.seconds["drain"]] if number else []
    for count, values in speed.items():
        report.add("messages_per_s", f"receivers_{count}", values)
    say(", ".join(f"{count} receivers {values[-1]:,.0f}/s" for count, values in speed.items()))
