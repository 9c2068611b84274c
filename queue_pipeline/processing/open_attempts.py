"""Batches in open transactions: received, transformed and written without a claim, while that goes well and fast.

A claim writes every message once more and deletes it once more, which buys time: it outlives its process, counts
failures, can be halved. A batch of a second that does not fail needs none of that. So a run claims its first batch, and
goes on with open batches while they are quick; whatever is out of the ordinary is rolled back and left to a claim.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from queue_pipeline.processing.batch_report import BatchReport
from queue_pipeline.processing.claimed_batch import ClaimedBatch
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.recovery import Attempted, Recovery
from queue_pipeline.transport.database import CommitUnknownError
from queue_pipeline.transport.dialect import Bounds
from queue_pipeline.transport.errors import LayoutChangedError, QueuePipelineError, TransientDatabaseError
from queue_pipeline.transport.messages import TransactionMode
from queue_pipeline.transport.transport import QueueTransport

LONGEST_SECONDS = 10.0
"""A transaction that stays open for longer holds up the database's own housekeeping."""
FIRST_MESSAGES = 5_000
"""A claim writes more than an open batch: the first ones, of which nothing is known yet, are kept small."""
MODES = (TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, TransactionMode.TRANSACTION_SCOPE)

logger = logging.getLogger(__name__)


class _LeftInQueue(Exception):
    """Raised to roll back a batch that is to be claimed."""


def share(left: int, slots: int, most: int) -> int:
    """How many of the messages that are left the next batch takes, so that all slots end at about the same time."""
    return min(most, max(FIRST_MESSAGES, -(-left // slots)))


class OpenAttempts:
    """Tries the next batch of a queue in an open transaction; safe to use from several threads."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport, recovery: Recovery, owner: str) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._recovery = recovery
        self._owner = owner
        self._queue = transport.resolve(pipeline.input_queue)
        self._bounds = Bounds(pipeline.batch_messages, min(pipeline.batch_bytes, pipeline.executor_bytes))
        self._is_served = self._may_ever()
        self._is_due = False
        self._has_begun = False
        self._taken_to = 0
        """The newest row version that a batch of this run had; batches in several threads may raise it at once, and
        whichever wins is good enough for a guess.
        """

    @property
    def first_messages(self) -> int | None:
        """How many messages the first batches may have, which are claimed to see how it goes; None: as any other."""
        return FIRST_MESSAGES if self._is_served and not self._has_begun else None

    @property
    def is_due(self) -> bool:
        """Whether the next batch is to be taken like this: not before a claimed one went well and fast.

        What kills its process was claimed then, by the next run at the latest, and is counted.
        """
        return self._is_due

    def learn(self, attempted: Attempted | None, seconds: float) -> None:
        """Decide about the next batch by how the last one went, whichever way it was taken."""
        self._has_begun = True
        reports = attempted.reports if attempted is not None else ()
        went_well = bool(reports) and attempted is not None and attempted.failure is None and not attempted.again
        self._is_due = (
            self._is_served
            and went_well
            and seconds < LONGEST_SECONDS
            and not any(self._is_large(report) for report in reports)
        )

    def saw(self, row_version: int) -> None:
        """A batch of this run holds messages up to this one."""
        self._taken_to = max(self._taken_to, row_version)

    def claim_next(self) -> None:
        """Have the next batch claimed: somebody left one behind, or the transform may be slow now."""
        self._is_due = False

    def attempt(self) -> Attempted | None:
        """Try the next batch; None when there was none that could be tried like this.

        What it raises was no message's fault, and the messages are in their queue.
        """
        batch: ClaimedBatch | None = None
        try:
            with self._transport.open_batches.take(
                self._queue, self._owner, self._next_bounds(), self._pipeline.lease_seconds
            ) as opened:
                if opened is None:
                    return None
                self.saw(opened.messages["row_version"][-1].as_py())
                batch = self._recovery.processor.read_open(opened)
                if opened.forwards or batch.unreadable or batch.came_back:
                    raise _LeftInQueue
                report = self._recovery.processor.work(batch)
                written = time.monotonic()
        except (_LeftInQueue, TransientDatabaseError, LayoutChangedError):
            return None
        except CommitUnknownError as error:
            logger.warning("pipeline %s: %s; nothing is lost or done twice", self._pipeline.name, error)
            return None
        except Exception as error:
            if batch is None or self._recovery.is_nobodys_fault(error):
                raise
            return self._go_on_claimed(batch, error)
        self._recovery.succeeded()
        seconds = report.complete_seconds + time.monotonic() - written
        return Attempted([replace(report, complete_seconds=seconds)])

    def _next_bounds(self) -> Bounds:
        """A share of what is left, by a guess: gaps between row versions make it too large, which does no harm."""
        newest = self._transport.open_batches.newest(self._queue)
        left = 0 if newest is None else newest - self._taken_to
        return self._bounds._replace(messages=share(left, self._pipeline.slots, self._bounds.messages))

    def _go_on_claimed(self, batch: ClaimedBatch, error: Exception) -> Attempted:
        """Claim the messages of a batch that failed, so that the failure is counted and seen to."""
        failed = batch.claim
        claim = self._transport.claim(
            self._pipeline.input_queue,
            self._owner,
            failed.messages,
            self._bounds.bytes,
            self._pipeline.lease_seconds,
        )
        if claim is None:
            return Attempted()
        if (claim.first_row_version, claim.messages) != (failed.first_row_version, failed.messages):
            return Attempted(again=(claim,))
        try:
            return self._recovery.recover(claim, error, replace(batch, claim=claim, opened=None))
        except BaseException:
            self._release(claim.claim_id)
            raise

    def _release(self, claim_id: str) -> None:
        try:
            held = self._transport.claims.find(claim_id)
            if held is not None:
                self._transport.claims.release(held)
        except QueuePipelineError as error:
            logger.warning("claim %s could not be released and waits for its lease: %s", claim_id, error)

    def _may_ever(self) -> bool:
        pipeline = self._pipeline
        if pipeline.transaction_mode not in MODES or not self._transport.open_batches.serves(self._queue):
            return False
        if pipeline.travel == "auto" and self._transport.settings is not None:
            return pipeline.batch_messages < pipeline.executor_messages
        return pipeline.travel != "executors"

    def _is_large(self, report: BatchReport) -> bool:
        """Whether the next one may be for the executors."""
        large = self._pipeline.travel == "auto" and report.bytes >= self._pipeline.executor_bytes
        return report.by_executors or large
