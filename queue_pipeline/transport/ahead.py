"""Making the next item while the last one is being used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made by a thread of its own while the caller is busy with the one before.

    The first is made here, so that a single item costs no thread.
    """
    nothing = object()
    first = next(items, nothing)
    if first is nothing:
        return
    second = next(items, nothing)
    yield first  # type: ignore[misc]
    if second is nothing:
        return
    with ThreadPoolExecutor(1) as thread:
        item: object = second
        while item is not nothing:
            upcoming = thread.submit(next, items, nothing)
            yield item  # type: ignore[misc]
            item = upcoming.result()
