"""procrastinate with its own connector, as its documentation sets it up: a task, and a worker with some concurrency.

The task's insert and the job's acknowledgement are separate commits.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import Any

from queue_pipeline_tests.benchmarks.consumers.invoices import result

# Of the extra `bench`, imported by name: the linters must pass without it.
procrastinate: Any = importlib.import_module("procrastinate")
psycopg_pool: Any = importlib.import_module("psycopg_pool")

TASK = "invoice"
PUT = "INSERT INTO results (id, headers, body) VALUES (%s, %s, %s)"
DEFER_AT_ONCE = 500
CONNECTIONS = 20
"""At most, of its own pool and of that for the results; each opens as many as it needs."""


class ProcrastinateJobs:
    """A message is a job: body and headers are the arguments of its task."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._pool: Any = None
        self._app: Any = None
        self._done = 0

    def install(self) -> None:
        """Create its tables, as `procrastinate schema --apply` does."""
        self._runner.run(self._install())

    def fill(self, count: int) -> int:
        """Defer the first so many messages of the source, in bulk."""
        return self._runner.run(self._fill(count))

    def drain(self, concurrency: int) -> int:
        """Work until no job is left; how many messages that were."""
        self._done = 0
        self._runner.run(self._drain(concurrency))
        return self._done

    async def _open(self) -> Any:
        if self._app is None:
            connector = procrastinate.PsycopgConnector(conninfo=self._url, min_size=1, max_size=CONNECTIONS)
            self._app = procrastinate.App(connector=connector)
            self._app.task(name=TASK)(self._handle)
            await self._app.open_async()
            options = {"autocommit": True}
            pool = psycopg_pool.AsyncConnectionPool
            self._pool = pool(self._url, min_size=1, max_size=CONNECTIONS, kwargs=options, open=False)
            await self._pool.open()
        return self._app

    async def _install(self) -> None:
        app = await self._open()
        await app.schema_manager.apply_schema_async()

    async def _fill(self, count: int) -> int:
        app = await self._open()
        async with self._pool.connection() as connection:
            cursor = await connection.execute("SELECT headers, body FROM source ORDER BY seq LIMIT %s", (count,))
            rows = await cursor.fetchall()
        jobs = [{"headers": json.loads(headers), "body": bytes(body).decode()} for headers, body in rows]
        for start in range(0, len(jobs), DEFER_AT_ONCE):
            await app.configure_task(TASK).batch_defer_async(*jobs[start : start + DEFER_AT_ONCE])
        return len(rows)

    async def _drain(self, concurrency: int) -> None:
        app = await self._open()
        await app.run_worker_async(
            concurrency=concurrency, wait=False, listen_notify=False, install_signal_handlers=False
        )

    async def _handle(self, headers: dict[str, str], body: str) -> None:
        async with self._pool.connection() as connection:
            await connection.execute(PUT, result(headers, body.encode()))
        self._done += 1
