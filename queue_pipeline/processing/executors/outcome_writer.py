"""Stages what a transform returned: the same envelopes that the driver makes of a small batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import types as T

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.envelopes import Failed, Sending, envelopes, sort_outcomes
from queue_pipeline.processing.executors.outbox_writer import OutboxWriter
from queue_pipeline.processing.executors.settings import ExecutorSettings
from queue_pipeline.processing.messages_frame import ORIGIN, ORIGIN_FIELDS
from queue_pipeline.processing.origins import flat
from queue_pipeline.processing.outcome_checks import (
    check_codes,
    check_events,
    check_lifetimes,
    check_outputs,
    check_strangers,
)
from queue_pipeline.processing.outcomes import OUTCOME
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.ready import ReadyMessages


class OutcomeWriter(OutboxWriter):
    """Writes rows of (origin, outcome)."""

    def __init__(
        self,
        settings: ExecutorSettings,
        claim: Claim,
        job: str,
        sending: Sending,
        outputs: Sequence[str] | None,
        *,
        completes: bool,
    ) -> None:
        """`outputs` are the queues that may be sent to, any if there are none."""
        super().__init__(settings, claim, job, completes=completes)
        self._sending = sending
        self._outputs = outputs

    def messages(self, rows: Table) -> tuple[Sequence[ReadyMessages], Sequence[Failed]]:
        """The envelopes of a partition."""
        return outcome_messages(rows, self._claim, self._sending, self._outputs)


def outcome_messages(
    rows: Table, claim: Claim, sending: Sending, outputs: Sequence[str] | None
) -> tuple[Sequence[ReadyMessages], Sequence[Failed]]:
    """The envelopes of a partition, and which messages failed; all results of a message are in it."""
    outcomes = sort_outcomes(flat(rows))
    check_strangers(sending.pipeline, outcomes, claim.first_row_version)
    if outputs is not None:
        check_outputs(sending.pipeline, outputs, outcomes.sends)
    check_events(sending.pipeline, sending.events, outcomes.sends)
    check_lifetimes(sending.pipeline, outcomes.sends)
    check_codes(sending.pipeline, outcomes.sends)
    return envelopes(outcomes.sends, sending), outcomes.failures


def plain_sending(claim: Claim, name: str | None = None) -> Sending:
    """What results have in common that no pipeline declares."""
    return Sending(pipeline=name or claim.queue, endpoint=claim.queue, reply_to=claim.queue, canonical={})


def check_outcome_schema(schema: T.StructType) -> None:
    """Refuse a frame that is not what `messages.select("origin", each(...))` makes."""
    names = schema.fieldNames()
    if sorted(names) == sorted((ORIGIN, OUTCOME)):
        origin: Any = schema[ORIGIN].dataType
        if isinstance(origin, T.StructType) and tuple(origin.fieldNames()) == ORIGIN_FIELDS:
            return
    raise ConfigurationError(
        f"the columns {', '.join(names)} cannot be sent: write a frame of {ORIGIN} and {OUTCOME}, as made by "
        f'messages.select("{ORIGIN}", each(send(...)))'
    )
