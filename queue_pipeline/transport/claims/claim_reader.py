"""Reads a claim as a stream of Arrow record batches: never the whole of it as Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from queue_pipeline.errors import ConfigurationError, MessageTooLargeError
from queue_pipeline.transport.claims.claim import Claim, partly_lost
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.extras import needed_by
from queue_pipeline.transport.layouts.layout import Layouts

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_PART_MESSAGES = 10_000
DEFAULT_PART_BYTES = 8 * 1024 * 1024
LARGEST_MESSAGE = 256 * 1024 * 1024
"""Bytes of headers and body that a pipeline reads; a message is in memory several times, here and in Spark."""


class Part(NamedTuple):
    """A range of a claim, bounded in messages and bytes, that one reader reads at once."""

    first_row_version: int
    last_row_version: int
    messages: int
    bytes: int


class ClaimReader:
    """Cuts a claim into parts and reads them; safe to use from any process that can reach the database."""

    def __init__(self, database: Database, store: ClaimTable, layouts: Layouts) -> None:
        self._database = database
        self._store = store
        self._layouts = layouts

    def parts(
        self, claim: Claim, max_messages: int = DEFAULT_PART_MESSAGES, max_bytes: int = DEFAULT_PART_BYTES
    ) -> list[Part]:
        """The parts of a claim in order, an error if they are not all of it; a larger message is a part of its own."""
        if max_messages < 1 or max_bytes < 1:
            raise ConfigurationError(f"queue {claim.queue}: a part needs room for at least one message and one byte")
        command = self._store.statement(self._store.tables(claim), "parts")
        values = {"messages": max_messages, "bytes": max_bytes, "claim_id": claim.claim_id}

        def cut(transaction: Transaction) -> list[Part]:
            found = [Part(*map(int, row)) for row in transaction.rows(command, **values)]
            messages = sum(part.messages for part in found)
            if messages != claim.messages:
                raise self._store.other_size(transaction, claim, messages)
            return found

        return self._database.run(cut, write=False)

    def read(
        self,
        claim: Claim,
        *,
        body: bool = True,
        max_messages: int = DEFAULT_PART_MESSAGES,
        max_bytes: int = DEFAULT_PART_BYTES,
    ) -> Iterator[pa.RecordBatch]:
        """The messages of a claim in order; bodies are left out on request."""
        for part in self.parts(claim, max_messages, max_bytes):
            yield self.read_part(claim, part, body=body)

    def read_part(self, claim: Claim, part: Part, *, body: bool = True) -> pa.RecordBatch:
        """One part as one record batch. Raises ClaimLostError if others took some of it, or MessageTooLargeError."""
        # Arrow takes a third of a second to import, and most commands never read a claim.
        with needed_by("reading a claim"):
            from queue_pipeline.transport.claims.message_table import from_rows

        if body and part.bytes > LARGEST_MESSAGE:
            raise too_large(claim, part)
        tables = self._store.tables(claim)
        values = {"claim_id": claim.claim_id, "first": part.first_row_version, "last": part.last_row_version}

        stored = self._layouts.of(tables.queue).rows
        rows = self._database.run(lambda own: stored.read(own, tables, values, body=body), write=False)
        if len(rows) != part.messages:
            raise partly_lost(claim)
        return from_rows(rows)


def too_large(claim: Claim, part: Part) -> MessageTooLargeError:
    """The error of a part with a message that is not read."""
    which = "row version" if part.messages == 1 else f"{part.messages:,} messages from row version"
    return MessageTooLargeError(
        f"queue {claim.queue}: {which} {part.first_row_version}: {part.bytes:,} bytes of headers and body; a pipeline "
        f"reads messages of at most {LARGEST_MESSAGE:,}: send a reference to what is larger, and not the thing itself"
    )
