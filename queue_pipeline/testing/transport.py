"""Real queues for tests: SQLite in a temporary file, with everything that a transport can do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.private_files import temporary_folder

_FOLDER = "queue_pipeline-test-"


@contextmanager
def temporary_transport(*queues: str, **settings: Any) -> Iterator[QueueTransport]:
    """A transport with these queues and an error queue; database and messages are gone after the block.

    `settings` are those of `QueueTransport`, such as `endpoint`.
    """
    with temporary_folder(_FOLDER) as folder, QueueTransport(f"sqlite:///{folder}/queues.db", **settings) as transport:
        transport.install(*queues)
        yield transport
