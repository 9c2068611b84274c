"""pgqueuer with asyncpg, as its documentation sets it up: an entrypoint, and a pool as a shared resource.

The handler's insert and the job's acknowledgement are separate commits.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from datetime import timedelta
from typing import Any

from queue_pipeline_tests.benchmarks.consumers.invoices import result

# Of the extra `bench`, imported by name: the linters must pass without it.
asyncpg: Any = importlib.import_module("asyncpg")
pgqueuer: Any = importlib.import_module("pgqueuer")
execution_mode: Any = importlib.import_module("pgqueuer.types").QueueExecutionMode

ENTRYPOINT = "invoice"
PUT = "INSERT INTO results (id, headers, body) VALUES ($1, $2, $3)"
ENQUEUE_AT_ONCE = 1_000


class PgQueuerJobs:
    """A message is a job: its body the payload, its headers the job's."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._pool: Any = None
        self._done = 0

    def install(self) -> None:
        """Create its tables, as `pgq install` does."""
        self._runner.run(self._install())

    def fill(self, count: int) -> int:
        """Enqueue the first so many messages of the source, in bulk."""
        return self._runner.run(self._fill(count))

    def drain(self, batch: int, connections: int, in_work: int) -> int:
        """Work until no job is left; how many messages that were."""
        self._done = 0
        self._runner.run(self._drain(batch, connections, in_work))
        return self._done

    async def _install(self) -> None:
        connection = await asyncpg.connect(self._url)
        await pgqueuer.Queries.from_asyncpg_connection(connection).install()
        await connection.close()

    async def _fill(self, count: int) -> int:
        connection = await asyncpg.connect(self._url)
        queries = pgqueuer.Queries.from_asyncpg_connection(connection)
        rows = await connection.fetch("SELECT headers, body FROM source ORDER BY seq LIMIT $1", count)
        for start in range(0, len(rows), ENQUEUE_AT_ONCE):
            part = rows[start : start + ENQUEUE_AT_ONCE]
            headers = [json.loads(row["headers"]) for row in part]
            bodies = [row["body"] for row in part]
            await queries.enqueue([ENTRYPOINT] * len(part), bodies, [0] * len(part), headers=headers)
        await connection.close()
        return len(rows)

    async def _drain(self, batch: int, connections: int, in_work: int) -> None:
        if self._pool is None:
            self._pool = await asyncpg.create_pool(self._url, min_size=connections, max_size=connections)
        connection = await asyncpg.connect(self._url)
        application = pgqueuer.PgQueuer(pgqueuer.AsyncpgDriver(connection))
        application.qm.entrypoint(ENTRYPOINT, accepts_context=False)(self._handle)
        await application.qm.run(
            batch_size=batch,
            max_concurrent_tasks=in_work,
            mode=execution_mode.drain,
            dequeue_timeout=timedelta(seconds=1),
        )
        await connection.close()

    async def _handle(self, job: Any) -> None:
        await self._pool.execute(PUT, *result(job.headers, job.payload))
        self._done += 1
