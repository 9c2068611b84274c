"""Queues in which messages wait: filled inside the database, once for all that is measured against a backlog."""

from __future__ import annotations

from typing import Any

from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.benchmarks.plan import BACKLOGS, say
from queue_pipeline_tests.benchmarks.server import outside_transaction
from queue_pipeline_tests.benchmarks.workload import FILL

EXPIRED = "now() AT TIME ZONE 'UTC' - INTERVAL '1 hour'"


def fill(connection: Any, queue: str, count: int, expires: str = "NULL") -> None:
    """Add messages of the usual size, made by the server."""
    connection.execute(FILL.format(queue=queue, count=count, expires=expires))
    connection.commit()


def settle(connection: Any, *queues: str) -> None:
    """What autovacuum would do, at a time that is not measured."""
    outside_transaction(connection, f"VACUUM (ANALYZE) {', '.join(queues)}")


class Backlogs:
    """Installs and fills a queue when it is first asked for."""

    def __init__(self, transport: QueueTransport, connection: Any) -> None:
        self.transport = transport
        self.connection = connection
        self._filled: dict[str, str] = {}

    def queue(self, size: str) -> str:
        """The queue of a backlog, by the name of its size."""
        if size not in self._filled:
            queue = f"waiting_{size}"
            say(f"filling a queue with {BACKLOGS[size]:,} messages")
            self.transport.install(queue, plain_queues=[])
            fill(self.connection, queue, BACKLOGS[size])
            settle(self.connection, queue)
            outside_transaction(self.connection, "CHECKPOINT")
            self._filled[size] = queue
        return self._filled[size]
