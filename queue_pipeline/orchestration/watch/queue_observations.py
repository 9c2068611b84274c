"""Observations of queues: each is a row that Dagster keeps, so that there are few of queues that do not change."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import dagster as dg

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.external_assets import queues_of
from queue_pipeline.orchestration.names import Names
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport

CHANGED_SECONDS = 60.0
"""How often a queue whose depth changes is observed. The first change after this time is observed at once."""
UNCHANGED_SECONDS = 3600.0
MOST_IN_A_TICK = 50


def observe_changes(
    names: Names,
    pipelines: Sequence[QueuePipeline],
    transport: QueueTransport,
    observed: Mapping[str, tuple[float, str]],
    *,
    until: float,
) -> tuple[list[dg.AssetObservation], dict[str, tuple[float, str]]]:
    """Queues whose depth changed, every queue once an hour, and what is known of them then.

    Those observed longest ago come first. A tick that is late, because a table is locked, leaves out the rest: Dagster
    would give it up.
    """
    events: list[dg.AssetObservation] = []
    known = dict(observed)
    inputs = {pipeline.input_queue: pipeline.error_queue for pipeline in pipelines}
    queues = queues_of(pipelines)
    for queue in sorted(queues, key=lambda queue: known.get(queue, (0.0, ""))[0]):
        last, before = known.get(queue, (0.0, ""))
        age = time.time() - last
        if age < CHANGED_SECONDS:
            continue
        if time.time() > until or len(events) >= MOST_IN_A_TICK:
            break
        try:
            observation = metadata.queue_observation(names, transport, queue, inputs.get(queue))
        except QueuePipelineError:
            # A database that went away just now, or one queue that may not be read: no reason to lose the run requests.
            continue
        if observation is None:
            continue
        depth = str(observation.metadata["depth_messages"].value)
        if depth != before or age >= UNCHANGED_SECONDS:
            known[queue] = (time.time(), depth)
            events.append(observation)
    return events, {queue: known[queue] for queue in queues if queue in known}
