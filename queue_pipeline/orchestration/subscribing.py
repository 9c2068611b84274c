"""Subscriptions of pipelines, made when their code location goes to work, as an NServiceBus endpoint's at its start."""

from __future__ import annotations

from collections.abc import Sequence

from queue_pipeline.errors import DatabaseUnavailableError, QueuePipelineError
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport


def subscribe(transport: QueueTransport, pipeline: QueuePipeline) -> list[str]:
    """Subscribe a pipeline's input queue to what it `subscribes_to`; returns the topics that are new."""
    table = transport.resolve(pipeline.input_queue)
    return [
        topic
        for topic in pipeline.subscribes_to
        if transport.subscriptions.subscribe(pipeline.endpoint_name, topic, table)
    ]


class Subscriber:
    """Subscribes each pipeline once in the life of a code server, so that an operator may end a subscription."""

    def __init__(self, pipelines: Sequence[QueuePipeline]) -> None:
        self._left = [pipeline for pipeline in pipelines if pipeline.subscribes_to]

    def subscribe(self, transport: QueueTransport) -> list[str]:
        """Make the subscriptions that are not made yet. Returns why some could not be; the next call tries again."""
        troubles: list[str] = []
        for pipeline in self._left:
            try:
                subscribe(transport, pipeline)
            except DatabaseUnavailableError as error:
                # Each of the others would wait as long for a database that does not answer.
                return [*troubles, f"{pipeline.name} is not subscribed to its events: {error}"]
            except QueuePipelineError as error:
                troubles.append(f"{pipeline.name} is not subscribed to its events: {error}")
            else:
                self._left = [one for one in self._left if one is not pipeline]
        return troubles
