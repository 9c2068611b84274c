"""Completes a claim with what was staged for it where no run does: at the end of a job, or of a micro-batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from queue_pipeline.processing.claimed_batch import read_rows, unreadable_rows
from queue_pipeline.processing.executors.manifest import Manifest
from queue_pipeline.processing.failed_copies import failed_copies, failed_in_place, reasons_of
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.nginn.rows import is_nginn


@dataclass(frozen=True, slots=True)
class _Receiver:
    """Who processed the messages of a queue, as copies in the error queue tell it."""

    endpoint_name: str
    error_queue: str
    input_queue: str


def complete_staged(transport: QueueTransport, claim: Claim, manifest: Manifest) -> None:
    """Send what tasks staged and end the claim, in one transaction.

    Messages that failed go to the error queue for their own reasons, and rows whose headers cannot be read as they are;
    those of an NGinn queue stay in it as failed ones.
    """
    unreadable = [row.row_version for row in unreadable_rows(transport.claim_reader, claim)]
    failed = read_rows(transport.claim_reader, claim, [one.row_version for one in manifest.failures])
    reasons = reasons_of(manifest.failures)
    if is_nginn(transport.resolve(claim.queue)):
        copies = failed_in_place(failed, reasons)
    else:
        receiver = _Receiver(claim.queue, transport.error_queue, claim.queue)
        copies = failed_copies(receiver, claim.queue, failed, reasons, datetime.now(UTC))
    transport.claims.complete(
        claim, ready=copies.ready, dead_letters=unreadable, staged=manifest.piles, marks=copies.marks
    )
