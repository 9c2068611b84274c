"""The pipelines that a peek loop watches, kept in the sensor's cursor: read there without loading their code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queue_pipeline.transport.operations.queue_health import Watched

if TYPE_CHECKING:
    from queue_pipeline.processing.declaration.pipeline import QueuePipeline


@dataclass(frozen=True, slots=True)
class WatchedPipeline:
    """What a health check needs to know of a pipeline."""

    name: str
    queue: str
    oldest_seconds: float
    start_seconds: float

    @staticmethod
    def of(pipeline: QueuePipeline) -> WatchedPipeline:
        """From its declaration."""
        return WatchedPipeline(
            pipeline.name, pipeline.input_queue, pipeline.oldest_message_seconds, pipeline.start_seconds
        )

    @property
    def watched(self) -> Watched:
        """The queue that it reads."""
        return Watched(self.queue, self.oldest_seconds, self.name)


def pipelines_of(cursor: str | None) -> dict[str, WatchedPipeline]:
    """The pipelines in the text of a cursor, by name; none if it cannot be read."""
    try:
        return {values["name"]: WatchedPipeline(**values) for values in json.loads(cursor or "{}")["pipelines"]}
    except (ValueError, LookupError, TypeError):
        return {}
