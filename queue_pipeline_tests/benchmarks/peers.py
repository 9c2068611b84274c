"""What the transport is measured against: the fastest ways in and across that PostgreSQL offers Python.

Neither checks, encodes, fences or leases anything: they are limits, not queues.
"""

from __future__ import annotations

import importlib
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from queue_pipeline.transport.database.dialects.dialect import Row

# Of the extra `bench`, imported by name: the linters must pass where only the extras `test` and `lint` are.
psycopg: Any = importlib.import_module("psycopg")

CopyRow = tuple[uuid.UUID, None, str, bytes]

COPY_IN = "COPY {queue} (id, expires, headers, body) FROM STDIN (FORMAT BINARY)"
MOVE = """
WITH taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM {queue} ORDER BY seq LIMIT %s FOR UPDATE SKIP LOCKED))
    RETURNING id, expires, headers, body
)
INSERT INTO {target} (id, expires, headers, body) SELECT id, expires, headers, body FROM taken
"""


def connect(url: str) -> Any:
    """A psycopg connection; the transport has connections of its own."""
    return psycopg.connect(url)


def copy_rows(rows: Iterable[Row]) -> list[CopyRow]:
    """Encoded rows as psycopg's binary COPY takes them; made before the clock starts."""
    return [(uuid.UUID(row.id), None, row.headers, row.body) for row in rows]


def copy_in(connection: Any, queue: str, rows: Sequence[CopyRow]) -> None:
    """All rows in one COPY and one transaction."""
    with connection.cursor() as cursor, cursor.copy(COPY_IN.format(queue=queue)) as copy:
        copy.set_types(["uuid", "timestamp", "text", "bytea"])
        for row in rows:
            copy.write_row(row)
    connection.commit()


def move(connection: Any, queue: str, target: str, batch: int) -> int:
    """A batch from one queue table to another: one statement and a commit, no row leaves the server."""
    moved: int = connection.execute(MOVE.format(queue=queue, target=target), (batch,)).rowcount
    connection.commit()
    return moved
