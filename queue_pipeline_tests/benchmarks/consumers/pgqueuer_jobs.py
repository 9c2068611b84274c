"""The worked example as jobs of pgqueuer with asyncpg, as its documentation sets it up: an entrypoint, and a pool.

The handler's results and the acknowledgement of its job are separate commits.
"""

from __future__ import annotations

import asyncio
import importlib
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

from pydantic_core import to_json

from queue_pipeline.transport.messages.message import new_row_ids
from queue_pipeline_tests.benchmarks.consumers.envelopes import Envelopes, failed, read_headers, relate
from queue_pipeline_tests.benchmarks.consumers.pricing import RefusedError, price

# Of the extra `bench`, imported by name: the linters must pass without it.
asyncpg: Any = importlib.import_module("asyncpg")
pgqueuer: Any = importlib.import_module("pgqueuer")
execution_mode: Any = importlib.import_module("pgqueuer.types").QueueExecutionMode

ENTRYPOINT = "order"
PUT = "INSERT INTO {queue} (id, headers, body) VALUES ($1, $2, $3)"
# One statement, so that the three are one round trip and one commit.
PROCESS = """
WITH billed AS (INSERT INTO billing (id, headers, body) VALUES ($1, $2, $3)),
    shipped AS (INSERT INTO shipping (id, headers, body) VALUES ($4, $5, $6))
INSERT INTO order_totals AS known (country, day, orders, revenue) VALUES ($7, $8, 1, $9)
ON CONFLICT (country, day) DO UPDATE
SET orders = known.orders + excluded.orders, revenue = known.revenue + excluded.revenue
"""
ENQUEUE_AT_ONCE = 1_000


class PgQueuerJobs:
    """A message is a job: its body the payload, its headers the job's, or none if they cannot be read."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._runner = asyncio.Runner()
        self._pool: Any = None
        self._done = 0

    def install(self) -> None:
        """Create its tables, as `pgq install` does."""
        self._runner.run(self._install())

    def fill(self, source: str, count: int) -> int:
        """Enqueue the first `count` orders of a source, in bulk."""
        return self._runner.run(self._fill(source, count))

    def drain(self, batch: int, connections: int, in_work: int) -> int:
        """Work until no job is left; returns the number of messages."""
        self._done = 0
        self._runner.run(self._drain(batch, connections, in_work))
        return self._done

    async def _install(self) -> None:
        connection = await asyncpg.connect(self._url)
        await pgqueuer.Queries.from_asyncpg_connection(connection).install()
        await connection.close()

    async def _fill(self, source: str, count: int) -> int:
        connection = await asyncpg.connect(self._url)
        queries = pgqueuer.Queries.from_asyncpg_connection(connection)
        rows = await connection.fetch(f"SELECT headers, body FROM {source} ORDER BY seq LIMIT $1", count)
        for start in range(0, len(rows), ENQUEUE_AT_ONCE):
            part = rows[start : start + ENQUEUE_AT_ONCE]
            headers = [_headers(row["headers"]) for row in part]
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
        await self._pool.execute(*_statement(job.headers, job.payload))
        self._done += 1


def _statement(headers: dict[str, str] | None, body: bytes) -> tuple[Any, ...]:
    """The statement that writes what becomes of an order, and its values."""
    try:
        if headers is None:
            raise RefusedError("MessageHeadersInvalid", "headers are no JSON object")
        priced = price(body)
    except RefusedError as refusal:
        return PUT.format(queue="error"), uuid.uuid4(), failed(headers or {}, refusal).decode(), body
    envelopes, related = Envelopes(), relate(headers)
    values: list[Any] = []
    for identity, (queue, result) in zip(
        new_row_ids(2), (("billing", to_json(priced.invoice)), ("shipping", to_json(priced.parcel))), strict=True
    ):
        values += (uuid.UUID(identity), envelopes.result(queue, identity, related).decode(), result)
    return PROCESS, *values, priced.country, priced.day, Decimal(priced.cents) / 100


def _headers(text: str) -> dict[str, str] | None:
    try:
        return read_headers(text)
    except RefusedError:
        return None
