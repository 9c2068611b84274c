"""Browse: messages of a queue, or its failed ones, read in pages and left where they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from queue_pipeline.transport.browsed import Browsed, BrowsedMessage
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialect import BEFORE_ALL
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.failed_messages import failed_in_chosen
from queue_pipeline.transport.layouts.nginn.browsed_rows import browsed_row
from queue_pipeline.transport.layouts.nginn.endpoint import NGINN
from queue_pipeline.transport.messages import from_row
from queue_pipeline.transport.queues import AddressBook, QueueTable

DEFAULT_LIMIT = 1_000
PAGE = 200
"""Bodies of a page are in memory together."""

Wanted = Callable[[BrowsedMessage], bool]


class Browser:
    """Reads pages of a queue without a lock and without a transaction in between."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book
        self._pages = {"nservicebus": self._page, NGINN: self._page_in_place}

    def browse(self, queue: QueueTable, limit: int | None = DEFAULT_LIMIT) -> Browsed:
        """The oldest messages that wait; without a limit all of them."""
        return Browsed(str(queue), _first(queue, self.scan(queue), limit))

    def browse_failed(
        self, queue: QueueTable, selection: Selection | None = None, limit: int | None = DEFAULT_LIMIT
    ) -> Browsed:
        """The oldest messages of an error queue, or those of an NGinn queue that failed for good."""
        found: Iterable[BrowsedMessage] = self.scan(queue, failed=True)
        if selection is not None:
            is_meant = failed_in_chosen(self._book, selection)
            found = (one for one in found if selection.matches(one, is_meant))
        return Browsed(str(queue), _first(queue, found, limit), failed=True)

    def scan(self, queue: QueueTable, *, failed: bool = False, after: int = BEFORE_ALL) -> Iterator[BrowsedMessage]:
        """Messages after a row version, in order, as they are asked for."""
        read = self._pages[queue.layout]

        def look(own: Transaction) -> Sequence[BrowsedMessage]:
            return read(own, queue, failed, after)

        while page := self._database.run(look, write=False):
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].row_version

    def _page(self, own: Transaction, queue: QueueTable, failed: bool, after: int) -> Sequence[BrowsedMessage]:
        """An error queue is a queue like any other."""
        dialect = self._database.dialect
        names = dialect.optional_columns(self._database.shapes.columns(own, queue), "q")
        command = dialect.statement("nservicebus/queue.browse", queue=queue, **names)
        return [_message(*row) for row in own.rows(command, after=after, limit=PAGE)]

    def _page_in_place(self, own: Transaction, queue: QueueTable, failed: bool, after: int) -> Sequence[BrowsedMessage]:
        name = "nginn/queue.failed_browse" if failed else "nginn/queue.browse"
        rows = own.rows(self._database.dialect.statement(name, queue=queue), after=after, limit=PAGE)
        return [browsed_row(queue, row, self._book.nginn, failed=failed) for row in rows]


def _message(
    row_id: str,
    row_version: int,
    expired: int,
    header_text: str,
    body: bytes | None,
    correlation_id: str | None,
    reply_to: str | None,
) -> BrowsedMessage:
    content = bytes(body or b"")
    try:
        found = from_row(row_id, row_version, header_text, content, correlation_id, reply_to)
    except ValueError as error:
        return BrowsedMessage(str(row_id).lower(), int(row_version), {}, content, bool(expired), str(error))
    return BrowsedMessage(found.id, found.row_version, found.headers, found.body, bool(expired))


def _first(queue: QueueTable, found: Iterable[Any], limit: int | None) -> list[Any]:
    if limit is not None and limit < 1:
        raise ConfigurationError(f"queue {queue}: {limit} messages to browse; ask for at least one, or None for all")
    return list(itertools.islice(found, limit))
