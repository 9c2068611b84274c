"""Return to source: what a failed message loses on its way back to the queue in which it failed."""

from __future__ import annotations

from collections.abc import Mapping

from queue_pipeline.transport.messages import headers as wire

_PREFIXES = (wire.RETRIES, wire.EXCEPTION_PREFIX)
_NAMES = frozenset(
    {
        wire.FAILED_QUEUE,
        wire.TIME_OF_FAILURE,
        wire.FIRST_LEVEL_RETRIES,
        wire.FORWARD_DESTINATION,
        wire.EDIT_OF,
        wire.PROCESSING_ENDPOINT,
        wire.PROCESSING_MACHINE,
        wire.HOST_ID,
        wire.HOST_DISPLAY_NAME,
    }
)


def without_failure(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers as they were before the failure: nothing of where, when, why and how often is left.

    All others stay, those by which ServiceControl follows its own retries included.
    """
    return {name: value for name, value in headers.items() if name not in _NAMES and not name.startswith(_PREFIXES)}
