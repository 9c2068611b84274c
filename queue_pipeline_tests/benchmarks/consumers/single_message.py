"""One message a transaction, in the manner of an NServiceBus endpoint: receive, handle, send the result, commit."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote, urlsplit

import pyodbc

from queue_pipeline.transport.database_url import odbc_string
from queue_pipeline_tests.benchmarks.consumers.invoices import result

TAKE = """
DELETE FROM sent
WHERE seq = (SELECT seq FROM sent ORDER BY seq LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, headers, body
"""
PUT = "INSERT INTO results (id, headers, body) VALUES (?, ?, ?)"


class SingleMessage:
    """Through ODBC, with statements that the server prepares once."""

    def __init__(self, url: str) -> None:
        self._connection: Any = pyodbc.connect(_connection_string(url))
        # A cursor for each statement: the driver prepares anew whenever a cursor changes its statement.
        self._take, self._put = self._connection.cursor(), self._connection.cursor()

    def drain(self) -> int:
        """Work until the queue is empty; how many messages that were."""
        done = 0
        while self._one():
            done += 1
        return done

    def _one(self) -> bool:
        self._take.execute(TAKE)
        # Of no row at all the driver hands over no result set.
        row = self._take.fetchone() if self._take.description else None
        if row is not None:
            identity, headers, body = result(json.loads(row[1]), row[2])
            self._put.execute(PUT, (str(identity), headers, body))
        self._connection.commit()
        return row is not None


def _connection_string(url: str) -> str:
    address = urlsplit(url)
    return odbc_string(
        {
            "DRIVER": "PostgreSQL Unicode",
            "SERVER": address.hostname or "",
            "PORT": str(address.port),
            "DATABASE": address.path.removeprefix("/"),
            "UID": unquote(address.username or ""),
            "PWD": unquote(address.password or ""),
            # Statements are prepared by the server, once.
            "UseServerSidePrepare": "1",
        }
    )
