"""Stages what is sent about messages that were processed: copies for the audit queue, and acknowledgements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from queue_pipeline.processing.acknowledgement import acknowledgements
from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.audit import audit_copies
from queue_pipeline.processing.envelopes import Failed
from queue_pipeline.processing.executors.outbox_writer import OutboxWriter
from queue_pipeline.processing.executors.settings import ExecutorSettings
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.ready import ReadyMessages


class Confirming(BaseModel):
    """What the copies of a batch have in common, and which messages get none: those that failed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    audit_queue: str
    audit_time_to_live: float | None
    endpoint: str
    started: datetime
    ended: datetime
    refused: list[int]


class ConfirmationWriter(OutboxWriter):
    """Writes rows of messages as they were read."""

    def __init__(self, settings: ExecutorSettings, claim: Claim, job: str, confirming: Confirming) -> None:
        super().__init__(settings, claim, job, completes=False)
        self._confirming = confirming

    def messages(self, rows: Table) -> tuple[Sequence[ReadyMessages], Sequence[Failed]]:
        """The copies of a partition's messages."""
        told = self._confirming
        refused = pc.is_in(rows["row_version"], pa.array(told.refused, pa.int64()))
        done = rows.filter(pc.invert(refused))
        if not done.num_rows:
            return (), ()
        confirmed = acknowledgements(done, told.ended, told.endpoint)
        audited = audit_copies(told.audit_queue, done, told.started, told.ended, told.endpoint, told.audit_time_to_live)
        return [*confirmed, audited], ()
