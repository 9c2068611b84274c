"""For tests of pipelines and clients: a transform on plain messages, and real queues in a temporary file.

Names are imported on first use, and so are the pytest fixtures of `queue_pipeline.testing.plugin`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from queue_pipeline.testing.given import message
    from queue_pipeline.testing.result import RefusedMessage, SentMessage, TransformResult
    from queue_pipeline.testing.transform import run_transform
    from queue_pipeline.testing.transport import temporary_transport

_MODULES = {
    "message": "given",
    "RefusedMessage": "result",
    "SentMessage": "result",
    "TransformResult": "result",
    "run_transform": "transform",
    "temporary_transport": "transport",
}

__all__ = [
    "run_transform",
    "message",
    "TransformResult",
    "SentMessage",
    "RefusedMessage",
    "temporary_transport",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from queue_pipeline.transport.extras import needed_by

    with needed_by(f"{__name__}.{name}", "spark"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
