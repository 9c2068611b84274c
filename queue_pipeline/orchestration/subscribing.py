"""Subscriptions of pipelines, made when their code location goes to work, as an NServiceBus endpoint's at its start."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.errors import DatabaseUnavailableError, QueuePipelineError

_done: set[tuple[QueueTransport, str]] = set()
_lock = threading.Lock()


def subscribe(transport: QueueTransport, pipeline: QueuePipeline) -> list[str]:
    """Subscribe a pipeline's input queue to what it `subscribes_to`; returns the topics that are new."""
    table = transport.resolve(pipeline.input_queue)
    return [
        topic
        for topic in pipeline.subscribes_to
        if transport.subscriptions.subscribe(pipeline.endpoint_name, topic, table)
    ]


def subscribe_once(resource: QueueTransportResource, pipelines: Sequence[QueuePipeline]) -> list[str]:
    """Subscribe each pipeline once a process, so that an operator who ends a subscription meanwhile is heeded.

    Returns what kept it from happening, to be tried again at the next call.
    """
    transport, troubles = resource.transport(), []
    for pipeline in pipelines:
        key = (transport, pipeline.name)
        with _lock:
            if not pipeline.subscribes_to or key in _done:
                continue
        try:
            subscribe(transport, pipeline)
        except DatabaseUnavailableError as error:
            # The others would wait for it in vain, each for as long.
            return [f"{pipeline.name} is not subscribed to its events: {error}"]
        except QueuePipelineError as error:
            troubles.append(f"{pipeline.name} is not subscribed to its events: {error}")
            continue
        with _lock:
            _done.add(key)
    return troubles
