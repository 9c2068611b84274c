"""What is sent about messages that were processed: copies for the audit queue, and acknowledgements."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.staging import PartitionResults
from queue_pipeline.processing.results.acknowledgement import acknowledgements
from queue_pipeline.processing.results.audit import audit_copies


class Confirming(BaseModel):
    """What the copies of a batch have in common, and which messages get none: those that failed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    audit_queue: str
    audit_time_to_live: float | None
    endpoint: str
    started: datetime
    ended: datetime
    refused: list[int]


def confirmations(rows: Table, confirming: Confirming) -> PartitionResults:
    """The copies of a partition's messages, which are rows as they were read."""
    refused = pc.is_in(rows["row_version"], pa.array(confirming.refused, pa.int64()))
    done = rows.filter(pc.invert(refused))
    if not done.num_rows:
        return PartitionResults()
    confirmed = acknowledgements(done, confirming.ended, confirming.endpoint)
    audited = audit_copies(
        confirming.audit_queue,
        done,
        confirming.started,
        confirming.ended,
        confirming.endpoint,
        confirming.audit_time_to_live,
    )
    return PartitionResults([*confirmed, audited])
