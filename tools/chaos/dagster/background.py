"""What goes on beside the faults: each in a thread of its own, until it is closed."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod


class Background(ABC):
    """Something that runs from its start until it is closed."""

    def __init__(self, name: str) -> None:
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, and wait for that."""
        self._is_closed.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Work until `_is_closed` is set."""
