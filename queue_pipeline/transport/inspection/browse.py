"""Browse: messages of a queue, or its failed ones, read in pages and left where they are."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.database.transaction import Transaction
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.failed_messages import failed_in_chosen
from queue_pipeline.transport.inspection.browsed import Browsed, BrowsedMessage
from queue_pipeline.transport.inspection.conditions import Condition, Page
from queue_pipeline.transport.layouts.layout import Layouts

DEFAULT_LIMIT = 1_000
PAGE = 200
"""Bodies of a page are in memory together."""

Progress = Callable[[int], object]
"""Takes how many messages were read so far."""


class Browser:
    """Reads pages of a queue without a lock and without a transaction in between."""

    def __init__(self, database: Database, book: AddressBook, layouts: Layouts) -> None:
        self._database = database
        self._book = book
        self._layouts = layouts

    def browse(
        self, queue: QueueTable, limit: int | None = DEFAULT_LIMIT, on_progress: Progress | None = None
    ) -> Browsed:
        """The oldest messages that wait; without a limit all of them."""
        return Browsed(str(queue), _first(queue, self.scan(queue), limit, on_progress))

    def browse_failed(
        self,
        queue: QueueTable,
        selection: Selection | None = None,
        limit: int | None = DEFAULT_LIMIT,
        on_progress: Progress | None = None,
    ) -> Browsed:
        """The oldest messages of an error queue, or those of an NGinn queue that failed for good."""
        found: Iterator[BrowsedMessage] = self.scan(queue, failed=True)
        if selection is not None:
            is_meant = failed_in_chosen(self._book, selection)
            found = (one for one in found if selection.matches(one, is_meant))
        return Browsed(str(queue), _first(queue, found, limit, on_progress), failed=True)

    def scan(
        self,
        queue: QueueTable,
        *,
        failed: bool = False,
        conditions: Sequence[Condition] = (),
        with_body: bool = True,
    ) -> Iterator[BrowsedMessage]:
        """Messages that meet all conditions, in order, as they are asked for; without bodies, those are empty."""
        rows = self._layouts.of(queue).rows
        after = BEFORE_ALL

        def look(own: Transaction) -> Sequence[BrowsedMessage]:
            return rows.browse(own, queue, Page(after, PAGE, tuple(conditions), with_body), failed=failed)

        while page := self._database.run(look, write=False):
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1].row_version


def _first(queue: QueueTable, found: Iterator[Any], limit: int | None, on_progress: Progress | None) -> list[Any]:
    if limit is not None and limit < 1:
        raise ConfigurationError(f"queue {queue}: {limit} messages to browse; ask for at least one, or None for all")
    first: list[Any] = []
    while page := list(itertools.islice(found, PAGE if limit is None else min(PAGE, limit - len(first)))):
        first += page
        if on_progress is not None:
            on_progress(len(first))
    return first
