"""Errors that no message causes, by their kind: the next message would meet them too."""

from __future__ import annotations

import errno
import threading

from queue_pipeline.errors import (
    AccessDeniedError,
    DatabaseUnavailableError,
    LayoutChangedError,
    QueueNotFoundError,
    RowsDifferError,
    StagedLostError,
    SubscriberError,
    TableNotFoundError,
    TransientDatabaseError,
    UniqueIndexMissingError,
)
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.transport.addresses.queues import CLAIMED_SUFFIX, DELAYED_SUFFIX
from queue_pipeline.transport.transport import QueueTransport

KINDS = (
    AccessDeniedError,
    DatabaseUnavailableError,
    LayoutChangedError,
    RowsDifferError,
    SparkUnavailableError,
    StagedLostError,
    SubscriberError,
    TableNotFoundError,
    TransientDatabaseError,
    UniqueIndexMissingError,
)
"""The run ends, and nothing is counted."""
EXHAUSTED = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE})
"""Of this machine: no space, no quota, a disk that takes no writes, no file handles. Spark reports its own full disk in
an error of another class; the verdict on messages handles that."""


class Environment:
    """What every batch of a pipeline needs."""

    def __init__(self, pipeline: QueuePipeline, transport: QueueTransport) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._stopped = threading.Event()

    def stop(self) -> None:
        """The run was terminated: from now on no message causes an error."""
        self._stopped.set()

    @property
    def is_stopped(self) -> bool:
        """Whether the run was terminated."""
        return self._stopped.is_set()

    def causes(self, error: BaseException) -> bool:
        """Whether the next message would meet the error. A missing reply queue fails only the message that named it."""
        if self._stopped.is_set():
            return True
        if isinstance(error, QueueNotFoundError):
            return self._needs(error.queue)
        if isinstance(error, AccessDeniedError) and error.queue is not None:
            return self._needs(error.queue)
        return isinstance(error, KINDS) or (isinstance(error, OSError) and error.errno in EXHAUSTED)

    def _needs(self, queue: str) -> bool:
        resolved = [self._transport.resolve(name) for name in self._pipeline.queues]
        siblings = [
            self._transport.book.sibling(table, suffix)
            for table in resolved
            for suffix in (DELAYED_SUFFIX, CLAIMED_SUFFIX)
        ]
        return queue in self._pipeline.queues or queue in {table.canonical for table in [*resolved, *siblings]}
