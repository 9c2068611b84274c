"""Completes a claim with what was staged for it where no run does: at the end of a job, or of a micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from queue_pipeline.processing.batch.claimed_batch import prepare, read_rows
from queue_pipeline.processing.batch.part_report import outside, row_ranges
from queue_pipeline.processing.batch.staging import TaskReport
from queue_pipeline.processing.results.failed_copies import Consumer, failed_copies, failed_in_place, with_place
from queue_pipeline.processing.results.sorting import ROW_VERSION, strangers
from queue_pipeline.processing.results.table_rows import together, write_tables
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.addresses.address import endpoint_of
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.failed.stack_frames import frame_of


def complete_staged(transport: QueueTransport, claim: Claim, reports: Sequence[TaskReport] = ()) -> None:
    """Send what tasks staged and end the claim, in one transaction; results of messages that it lacks are refused.

    Messages that failed go to the error queue for their own reasons, and rows whose headers cannot be read unchanged;
    those of an NGinn queue stay in it as failed ones.
    """
    report = TaskReport.joined(reports)
    unreadable: list[int] = []
    rows: list[tuple[int, int]] = []
    read = RowsRead()
    for part in transport.claim_reader.read(claim, body=False):
        versions = part.column(ROW_VERSION)
        rows += row_ranges(versions.to_numpy())
        read += RowsRead.of(versions.to_numpy().tolist())
        unreadable += [row.row_version for row in prepare(part)[1]]
    check_rows(claim.queue, report, rows)
    failed = read_rows(transport.claim_reader, claim, [*report.failures])
    reasons = with_place(report.failures, frame_of(complete_staged))
    if transport.layouts.of(transport.resolve(claim.queue)).keeps_failed:
        copies = failed_in_place(failed, reasons)
    else:
        receiver = Consumer(endpoint_of(claim.queue), claim.queue, transport.error_queue)
        copies = failed_copies(receiver, claim.queue, failed, reasons, datetime.now(UTC))
    transport.claims.complete(
        Completion(
            claim,
            (),
            partial(write_tables, transport, together(report.tables)),
            sends=copies.ready,
            unreadable=unreadable,
            staged=report.groups,
            failed=copies.marks,
            read=read,
        )
    )


def check_rows(pipeline: str, report: TaskReport, known: Sequence[tuple[int, int]]) -> None:
    """Refuse results that belong to no message of the claim."""
    stranger = outside(report.rows, known)
    if stranger is not None:
        raise strangers(pipeline, f"row version {stranger}")
