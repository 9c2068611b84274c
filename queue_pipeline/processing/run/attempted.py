"""What became of an attempt: the value that recovery gives to the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.failures.decision import Step
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.failed.error_message import Failure


@dataclass(frozen=True, slots=True)
class Attempted:
    """What became of an attempt: batches that ended, those still to be tried, and how it goes on if it failed."""

    reports: Sequence[BatchReport] = ()
    again: Sequence[Claim] = ()
    failure: Failure | None = None
    step: Step | None = None
    error_for_all: Exception | None = None
    """Set when unreliable messages were given up for an error that the next ones would meet too."""
    later: Sequence[Claim] = ()
    """Messages that failed alone and wait for their verdict, while others are tried."""
