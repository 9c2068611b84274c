"""Queues and event types as external assets: what they depend on, and what they are called."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import dagster as dg

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration.names import Names
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport.messages.event import Event


def queues_of(pipelines: Sequence[QueuePipeline]) -> list[str]:
    """Every queue that the pipelines read or write, once."""
    return list(dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues))


def queue_specs(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetSpec]:
    """Every queue as an external asset that depends on the pipelines that send to it."""
    senders: dict[str, list[QueuePipeline]] = {}
    descriptions: dict[str, str] = {}
    for pipeline in pipelines:
        senders.setdefault(pipeline.input_queue, [])
        for queue in pipeline.queues[1:]:
            senders.setdefault(queue, []).append(pipeline)
        for output in pipeline.output_queues:
            if output.description:
                descriptions[output.queue] = output.description
    specs: dict[dg.AssetKey, dg.AssetSpec] = {}
    for queue, pipelines_into in senders.items():
        key = names.queue_key(queue)
        if key in specs:
            raise ConfigurationError(
                f"the queues {queue!r} and {specs[key].metadata['queue']!r} would both be the asset "
                f"{key.to_user_string()}; write one address the same way everywhere"
            )
        specs[key] = dg.AssetSpec(
            key,
            deps=[names.pipeline_key(pipeline) for pipeline in pipelines_into],
            group_name=names.group,
            description=_description(queue, descriptions.get(queue), pipelines),
            kinds={"queue", "sql"},
            metadata={"queue": queue},
        )
    return list(specs.values())


def _description(queue: str, declared: str | None, pipelines: Sequence[QueuePipeline]) -> str:
    """What a queue is for, and how to look into it."""
    roles = [
        f"{role} {pipeline.name}"
        for pipeline in pipelines
        for role, is_meant in (
            ("the input of", queue == pipeline.input_queue),
            ("an output of", any(queue == output.queue for output in pipeline.output_queues)),
            ("the error queue of", queue == pipeline.error_queue),
            ("the audit queue of", queue == pipeline.audit_queue),
        )
        if is_meant
    ]
    what = [declared] if declared else []
    what.append(f"The queue {queue}: {', '.join(roles)}." if roles else f"The queue {queue}.")
    look = f"queue-pipeline status {shlex.quote(queue)} --watch\nqueue-pipeline show {shlex.quote(queue)}"
    return (
        f"{' '.join(what)}\n\n*Plots* show age and depth, at most once a minute. In a terminal with "
        f"`QUEUE_PIPELINE_DATABASE` set as for this project:\n\n```\n{look}\n```"
    )


def event_specs(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.AssetSpec]:
    """Every published event type as an external asset that depends on the pipelines that publish it.

    Which queues it goes to is known to the database only, and may change at any time.
    """
    publishers: dict[dg.AssetKey, tuple[Event, list[QueuePipeline]]] = {}
    for pipeline in pipelines:
        for event in pipeline.publishes:
            known, into = publishers.setdefault(names.event_key(event.name), (event, []))
            if known.name != event.name:
                raise ConfigurationError(
                    f"the events {known.name!r} and {event.name!r} would both be the asset "
                    f"{names.event_key(event.name).to_user_string()}; rename one"
                )
            into.append(pipeline)
    return [
        dg.AssetSpec(
            key,
            deps=[names.pipeline_key(pipeline) for pipeline in into],
            group_name=names.group,
            description=event.description or f"Events of the type {event.name}.",
            kinds={"event", "sql"},
            metadata={"event": event.name, "parents": ", ".join(event.parents) or "none"},
        )
        for key, (event, into) in publishers.items()
    ]
