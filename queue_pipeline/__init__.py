"""Batch processing with Dagster and PySpark over SQL tables used as message queues.

The names here are the public API. Each is loaded at its first use: a program that only sends messages loads neither
Spark nor Dagster.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from queue_pipeline.client.client import QueueClient
    from queue_pipeline.client.settings import CallbackSettings
    from queue_pipeline.components.queue_pipelines import QueuePipelines
    from queue_pipeline.errors import QueuePipelineError
    from queue_pipeline.orchestration.definitions import find_pipelines, queue_definitions
    from queue_pipeline.orchestration.resources import QueueTransportResource, SparkResource
    from queue_pipeline.processing.body.parse import body_parser
    from queue_pipeline.processing.declaration.outcomes import (
        Append,
        Merge,
        Results,
        add_to,
        append_to,
        each,
        fail,
        publish,
        reply,
        send,
    )
    from queue_pipeline.processing.declaration.pipeline import Output, QueuePipeline
    from queue_pipeline.processing.declaration.recoverability import Recoverability
    from queue_pipeline.processing.source.source import claim_option, messages_of, register_sql_queue
    from queue_pipeline.transport.claims.claim import RowsRead
    from queue_pipeline.transport.claims.completion import Completion
    from queue_pipeline.transport.failed.failed_message import Selection
    from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
    from queue_pipeline.transport.messages.event import Event
    from queue_pipeline.transport.messages.message import Operation, OutgoingMessage, TransactionMode, new_message
    from queue_pipeline.transport.transport import QueueTransport

__all__ = [
    # A pipeline
    "QueuePipeline",
    "Output",
    "Event",
    "Recoverability",
    "TransactionMode",
    # What its transform returns
    "each",
    "send",
    "reply",
    "publish",
    "fail",
    "add_to",
    "append_to",
    "Results",
    "Append",
    "Merge",
    # Dagster
    "queue_definitions",
    "QueuePipelines",
    "find_pipelines",
    "QueueTransportResource",
    "SparkResource",
    # Other programs
    "QueueTransport",
    "NGinnSettings",
    "QueueClient",
    "CallbackSettings",
    "OutgoingMessage",
    "new_message",
    "Operation",
    "RowsRead",
    "Completion",
    "body_parser",
    "messages_of",
    "claim_option",
    "register_sql_queue",
    "Selection",
    "QueuePipelineError",
]

_MODULES = {
    "client.client": ("QueueClient",),
    "client.settings": ("CallbackSettings",),
    "components.queue_pipelines": ("QueuePipelines",),
    "orchestration.definitions": ("find_pipelines", "queue_definitions"),
    "orchestration.resources": ("QueueTransportResource", "SparkResource"),
    "processing.body.parse": ("body_parser",),
    "processing.declaration.outcomes": (
        "Append",
        "Merge",
        "Results",
        "add_to",
        "append_to",
        "each",
        "fail",
        "publish",
        "reply",
        "send",
    ),
    "processing.declaration.pipeline": ("Output", "QueuePipeline"),
    "processing.declaration.recoverability": ("Recoverability",),
    "processing.source.source": ("claim_option", "messages_of", "register_sql_queue"),
    "errors": ("QueuePipelineError",),
    "transport.layouts.nginn.settings": ("NGinnSettings",),
    "transport.messages.event": ("Event",),
    "transport.failed.failed_message": ("Selection",),
    "transport.claims.claim": ("RowsRead",),
    "transport.claims.completion": ("Completion",),
    "transport.messages.message": ("Operation", "OutgoingMessage", "TransactionMode", "new_message"),
    "transport.transport": ("QueueTransport",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_EXTRAS = {"processing": "spark", "orchestration": "dagster", "components": "dagster"}


def __getattr__(name: str) -> Any:
    """Load a public name at its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from queue_pipeline.transport.extras import needed_by

    with needed_by(f"queue_pipeline.{name}", _EXTRAS.get(_HOMES[name].partition(".")[0])):
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names whose packages are installed: `dg` loads each to look for components."""
    from queue_pipeline.transport.extras import has

    needs = {"processing": ("pyspark",), "orchestration": ("dagster", "pyspark")}
    needs["components"] = needs["orchestration"]
    there = {room for room, packages in needs.items() if has(*packages)}
    public = [name for name in __all__ if (room := _HOMES[name].partition(".")[0]) not in needs or room in there]
    return sorted({*globals(), *public})
