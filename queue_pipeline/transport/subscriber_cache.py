"""Who subscribed, remembered for a few seconds: publishing must not mean a query a message."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future

Topics = frozenset[str]
Addresses = tuple[str, ...]


class SubscriberCache:
    """Addresses by the topics that they were asked for; of several threads that ask at once, one loads for all."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        """Known answers are good for so many seconds; 0 asks every time."""
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: dict[Topics, _Entry] = {}

    def get(self, topics: Topics, load: Callable[[], Addresses]) -> Addresses:
        """The addresses, known or loaded. What could not be loaded is not remembered: the next one asks again."""
        while True:
            with self._lock:
                entry = self._entries.get(topics)
                is_mine = entry is None or self._clock() >= entry.until
                if entry is None or is_mine:
                    entry = self._entries[topics] = _Entry()
            if is_mine:
                return self._load(topics, entry, load)
            error = entry.loaded.exception()
            if error is None:
                return entry.loaded.result()
            # One who was interrupted while loading has no answer for others: they ask again.
            if isinstance(error, Exception):
                raise error

    def forget(self, topics: Iterable[str]) -> None:
        """Drop what is known of these topics, and what is being loaded, which may be from before the change."""
        changed = set(topics)
        with self._lock:
            for known in [known for known in self._entries if known & changed]:
                del self._entries[known]

    def _load(self, topics: Topics, entry: _Entry, load: Callable[[], Addresses]) -> Addresses:
        try:
            found = load()
        except BaseException as error:
            with self._lock:
                if self._entries.get(topics) is entry:
                    del self._entries[topics]
            entry.loaded.set_exception(error)
            raise
        entry.until = self._clock() + self._seconds
        entry.loaded.set_result(found)
        return found


class _Entry:
    """An answer, or the promise of one."""

    def __init__(self) -> None:
        self.until = float("inf")
        self.loaded: Future[Addresses] = Future()
