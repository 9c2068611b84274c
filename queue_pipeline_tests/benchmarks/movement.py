"""Messages in, across and out on PostgreSQL: send beside COPY, claim beside a move inside the database."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from queue_pipeline.transport import Claim, Operation, OutgoingMessage, QueueTransport
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.dialect import Row
from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.plan import Plan, say
from queue_pipeline_tests.benchmarks.report import Report, paired
from queue_pipeline_tests.benchmarks.server import outside_transaction, wal_position
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch

OWNER = "bench"
LEASE_SECONDS = 3600

OURS = ("sent", "results")
THEIRS = ("copied", "moved")


class Movement:
    """The transport of ours and the limits through psycopg, by turns, on tables of the same make."""

    def __init__(self, transport: QueueTransport, connection: Any, plan: Plan) -> None:
        self._transport = transport
        self._connection = connection
        self._plan = plan

    def measure(self, messages: list[OutgoingMessage], report: Report) -> None:
        """Rounds of everything after a short one that only warms up."""
        self._transport.install("sent", plain_queues=["results", *THEIRS])
        warm_up = messages[: self._plan.warm_up_rows]
        say(f"warming up with {len(warm_up):,} messages")
        self._round(0, warm_up, peers.copy_rows(self._rows(warm_up)))
        copy_rows = peers.copy_rows(self._rows(messages))
        rounds: list[Stopwatch] = []
        for number in range(1, self._plan.rounds + 1):
            rounds.append(self._round(number, messages, copy_rows))
            say(f"round {number} of {self._plan.rounds}: {rounds[-1].in_short(len(messages))}")
        _tell(rounds, len(messages), report)

    def _round(self, number: int, messages: list[OutgoingMessage], copy_rows: Sequence[peers.CopyRow]) -> Stopwatch:
        watch = Stopwatch(lambda: wal_position(self._connection))
        operations = [Operation("results", message) for message in messages]
        tables = ", ".join(f'"{name}"' for name in ("sent.Claimed", "QueueClaims", *OURS, *THEIRS))
        outside_transaction(self._connection, f"TRUNCATE {tables}")
        # A message is usually claimed soon after it was sent: the checkpoint comes before both, not between.
        outside_transaction(self._connection, "CHECKPOINT")
        _in_turn(
            number,
            lambda: watch.time("send", lambda: self._transport.send("sent", messages)),
            lambda: watch.time("copy", lambda: peers.copy_in(self._connection, "copied", copy_rows)),
        )
        outside_transaction(self._connection, "VACUUM (ANALYZE) sent, copied")
        claims = self._claim_and_move(number, watch)
        watch.time("complete", lambda: complete_all(self._transport, claims, operations))
        return watch

    def _claim_and_move(self, number: int, watch: Stopwatch) -> list[Claim]:
        """Batch by batch in turn: both see the same machine, whatever else it does."""
        claims: list[Claim] = []
        queue = self._transport.resolve("sent")
        left = True

        def claim() -> None:
            nonlocal left
            taken = watch.time("claim", lambda: claim_one(self._transport, queue.canonical, self._plan.batch))
            claims.extend([taken] if taken else [])
            left = left and taken is not None

        def move() -> None:
            watch.time("move", lambda: peers.move(self._connection, *THEIRS, self._plan.batch))

        while left:
            _in_turn(number, claim, move)
        return claims

    def _rows(self, messages: list[OutgoingMessage]) -> list[Row]:
        """Checked, deduplicated and encoded, as a send has them on their way."""
        (shipment,) = self._transport.sender.prepare(Operation("results", message) for message in messages)
        return list(shipment.rows())


def claim_one(transport: QueueTransport, queue: str, batch: int) -> Claim | None:
    """The next batch, held until the end of the round."""
    return transport.claims.claim(transport.resolve(queue), OWNER, batch, lease_seconds=LEASE_SECONDS)


def complete_all(transport: QueueTransport, claims: Sequence[Claim], operations: Sequence[Operation]) -> None:
    """End every claim with as many results as it has messages."""
    start = 0
    for claim in claims:
        transport.claims.complete(Completion(claim, operations[start : start + claim.messages], read=None))
        start += claim.messages


def _in_turn(number: int, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """Who goes first changes from round to round."""
    for work in (ours, theirs) if number % 2 else (theirs, ours):
        work()


def _tell(rounds: Sequence[Stopwatch], count: int, report: Report) -> None:
    speed = {name: [count / watch.seconds[name] for watch in rounds] for name in rounds[0].seconds}
    report.add("ratios", "send_vs_copy", paired(speed["send"], speed["copy"]))
    report.add("ratios", "claim_vs_move", paired(speed["claim"], speed["move"]))
    for name in ("copy", "send", "move", "claim", "complete"):
        report.add("messages_per_s", name, speed[name])
    for name in ("copy", "send", "move", "claim", "complete"):
        report.add("wal_bytes", name, [watch.bytes[name] / count for watch in rounds])
    # The pipeline part knows better what a whole pipeline writes.
    taken_and_done = [(watch.bytes["claim"] + watch.bytes["complete"]) / count for watch in rounds]
    report.wal = statistics.median(taken_and_done)
