"""Reads a claim as a stream of Arrow record batches: never the whole of it as Python objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from queue_pipeline.transport.addressing import AddressBook
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.nginn.reading import read_in_place
from queue_pipeline.transport.nginn.rows import is_nginn

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_PART_MESSAGES = 10_000
DEFAULT_PART_BYTES = 8 * 1024 * 1024


class Part(NamedTuple):
    """A range of a claim, bounded in messages and bytes, that one reader reads at once."""

    first_row_version: int
    last_row_version: int
    messages: int
    bytes: int


class ClaimReader:
    """Cuts a claim into parts and reads them; safe to use from any process that can reach the database."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def parts(
        self, claim: Claim, max_messages: int = DEFAULT_PART_MESSAGES, max_bytes: int = DEFAULT_PART_BYTES
    ) -> list[Part]:
        """The claim's parts in order; a message larger than the bound is a part of its own."""
        if max_messages < 1 or max_bytes < 1:
            raise ConfigurationError(f"queue {claim.queue}: a part needs room for at least one message and one byte")
        tables = self._book.claim_tables(self._book.resolve(claim.queue))
        command = self._database.dialect.statement(
            f"{tables.queue.layout}/claimed.parts", queue=tables.queue, claimed=tables.claimed
        )
        values = {"messages": max_messages, "bytes": max_bytes, "claim_id": claim.claim_id}
        rows = self._database.run(lambda own: own.rows(command, **values), write=False)
        return [Part(int(first), int(last), int(messages), int(size)) for first, last, messages, size in rows]

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
        """One part as one record batch."""
        from queue_pipeline.transport.claimed_columns import from_rows

        tables = self._book.claim_tables(self._book.resolve(claim.queue))
        values = {"claim_id": claim.claim_id, "first": part.first_row_version, "last": part.last_row_version}
        dialect = self._database.dialect
        if is_nginn(tables.queue):
            settings = self._book.nginn
            rows = self._database.run(
                lambda own: read_in_place(own, dialect, tables, settings, values, body=body), write=False
            )
            return from_rows(rows)
        name = f"{tables.queue.layout}/claimed.{'read' if body else 'read_headers'}"
        command = dialect.statement(name, queue=tables.queue, claimed=tables.claimed)
        return from_rows(self._database.run(lambda own: own.read(command, **values), write=False))
