"""Open batches: many messages received in a transaction that stays open until their results are written.

That is what a .NET endpoint does with one message. Against a claim it saves two writes a message, and leaves nothing to
clean up after a crash; the price is that the transaction lasts as long as the work, so it is for work of seconds.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from queue_pipeline.transport.addressing import AddressBook, QueueTable
from queue_pipeline.transport.claim import Claim
from queue_pipeline.transport.claim_store import ClaimStore
from queue_pipeline.transport.database import Database, Transaction
from queue_pipeline.transport.dialect import Bounds, OpenReceiver
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.nginn.rows import is_nginn
from queue_pipeline.transport.ready import ReadyMessages
from queue_pipeline.transport.send import Sender

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST_BYTES = 256 * 1024 * 1024
"""What is received at once is one value of the database's, and has to fit into it."""


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """Messages that this transaction has deleted from their queue; whoever raises puts them back."""

    claim: Claim
    """Who received how much. It is written nowhere: the open transaction is all that holds the messages."""
    messages: pa.RecordBatch
    forwards: bool
    """Whether some of them only pass through on their way to another queue."""
    transaction: Transaction
    started: float


class OpenBatches:
    """Receives messages by the thousand, for as long as a block lasts."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender) -> None:
        self._database = database
        self._sender = sender
        self._store = ClaimStore(database, book)

    def serves(self, queue: QueueTable) -> bool:
        """Whether a queue can be received from like this."""
        return isinstance(self._database.dialect, OpenReceiver) and not is_nginn(queue)

    def newest(self, queue: QueueTable) -> int | None:
        """The row version of the newest message, whoever holds it; None when there is none."""
        command = self._database.dialect.statement("nservicebus/newest", queue=queue)
        found = self._database.run(lambda own: own.rows(command)[0][0], write=False)
        return None if found is None else int(found)

    @contextlib.contextmanager
    def take(self, queue: QueueTable, owner: str, bounds: Bounds, lease_seconds: float) -> Iterator[OpenBatch | None]:
        """The oldest messages that nobody else holds, in order; None when there are none.

        Leaving the block commits, an exception rolls back. The server ends a
        transaction from which it hears nothing for as long as the lease.
        """
        dialect = self._database.dialect
        if not isinstance(dialect, OpenReceiver) or is_nginn(queue):
            raise ConfigurationError(f"queue {queue} cannot be received from in an open batch; claim its messages")
        with self._database.transaction() as transaction:
            yield self._receive(dialect, transaction, queue, owner, bounds, lease_seconds)

    def _receive(
        self,
        dialect: OpenReceiver,
        transaction: Transaction,
        queue: QueueTable,
        owner: str,
        bounds: Bounds,
        lease_seconds: float,
    ) -> OpenBatch | None:
        started = time.monotonic()
        bounded, expired = Bounds(bounds.messages, min(bounds.bytes, LARGEST_BYTES)), 0
        while True:
            received = dialect.receive_many(transaction, queue, bounded, lease_seconds)
            expired += received.expired
            if received.messages.num_rows:
                break
            if not received.expired:
                return None
        # Arrow takes a third of a second to import, and whoever receives has done so.
        from queue_pipeline.transport.claimed_columns import content_bytes

        rows = received.messages
        claim = Claim(
            claim_id=str(uuid.uuid4()),
            queue=queue.canonical,
            owner=owner,
            attempt=1,
            messages=rows.num_rows,
            bytes=content_bytes(rows),
            first_row_version=rows.column("row_version")[0].as_py(),
            expired=expired,
        )
        return OpenBatch(claim, rows, received.forwards, transaction, started)

    def write(
        self, batch: OpenBatch, ready: Sequence[ReadyMessages], work: Callable[[Transaction], object] | None = None
    ) -> int:
        """Write what comes of a batch into its transaction; returns how many messages were sent.

        `work` runs the caller's own statements there.
        """
        if work is not None:
            work(batch.transaction)
        sent = self._sender.dispatch_ready(ready, batch.transaction)
        held = round((time.monotonic() - batch.started) * 1000)
        self._store.record(batch.transaction, batch.claim, sent, held)
        return sent
