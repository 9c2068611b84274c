"""Failed messages: looking through an error queue, returning messages to their source, and discarding them."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from queue_pipeline.errors import AddressError, ConfigurationError, check_positive
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.database.statements import numbered_values
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.failed.failed_message import Group, Selection
from queue_pipeline.transport.failed.returns import Retried, Returner, Routes
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.inspection.conditions import Condition, Page
from queue_pipeline.transport.layouts.layout import Rows
from queue_pipeline.transport.layouts.nservicebus.forwarding import parts
from queue_pipeline.transport.messages.message import Destination
from queue_pipeline.transport.send import Sender

DEFAULT_LIMIT = 100
DEFAULT_BATCH = 500
DEFAULT_MOST_COUNTED = 10_000
PAGE = 500
BATCH_BYTES = 64 * 1024 * 1024

Progress = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Groups:
    """Failed messages by what they have in common, the most frequent first; counted up to a limit."""

    counts: list[tuple[Group, int]]
    messages: int
    capped: bool


class FailedMessages:
    """Lists, finds, counts, retries and discards; however long an error queue is, a page of it is in memory."""

    def __init__(self, database: Database, book: AddressBook, sender: Sender, rows: Rows) -> None:
        self._database = database
        self._book = book
        self._sender = sender
        self._rows = rows

    def find(self, error_queue: Destination, identity: str) -> BrowsedMessage | None:
        """The oldest message with this id, or in the row with this id, with its body."""
        queue = self._queue(error_queue)
        for message in self._scan(queue, Selection(ids=(identity,))):
            # None if another process took it meanwhile.
            for whole in self._page(queue, message.row_version - 1, message.row_version, with_body=True):
                return whole
        return None

    def missing(self, error_queue: Destination, ids: Collection[str]) -> Sequence[str]:
        """Those ids that no message here has."""
        left = [*dict.fromkeys(ids)]
        for message in self._scan(self._queue(error_queue), Selection(ids=tuple(left))) if left else ():
            left = [each for each in left if each != message.message_id and each.lower() != message.id]
        return left

    def last_row_version(self, error_queue: Destination) -> int:
        """How far the queue goes now; what fails later lies beyond."""
        queue = self._queue(error_queue)
        command = self._database.dialect.statement(f"{queue.layout}/failed.last", queue=queue)
        last = self._database.rows(command)[0][0]
        return BEFORE_ALL if last is None else int(last)

    def count(self, error_queue: Destination, selection: Selection | None = None, up_to: int | None = None) -> int:
        """How many messages there are, or are chosen, up to a row version."""
        return sum(1 for _ in self._scan(self._queue(error_queue), selection, up_to))

    def count_by(
        self, error_queue: Destination, selection: Selection | None = None, limit: int = DEFAULT_MOST_COUNTED
    ) -> Groups:
        """How many messages failed alike: by message type, exception and queue. Counts no further than a limit."""
        queue = self._queue(error_queue)
        check_positive(queue, limit, f"a count of {limit} messages")
        found = itertools.islice(self._scan(queue, selection), limit)
        counts = Counter(Group(each.message_type, each.exception_type, each.failed_queue) for each in found)
        return Groups(counts.most_common(), counts.total(), counts.total() >= limit)

    def retry(
        self,
        error_queue: Destination,
        selection: Selection,
        to: Destination | None = None,
        batch: int = DEFAULT_BATCH,
        on_progress: Progress | None = None,
        up_to: int | None = None,
    ) -> Retried:
        """Return chosen messages to their queues, or all to one, a batch per transaction; others are reported."""
        queue = self._queue(error_queue)
        check_positive(queue, batch, f"a batch of {batch} messages")
        routes = Routes(self._database, self._book, queue, None if to is None else self._book.resolve(to))
        returner, result = Returner(self._database, self._book, self._sender, queue), Retried()
        for messages in self._batches(queue, selection, batch, up_to):
            returner.move(messages, routes, result)
            if on_progress is not None:
                on_progress(result.done)
        return result

    def discard(
        self,
        error_queue: Destination,
        selection: Selection,
        batch: int = DEFAULT_BATCH,
        on_progress: Progress | None = None,
        up_to: int | None = None,
    ) -> int:
        """Delete chosen messages for good, a batch in a transaction; returns how many there were."""
        queue = self._queue(error_queue)
        check_positive(queue, batch, f"a batch of {batch} messages")
        command = self._database.dialect.statement(f"{queue.layout}/failed.drop", queue=queue)
        total = 0

        def drop(own: Transaction, versions: Sequence[int]) -> int:
            return sum(
                own.count(command.repeated(len(part)), **numbered_values("row_version", part))
                for part in parts(versions)
            )

        for messages in self._batches(queue, selection, batch, up_to):
            versions = [message.row_version for message in messages]
            total += self._database.run(functools.partial(drop, versions=versions))
            if on_progress is not None:
                on_progress(total)
        return total

    def list(
        self,
        error_queue: Destination,
        selection: Selection | None = None,
        limit: int = DEFAULT_LIMIT,
        after: int = BEFORE_ALL,
    ) -> list[BrowsedMessage]:
        """The oldest messages, or the oldest of the chosen ones, after a row version; left where they are."""
        queue = self._queue(error_queue)
        check_positive(queue, limit, f"a list of {limit} messages")
        return [*itertools.islice(self._scan(queue, selection, after=after), limit)]

    def _scan(
        self, queue: QueueTable, selection: Selection | None, up_to: int | None = None, after: int = BEFORE_ALL
    ) -> Iterator[BrowsedMessage]:
        """The chosen messages, oldest first, as far as the queue goes now; no lock and no transaction in between."""
        failed_in = failed_in_chosen(self._book, selection)
        last = self.last_row_version(queue) if up_to is None else up_to
        while after < last:
            page = self._page(queue, after, last)
            for message in page:
                if selection is None or selection.matches(message, failed_in):
                    yield message
            if len(page) < PAGE:
                return
            after = page[-1].row_version

    def _page(self, queue: QueueTable, after: int, last: int, *, with_body: bool = False) -> Sequence[BrowsedMessage]:
        page = Page(after, PAGE, (Condition("row_version", "<=", (last,)),), with_body)
        return self._database.run(lambda own: self._rows.browse(own, queue, page, failed=True), write=False)

    def _queue(self, error_queue: Destination) -> QueueTable:
        """The table of an error queue; an NGinn queue is none, it keeps its failed messages itself."""
        queue = self._book.resolve(error_queue)
        if not self._database.dialect.has(f"{queue.layout}/failed.take"):
            raise ConfigurationError(
                f"{queue} is no error queue: an NGinn queue keeps its failed messages itself; see them with: "
                f"queue-pipeline nginn failed {queue}"
            )
        return queue

    def _batches(
        self, queue: QueueTable, selection: Selection, batch: int, up_to: int | None
    ) -> Iterator[Sequence[BrowsedMessage]]:
        """The chosen messages, cut by number and by the size of their bodies, which are in memory together."""
        most = min(batch, self._database.dialect.rows_per_take)
        cut: list[BrowsedMessage] = []
        size = 0
        for message in self._scan(queue, selection, up_to):
            if cut and (len(cut) >= most or size + message.body_size > BATCH_BYTES):
                yield cut
                cut, size = [], 0
            cut.append(message)
            size += message.body_size
        if cut:
            yield cut


def failed_in_chosen(book: AddressBook, selection: Selection | None) -> Callable[[str], bool]:
    """Whether an address means the queue that was chosen, however either of the two is written."""
    if selection is None or selection.failed_queue is None:
        return lambda _: True
    wanted = book.resolve(selection.failed_queue)

    @functools.lru_cache(maxsize=1_000)
    def same(address: str) -> bool:
        try:
            return book.resolve(address) == wanted
        except AddressError:
            return False

    return same
