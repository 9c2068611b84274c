"""The batch consumer that a good engineer writes with psycopg 3: as few round trips and copies as it offers."""

from __future__ import annotations

from queue_pipeline_tests.benchmarks import peers
from queue_pipeline_tests.benchmarks.consumers.invoices import results

TAKE = """
DELETE FROM sent
WHERE ctid = ANY (ARRAY(SELECT ctid FROM sent ORDER BY seq LIMIT %s FOR UPDATE SKIP LOCKED))
RETURNING headers, body
"""
PUT = "COPY results (id, headers, body) FROM STDIN (FORMAT BINARY)"


class HandWritten:
    """Deletes a batch, transforms it, copies the results in: one transaction, exactly once."""

    def __init__(self, url: str) -> None:
        self._connection = peers.connect(url)

    def drain(self, batch: int) -> int:
        """Work until the queue is empty; how many messages that were."""
        done = 0
        while taken := self._batch(batch):
            done += taken
        return done

    def _batch(self, size: int) -> int:
        with self._connection.transaction(), self._connection.cursor(binary=True) as cursor:
            rows = cursor.execute(TAKE, (size,), prepare=True).fetchall()
            if rows:
                with cursor.copy(PUT) as copy:
                    copy.set_types(["uuid", "text", "bytea"])
                    for row in results(rows, len(rows)):
                        copy.write_row(row)
        return len(rows)
