"""Rows that change under a claim's holder: what no process of ours does, and what must still lose no message."""

from __future__ import annotations

import uuid

import pytest

from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import Backend


def shift_row_versions(backend: Backend, transport: QueueTransport, queue: str, by: int) -> None:
    """Move the row versions of the messages that wait, as if the queue's sequence had been restarted elsewhere."""
    if backend.name == "sqlserver":
        pytest.skip("needs numbers that can be changed; SQL Server updates no identity column")
    # SQLite checks the key row by row: the rows go far away first, where none is in their way.
    table, version = transport.resolve(queue).qualified, _version(backend)
    for distance in (2**40, by - 2**40):
        backend.sql(transport, f"UPDATE {table} SET {version} = {version} + {distance}")


def row_versions(backend: Backend, transport: QueueTransport, claim: Claim) -> list[int]:
    """What a claim holds."""
    claimed, claim_id, version = _claimed(transport, claim), _claim_id(backend), _version(backend)
    statement = f"SELECT {version} FROM {claimed} WHERE {claim_id} = ? ORDER BY {version}"
    return [row[0] for row in backend.sql(transport, statement, (claim.claim_id,))]


def add_row(backend: Backend, transport: QueueTransport, claim: Claim) -> None:
    """One more message in a claim, after the others."""
    claimed, claim_id, version = _claimed(transport, claim), _claim_id(backend), _version(backend)
    last = backend.sql(transport, f"SELECT max({version}) FROM {claimed} WHERE {claim_id} = ?", (claim.claim_id,))
    backend.sql(
        transport,
        f"INSERT INTO {claimed} ({claim_id}, id, headers, body, {version}) VALUES (?, ?, ?, ?, ?)",
        (claim.claim_id, str(uuid.uuid4()), "{}", b'{"n": 99}', last[0][0] + 1),
    )


def remove_row(backend: Backend, transport: QueueTransport, claim: Claim) -> None:
    """One message fewer, the last one."""
    claimed, claim_id, version = _claimed(transport, claim), _claim_id(backend), _version(backend)
    last = f"(SELECT max({version}) FROM {claimed} WHERE {claim_id} = ?)"
    backend.sql(
        transport,
        f"DELETE FROM {claimed} WHERE {claim_id} = ? AND {version} = {last}",
        (claim.claim_id, claim.claim_id),
    )


def change_row_version(backend: Backend, transport: QueueTransport, claim: Claim) -> None:
    """As many messages, and another one for the last."""
    claimed, claim_id, version = _claimed(transport, claim), _claim_id(backend), _version(backend)
    last = f"(SELECT max({version}) FROM {claimed} WHERE {claim_id} = ?)"
    backend.sql(
        transport,
        f"UPDATE {claimed} SET {version} = {version} + 10 WHERE {claim_id} = ? AND {version} = {last}",
        (claim.claim_id, claim.claim_id),
    )


def _claimed(transport: QueueTransport, claim: Claim) -> str:
    return transport.book.claim_tables(transport.resolve(claim.queue)).claimed.qualified


def _claim_id(backend: Backend) -> str:
    return "claim_id" if backend.name == "postgresql" else "ClaimId"


def _version(backend: Backend) -> str:
    return "seq" if backend.name == "postgresql" else "RowVersion"
