"""Receive mode: a run takes batch after batch until its queue is empty, lingers for more, and ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from queue_pipeline.processing.arrow import keep_memory
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.attempt_threads import AttemptThreads
from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.processing.run.judge import Judge
from queue_pipeline.processing.run.rate_limit import RateLimit
from queue_pipeline.processing.run.recovery import Attempted
from queue_pipeline.processing.run.search import Search
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline.transport.errors import ClaimLostError, DatabaseUnavailableError, QueuePipelineError
from queue_pipeline.transport.messages import TransactionMode
from queue_pipeline.transport.operations.process_identity import this_process
from queue_pipeline.transport.operations.slots import RunSlots
from queue_pipeline.transport.transport import QueueTransport

LINGER_PEEK_SECONDS = 0.2
"""How often a lingering run looks: it is awake anyway, and a look costs a millisecond."""
LOOK_AROUND_SECONDS = 1.0
SMALLEST_SHARE = 5_000
"""A batch costs Spark a tenth of a second before its first message; smaller shares would cost more than they save."""
HANG_GRACE_SECONDS = 120.0
"""How much longer than its two limits of `batch_seconds` an attempt may take: Spark's start, reading and completing."""
FAILS_FOR_ALL = "the transform fails on every batch"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Why a run stopped taking batches, and the batch that failed if one did."""

    reason: str
    failure: BaseException | None = None
    failed_claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class InWork:
    """A claim that a thread works on, and until when it is waited for."""

    claim: Claim
    until: float
    hung: bool = False
    """Whether an attempt on it never returned, and the thread only sees to its messages."""


def take_batch(pipeline: QueuePipeline, transport: QueueTransport, owner: str, slots: int) -> Claim | None:
    """Claim the next batch of a pipeline, if there is one; the last backlog is shared among the slots of the run."""
    messages = pipeline.batch_messages
    if slots > 1 and messages > SMALLEST_SHARE:
        messages = share(transport.peek(pipeline.input_queue, slots * messages), slots, messages)
    return transport.claim(pipeline.input_queue, owner, messages, pipeline.batch_bytes, pipeline.lease_seconds)


def share(waiting: int, slots: int, most: int) -> int:
    """How many of the waiting messages the next batch takes, so that all slots end at about the same time."""
    return min(most, max(SMALLEST_SHARE, -(-waiting // slots)))


def slots_of(pipeline: QueuePipeline, transport: QueueTransport, owner: str, process: str = "") -> RunSlots:
    """The slots of a run among all that a pipeline's queue has: none yet."""
    queue = transport.resolve(pipeline.input_queue)
    return RunSlots(transport.slots, queue, owner, pipeline.max_concurrency, pipeline.lease_seconds, process)


class PipelineRun:
    """Takes and processes batches of one pipeline under one owner."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        owner: str,
        attempt: Callable[[Claim], Attempted],
        *,
        slots: int,
        hung: Callable[[Claim], Attempted] | None = None,
        judge: Judge | None = None,
        limit: RateLimit | None = None,
        on_attempt: Callable[[Attempted], None] = lambda _: None,
        on_interrupt: Callable[[], None] = lambda: None,
        code_change: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`attempt` is called in threads, up to `slots` at a time, or as many as there are slots for it in the queue;
        the rest is called in the caller's thread.

        `judge` knows of messages that wait until others were tried. `hung` counts a failure of a batch whose attempt
        did not return. `on_interrupt` stops what the threads are at when the run is terminated. `code_change` names a
        module whose code is not the loaded one any more; it is asked before every batch, because the next one is for
        the new code.
        """
        address = transport.resolve(pipeline.input_queue).canonical
        self._pipeline = pipeline
        self._transport = transport
        self._owner = owner
        self._attempt = attempt
        self._slots = slots
        self._hung = hung
        self._judge = judge
        # An attempt may compute twice: the batch, and a probe that asks whose failure it was.
        self._longest_attempt = 2 * pipeline.batch_seconds + HANG_GRACE_SECONDS
        self._limit = limit or RateLimit(pipeline.retries, transport.failures, address)
        self._not_before = 0.0
        self._on_attempt = on_attempt
        self._on_interrupt = on_interrupt
        self._code_change = code_change
        self._slots_held = slots_of(pipeline, transport, owner, this_process())
        self._mover = DueMover([(transport, pipeline.input_queue)])
        self._in_work: dict[Future[Attempted], InWork] = {}
        self._search = Search(transport.claims, self._take)
        self._stopping: RunEnd | None = None

    def run(self, claims: Sequence[Claim] = ()) -> RunEnd:
        """Process the given claims, then all that there is; every claim is completed or released at the end.

        A run that finds no slot in the queue ends at once. After a failure that no message is at fault of nothing more
        is taken; batches in work are finished.
        """
        keep_memory()
        waiting = list(claims)
        deadline = time.monotonic() + self._pipeline.max_run_seconds
        idle_since = time.monotonic()
        next_look = 0.0
        threads = AttemptThreads(f"{self._pipeline.name} batch")
        with Heartbeat(self._transport.claims, self._pipeline.lease_seconds, self._slots_held) as heartbeat:
            for claim in waiting:
                heartbeat.hold(claim)
            try:
                while True:
                    # Nothing below waits for longer, so that due messages are on time.
                    pause = min(self._pipeline.peek_delay, self._mover.poll())
                    now = time.monotonic()
                    if self._stopping is None and now >= deadline:
                        self._stop(RunEnd(f"max_run_seconds ({self._pipeline.max_run_seconds:g} s) are over"))
                    if self._stopping is None and now >= next_look:
                        self._look_around()
                        next_look = now + LOOK_AROUND_SECONDS
                    self._fill(threads, waiting, heartbeat)
                    if self._stopping is not None:
                        # The last batch may take long, and nothing more is looked for in the other slots.
                        self._slots_held.keep(len(self._in_work))
                    if self._in_work:
                        waiting[:0] = self._finish_some(heartbeat, pause)
                        self._leave_hung(threads)
                        idle_since = time.monotonic()
                    elif self._stopping is not None:
                        return self._stopping
                    elif waiting or time.monotonic() < self._not_before:
                        time.sleep(max(0.0, min(self._not_before - time.monotonic(), pause)))
                        idle_since = time.monotonic()
                    elif time.monotonic() - idle_since >= self._pipeline.linger_seconds:
                        return RunEnd("the queue is empty")
                    else:
                        time.sleep(min(pause, LINGER_PEEK_SECONDS))
            except BaseException:
                self._on_interrupt()
                raise
            finally:
                # Also after an interrupt, which is no Exception: whoever comes next need not wait for the lease.
                in_work = [work.claim for work in self._in_work.values()]
                self._release([*heartbeat.held, *in_work, *self._left_over()], heartbeat)
                self._slots_held.release()
                threads.end()

    def _fill(self, threads: AttemptThreads, waiting: list[Claim], heartbeat: Heartbeat) -> None:
        """Put a batch in every free slot, as far as there are batches."""
        while not self._is_stopping() and time.monotonic() >= self._not_before and self._has_slot():
            if self._in_work and any(claim.isolated for claim in waiting):
                return
            claim = self._next(waiting, heartbeat)
            if claim is None:
                # One slot to look for more in is enough; in the others somebody else may find work.
                self._slots_held.keep(len(self._in_work) + 1)
                return
            # An unreliable batch is gone from the database once it was read: there is no lease to renew.
            if self._pipeline.transaction_mode is not TransactionMode.UNRELIABLE:
                heartbeat.hold(claim)
            if claim.isolated and self._in_work:
                # What kills Spark or this process must be alone with it.
                heartbeat.hold(claim)
                waiting.insert(0, claim)
                return
            until = time.monotonic() + self._longest_attempt
            self._in_work[threads.submit(self._attempt, claim)] = InWork(claim, until)

    def _next(self, waiting: list[Claim], heartbeat: Heartbeat) -> Claim | None:
        """What is tried next; messages that wait for their verdict get it once nothing else is left."""
        if self._is_searching():
            claim = self._search.pick(waiting, heartbeat)
        else:
            self._search.end()
            claim = waiting.pop(0) if waiting else self._take()
        if claim is None and self._judge is not None and not self._in_work:
            waiting += self._judge.nothing_left()
            claim = waiting.pop(0) if waiting else None
        return claim

    def _is_searching(self) -> bool:
        return self._judge is not None and self._judge.is_searching

    def _is_isolating(self) -> bool:
        return any(work.claim.isolated for work in self._in_work.values())

    def _is_stopping(self) -> bool:
        """Whether no further batch is to be begun, for example because another process would do it with newer code."""
        if self._stopping is None and (module := self._code_change()) is not None:
            self._stop(RunEnd(f"the code changed: {module}"))
        return self._stopping is not None

    def _stop(self, ended: RunEnd) -> None:
        """Take nothing more, and say so at once: others may take what waits while the last batches are finished."""
        self._stopping = ended
        self._slots_held.end(ended.reason)

    def _has_slot(self) -> bool:
        """Whether one more batch may be in work, only in a slot of its own; in one slot while the rate is limited, a
        batch is tried alone, or a message that succeeds is searched for: each try may be the last.

        Further slots are asked for when all are in use, so that a run grows when there is work and another ends.
        """
        is_one = self._limit.is_on or self._is_searching() or self._is_isolating()
        slots, at_work = 1 if is_one else self._slots, len(self._in_work)
        if at_work >= slots:
            return False
        if at_work < self._slots_held.held:
            return True
        slots = self._slots_held.take(slots)
        if not slots and not at_work:
            self._stop(RunEnd(self._slots_held.refusal()))
        return at_work < slots

    def _take(self) -> Claim | None:
        return take_batch(self._pipeline, self._transport, self._owner, self._slots)

    def _finish_some(self, heartbeat: Heartbeat, seconds: float) -> list[Claim]:
        """Wait some time for the next attempts to end; returns what is to be tried next, oldest first."""
        again: list[Claim] = []
        done, _ = wait(self._in_work, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in done:
            claim, error = self._in_work.pop(future).claim, future.exception()
            if error is None:
                attempted = future.result()
                heartbeat.let_go(claim)
                for part in (*attempted.again, *attempted.later):
                    heartbeat.hold(part)
                again += attempted.again
                if attempted.failure is not None:
                    self._not_before = time.monotonic() + self._limit.pause_seconds
                self._on_attempt(attempted)
                if attempted.error_for_all is not None and self._stopping is None:
                    self._stop(RunEnd(FAILS_FOR_ALL, attempted.error_for_all, claim))
            elif isinstance(error, ClaimLostError):
                logger.warning("%s", error)
                # Of an NGinn queue, others may have taken some of its messages only: the rest is free for the next.
                self._release([claim], heartbeat)
            else:
                self._release([claim], heartbeat)
                if self._stopping is None or self._stopping.failure is None:
                    self._stop(RunEnd("a batch failed", error, claim))
        return sorted(again, key=lambda claim: claim.first_row_version)

    def _leave_hung(self, threads: AttemptThreads) -> None:
        """Wait no longer for attempts that do not return: their messages are seen to, and the run ends.

        The thread stays behind until its process ends; what it may still complete is refused, for its claim is another.
        """
        now = time.monotonic()
        for future, work in list(self._in_work.items()):
            if future.done() or now < work.until:
                continue
            del self._in_work[future]
            claim, seconds = work.claim, self._longest_attempt
            logger.error("claim %s of %s: an attempt did not end in %g s", claim.claim_id, claim.queue, seconds)
            if self._hung is not None and not work.hung:
                again = InWork(claim, now + HANG_GRACE_SECONDS, hung=True)
                self._in_work[threads.submit(self._hung, claim)] = again
            if self._stopping is None:
                self._stop(RunEnd(f"an attempt did not end in {seconds:g} s; the next run goes on"))

    def _look_around(self) -> None:
        """What a run does beside its batches: share the rate limit, respect a pause and a request to end."""
        try:
            self._limit.look()
            if self._pipeline.name in self._transport.pauses.list():
                self._stop(RunEnd("the pipeline is paused"))
            elif (reason := self._slots_held.ending()) is not None:
                self._stop(RunEnd(reason))
        except DatabaseUnavailableError as error:
            # Batches in work find out by themselves, and say what became of them; so does the next claim.
            logger.warning("pipeline %s: whether it is paused or to end is not known: %s", self._pipeline.name, error)

    def _left_over(self) -> list[Claim]:
        """What attempts left to be tried that ended after the run did."""
        ended = [future for future in self._in_work if future.done() and not future.exception()]
        return [claim for future in ended for claim in (*future.result().again, *future.result().later)]

    def _release(self, claims: Iterable[Claim], heartbeat: Heartbeat) -> None:
        for claim in claims:
            heartbeat.let_go(claim)
            try:
                self._transport.claims.release(claim)
            except ClaimLostError:
                continue
            except QueuePipelineError as error:
                logger.warning(
                    "claim %s of %s could not be released and waits for its lease: %s",
                    claim.claim_id,
                    claim.queue,
                    error,
                )
