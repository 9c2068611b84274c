"""A run: takes batch after batch until its queue is empty, lingers for more, and ends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial

from queue_pipeline.errors import ClaimLostError, DatabaseUnavailableError
from queue_pipeline.processing.arrow import keep_memory
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.attempt_threads import AttemptThreads, InWork
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.run.state import AskForSlots, End, RunView, Step, Stop, Take, Wait, next_step
from queue_pipeline.processing.run.take import Search, slots_of, take_batch
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline.transport.messages.message import TransactionMode
from queue_pipeline.transport.operations.process_identity import this_process
from queue_pipeline.transport.transport import QueueTransport

LOOK_AROUND_SECONDS = 1.0
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


class PipelineRun:
    """Takes and processes batches of one pipeline under one owner; `next_step` decides what is next."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        owner: str,
        recovery: Recovery,
        *,
        slots: int,
        on_attempt: Callable[[Attempted], None] = lambda _: None,
        on_interrupt: Callable[[], None] = lambda: None,
        code_change: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Attempts run in threads, up to `slots` at a time; everything else runs in the caller's thread.

        `on_interrupt` stops the computations when the run is terminated. `code_change` names a module whose file is no
        longer the loaded one; it is asked before every batch.
        """
        self._pipeline = pipeline
        self._transport = transport
        self._recovery = recovery
        self._slots = slots
        # An attempt may compute twice: the batch, and a probe that asks whose failure it was.
        self._longest_attempt = 2 * pipeline.batch_seconds + HANG_GRACE_SECONDS
        self._on_attempt = on_attempt
        self._on_interrupt = on_interrupt
        self._code_change = code_change
        self._slots_held = slots_of(pipeline, transport, owner, this_process())
        self._mover = DueMover([(transport, pipeline.input_queue)])
        self._heartbeat = Heartbeat(transport.claims, pipeline.lease_seconds, self._slots_held)
        self._threads = AttemptThreads(f"{pipeline.name} batch")
        self._take = partial(take_batch, pipeline, transport, owner, slots)
        self._search = Search(transport.claims, self._take)
        self._in_work: dict[Future[Attempted], InWork] = {}
        self._waiting: list[Claim] = []
        self._stopping: RunEnd | None = None
        self._asked_to_end: str | None = None
        self._found_none = False
        self._deadline = self._idle_since = self._not_before = self._next_look = 0.0
        self._longest_wait = pipeline.peek_delay

    def run(self, claims: Sequence[Claim] = ()) -> RunEnd:
        """Process the given claims, then the queue; every claim is completed or released at the end.

        A run that gets no slot ends at once. After a failure that no message causes, it takes nothing more.
        """
        keep_memory()
        self._waiting = list(claims)
        self._idle_since = time.monotonic()
        self._deadline = self._idle_since + self._pipeline.max_run_seconds
        with self._heartbeat:
            for claim in claims:
                self._heartbeat.hold(claim)
            try:
                self._look_around()
                while not isinstance(step := next_step(self._view()), End):
                    self._carry_out(step)
                return self._stopping or RunEnd(step.reason)
            except BaseException:
                self._recovery.stop()
                self._on_interrupt()
                raise
            finally:
                # Also after an interrupt, which is no Exception: others can take the claims before their leases end.
                in_work = [work.claim for work in self._in_work.values()]
                self._heartbeat.release([*self._heartbeat.held, *in_work, *self._left_over()])
                self._slots_held.release()
                self._threads.end()

    def _view(self) -> RunView:
        """What is known now. The code is compared before every batch."""
        is_stopping = self._stopping is not None
        reason = None if is_stopping else self._asked_to_end
        if reason is None and not is_stopping and (module := self._code_change()) is not None:
            reason = f"the code changed: {module}"
        return RunView(
            now=time.monotonic(),
            deadline=self._deadline,
            max_run_seconds=self._pipeline.max_run_seconds,
            not_before=self._not_before,
            idle_since=self._idle_since,
            linger_seconds=self._pipeline.linger_seconds,
            longest_wait=self._longest_wait,
            slots=self._slots,
            held=self._slots_held.held,
            in_work=len(self._in_work),
            waiting=len(self._waiting),
            is_isolating=any(work.claim.isolated for work in self._in_work.values()),
            has_isolated=any(claim.isolated for claim in self._waiting),
            is_careful=self._recovery.limit.is_on or self._recovery.judge.is_searching,
            found_none=self._found_none,
            is_stopping=is_stopping,
            reason_to_stop=reason,
        )

    def _carry_out(self, step: Step) -> None:
        match step:
            case Stop(reason):
                self._stop(RunEnd(reason))
            case AskForSlots(slots):
                self._ask_for_slots(slots)
            case Take():
                self._begin_next()
            case Wait(seconds, is_idle):
                self._wait(seconds)
                if not is_idle:
                    self._idle_since = time.monotonic()

    def _stop(self, ended: RunEnd) -> None:
        """Take nothing more, and say so at once: others may take what waits while the last batches are finished."""
        self._stopping = ended
        self._slots_held.end(ended.reason)

    def _ask_for_slots(self, slots: int) -> None:
        """All slots of the run are in use: a run grows when there is work and another ends."""
        held, in_work = self._slots_held.take(slots), len(self._in_work)
        if not held and not in_work:
            self._stop(RunEnd(self._slots_held.refusal()))
        self._found_none = held <= in_work

    def _begin_next(self) -> None:
        claim = self._next()
        if claim is None:
            # One slot to look for more in is enough; in the others another run may find work.
            self._slots_held.keep(len(self._in_work) + 1)
            self._found_none = True
            return
        if self._in_work and claim.isolated:
            # What kills Spark or this process must be alone with it.
            self._heartbeat.hold(claim)
            self._waiting.insert(0, claim)
            return
        # An unreliable batch is gone from the database once it was read: there is no lease to renew.
        if self._pipeline.transaction_mode is not TransactionMode.UNRELIABLE:
            self._heartbeat.hold(claim)
        until = time.monotonic() + self._longest_attempt
        self._in_work[self._threads.submit(self._recovery.attempt, claim)] = InWork(claim, until)

    def _next(self) -> Claim | None:
        """What is tried next; messages that wait for their verdict get it once nothing else is left."""
        judge = self._recovery.judge
        if judge.is_searching:
            claim = self._search.pick(self._waiting, self._heartbeat)
        else:
            self._search.end()
            claim = self._waiting.pop(0) if self._waiting else self._take()
        if claim is None and not self._in_work:
            self._waiting += judge.nothing_left()
            claim = self._waiting.pop(0) if self._waiting else None
        return claim

    def _wait(self, seconds: float) -> None:
        self._found_none = False
        if self._stopping is not None:
            # The last batch may take long, and nothing more is looked for in the other slots.
            self._slots_held.keep(len(self._in_work))
        if self._in_work:
            self._waiting[:0] = self._finish_some(seconds)
            self._leave_hung()
        else:
            time.sleep(seconds)
        self._look_around()

    def _finish_some(self, seconds: float) -> list[Claim]:
        """Wait some time for the next attempts to end; returns what is to be tried next, oldest first."""
        again: list[Claim] = []
        done, _ = wait(self._in_work, timeout=seconds, return_when=FIRST_COMPLETED)
        for future in done:
            claim, error = self._in_work.pop(future).claim, future.exception()
            if error is None:
                again += self._take_note(claim, future.result())
                continue
            is_lost = isinstance(error, ClaimLostError)
            if is_lost:
                logger.warning("%s", error)
            # In an NGinn queue others may have taken only some messages of a lost claim: the rest is free for the next.
            self._heartbeat.release([claim])
            if not is_lost and (self._stopping is None or self._stopping.failure is None):
                self._stop(RunEnd("a batch failed", error, claim))
        return sorted(again, key=lambda claim: claim.first_row_version)

    def _take_note(self, claim: Claim, attempted: Attempted) -> Sequence[Claim]:
        """An attempt ended: hold what is left of its claim; returns what is to be tried next."""
        self._heartbeat.let_go(claim)
        for part in (*attempted.again, *attempted.later):
            self._heartbeat.hold(part)
        if attempted.failure is not None:
            self._not_before = time.monotonic() + self._recovery.limit.pause_seconds
        self._on_attempt(attempted)
        if attempted.error_for_all is not None and self._stopping is None:
            self._stop(RunEnd(FAILS_FOR_ALL, attempted.error_for_all, claim))
        return attempted.again

    def _leave_hung(self) -> None:
        """Give up attempts that do not return: a failure is counted, and the run ends. A late completion is refused."""
        now = time.monotonic()
        for future, work in list(self._in_work.items()):
            if future.done() or now < work.until:
                continue
            del self._in_work[future]
            claim, seconds = work.claim, self._longest_attempt
            logger.error("claim %s of %s: an attempt did not end in %g s", claim.claim_id, claim.queue, seconds)
            if not work.hung:
                again = InWork(claim, now + HANG_GRACE_SECONDS, hung=True)
                self._in_work[self._threads.submit(self._recovery.hung, claim)] = again
            if self._stopping is None:
                self._stop(RunEnd(f"an attempt did not end in {seconds:g} s; the next run goes on"))

    def _look_around(self) -> None:
        """What a run does beside its batches: move due messages, share the rate limit, learn that it has to end."""
        self._longest_wait = min(self._pipeline.peek_delay, self._mover.poll())
        now = time.monotonic()
        if self._stopping is not None or now < self._next_look:
            return
        self._next_look = now + LOOK_AROUND_SECONDS
        try:
            self._recovery.limit.look()
            is_paused = self._pipeline.name in self._transport.pauses.list()
            self._asked_to_end = "the pipeline is paused" if is_paused else self._slots_held.ending()
        except DatabaseUnavailableError as error:
            # Batches in work find out by themselves, and say what became of them; so does the next claim.
            logger.warning("pipeline %s: whether it is paused or to end is not known: %s", self._pipeline.name, error)

    def _left_over(self) -> list[Claim]:
        """What attempts left to be tried that ended after the run did."""
        ended = [future for future in self._in_work if future.done() and not future.exception()]
        return [claim for future in ended for claim in (*future.result().again, *future.result().later)]
