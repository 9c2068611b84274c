"""Whole runs of a pipeline, with retries, halving and error copies; the transform fails at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.transformer import Transformed
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import MessageColumns, TableRows
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.failed.error_message import Failure
from queue_pipeline.transport.messages import headers as wire
from tools.chaos.arena import ERRORS
from tools.chaos.desk import DOOMED, Desk, Doomed, Passing
from tools.chaos.plan import MIXED, correlation_id, forwarded, message_id, number_of

_BATCHES = (1, 10, 60, 250, 600)
_LEASE_SECONDS = 1.5
_COLUMNS = ["id", "row_version", "headers", "body", "message_id", "correlation_id"]
_NAMES = [f"{error.__module__}.{error.__qualname__}" for error in (Doomed, Passing)]
_UNRECOVERABLE = ((), (), (_NAMES[0],), (_NAMES[1],), (_NAMES[0], _NAMES[1]))


class Policy(NamedTuple):
    """What a run draws from the seed."""

    recoverability: Recoverability
    batch_messages: int
    batch_bytes: int
    slots: int
    failing_share: float
    """How often the transform fails for a whole batch."""
    refuses: bool
    """Whether messages that always fail are refused one by one, or fail their batch."""
    fails_for_all: float
    """How often a failure is one that the transform also meets without messages."""


def draw_policy(desk: Desk) -> Policy:
    """A policy: no retries, some, delayed ones, unrecoverable types, rate limits; batches of one and of hundreds."""
    chance = desk.chance
    recoverability = Recoverability(
        immediate_retries=chance.choice((0, 0, 1, 3)),
        delayed_retries=chance.choice((0, 0, 1, 2)),
        delayed_retry_seconds=chance.choice((0.05, 0.3)),
        unrecoverable=chance.choice(_UNRECOVERABLE),
        rate_limit_after=chance.choice((None, None, 5)),
        rate_limit_seconds=0.02,
        alike_failures=chance.choice((1, 3)),
    )
    sizes = (chance.choice(_BATCHES), chance.choice((10_000, 1 << 26, 1 << 26)))
    failing, for_all = chance.choice((0.0, 0.05, 0.2)), chance.choice((0.0, 0.3))
    return Policy(recoverability, *sizes, chance.choice((1, 2)), failing, chance.random() < 0.5, for_all)


class Runner:
    """Runs a pipeline on one stage until its queue is empty or its time is over, then with another policy."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def step(self) -> bool:
        """One run."""
        desk, stage, policy = self.desk, self.desk.stage(), draw_policy(self.desk)
        # Shorter than a person may choose: what matters is that leases end while batches are in work.
        pipeline = self._declare(stage, policy).model_copy(update={"lease_seconds": _LEASE_SECONDS})
        recovery = Recovery(pipeline, desk.transport, Transform(desk, stage, policy), proof="chaos")
        ended = [0]

        def count(attempted: Attempted) -> None:
            ended[0] += len(attempted.reports)
            desk.note("processed", sum(report.messages for report in attempted.reports))
            if attempted.step is not None:
                desk.note(attempted.step.value)

        drain = PipelineRun(
            pipeline,
            desk.transport,
            desk.owner,
            recovery,
            slots=pipeline.slots,
            on_attempt=count,
        )
        drained = drain.run()
        if drained.failure is not None:
            desk.note(f"run ended: {type(drained.failure).__name__}")
        desk.note("runs")
        return ended[0] > 0

    def _declare(self, stage: int, policy: Policy) -> QueuePipeline:
        return QueuePipeline(
            name=f"stage_{stage}",
            input_queue=self.desk.arena.stages[stage],
            transform=lambda messages: messages,
            output_queues=(self.desk.arena.next_queue(stage),),
            batch_messages=policy.batch_messages,
            batch_bytes=policy.batch_bytes,
            max_concurrency=4,
            batches_per_run=policy.slots,
            linger_seconds=0,
            peek_delay=0.1,
            max_run_seconds=4,
            recoverability=policy.recoverability,
            error_queue=ERRORS,
        )


class Transform:
    """What Spark would compute, in plain Python: every message goes to the next queue, and leaves a row."""

    def __init__(self, desk: Desk, stage: int, policy: Policy) -> None:
        self._desk = desk
        self._stage = stage
        self._policy = policy
        self._fails_for_all = False

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """The results of a batch, or one of the failures that the policy asks for."""
        if self._desk.happens(self._policy.failing_share):
            self._fails_for_all = self._desk.happens(self._policy.fails_for_all)
            raise Passing("the service is away \0 for \ud800 now")
        rows = batch.messages.select(_COLUMNS).to_pylist()
        kept: list[tuple[dict[str, str], bytes]] = []
        refused: dict[int, Failure] = {}
        for row in rows:
            headers = wire.decode(row["headers"])
            number = number_of(headers)
            if self._desk.arena.plan.doomed_at(number) == self._stage:
                refused[row["row_version"]] = Failure(DOOMED, "this message always fails")
                continue
            headers = self._checked(headers, number, row)
            kept.append((forwarded(headers, self._stage, self._desk.kind, effect=True), row["body"]))
        if refused and not self._policy.refuses:
            raise Doomed(f"{len(refused)} messages always fail")
        return Transformed(self._ready(kept), refused, [self._effects(kept)] if kept else [])

    def probe(self) -> Exception | None:
        """Whether it fails without messages, too."""
        return Passing("the service is away \0 for \ud800 now") if self._fails_for_all else None

    def answers(self) -> bool:
        """It is always there."""
        return True

    def _checked(self, headers: dict[str, str], number: int, row: dict[str, str]) -> dict[str, str]:
        """Mark a message whose columns were taken from another message's headers."""
        seen = (row["message_id"].replace("-", ""), row["correlation_id"])
        if seen == (message_id(self._stage, number).replace("-", ""), correlation_id(number)):
            return headers
        return {**headers, MIXED: f"id {seen[0]}, correlation {seen[1]}"}

    def _ready(self, kept: Sequence[tuple[dict[str, str], bytes]]) -> list[MessageColumns]:
        if not kept:
            return []
        ids = [headers[wire.MESSAGE_ID] for headers, _ in kept]
        texts = [wire.encode(headers) for headers, _ in kept]
        queue = self._desk.arena.next_queue(self._stage)
        return [MessageColumns(queue, False, ids, [NEVER_EXPIRES] * len(ids), texts, [body for _, body in kept])]

    def _effects(self, kept: Sequence[tuple[dict[str, str], bytes]]) -> TableRows:
        rows = [(number_of(headers), self._stage) for headers, _ in kept]
        return TableRows(self._desk.arena.tables.effects.name, ("number", "stage"), rows)
