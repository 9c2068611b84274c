"""Which messages that were given up for now are tried again later, and when."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from queue_pipeline.processing.batch.sending import Retry
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import DelayedRetry, delayed_retry, scheduled_retry
from queue_pipeline.transport.errors import QueueNotFoundError
from queue_pipeline.transport.transport import QueueTransport

logger = logging.getLogger(__name__)


class DelayedRetries:
    """The schedule of one pipeline, on the queue that it has."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._can_delay: bool | None = None

    def schedule(self, *, unrecoverable: bool) -> Retry:
        """A function of a message's headers: its next retry, or None when the error queue is next."""
        policy, now = self._pipeline.retries, datetime.now(UTC)
        queue = self._transport.resolve(self._pipeline.input_queue)

        def retry(headers: Mapping[str, str]) -> DelayedRetry | None:
            if not self._is_possible():
                return None
            waits = self._transport.layouts.of(queue).retry_seconds
            if waits is not None:
                return scheduled_retry(policy, waits, headers, unrecoverable=unrecoverable)
            return delayed_retry(policy, headers, now, unrecoverable=unrecoverable)

        return retry

    def _is_possible(self) -> bool:
        """Whether there is a table for delayed messages: one that a .NET endpoint installed may have another name."""
        if self._can_delay is None and self._pipeline.retries.delayed_retries:
            try:
                self._transport.next_due_seconds(self._pipeline.input_queue)
                self._can_delay = True
            except QueueNotFoundError as error:
                self._can_delay = False
                logger.warning("pipeline %s: no delayed retries, because %s", self._pipeline.name, error)
        return bool(self._can_delay)
