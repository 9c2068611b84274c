"""Connections kept open between uses, one pool a process."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from typing import Any

MAX_IDLE = 8


class ConnectionPool:
    """Hands out open connections; a broken one is closed and replaced by a new one."""

    def __init__(self, open_connection: Callable[[], Any], is_alive: Callable[[Any], bool]) -> None:
        self._open = open_connection
        self._is_alive = is_alive
        self._lock = threading.Lock()
        self._idle: list[Any] = []
        self._process = os.getpid()
        self._inherited: list[Any] = []

    def take(self) -> Any:
        """An open connection: the last one used if it still answers, else a new one."""
        while True:
            with self._lock:
                self._forget_parent()
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._open()
            if self._is_alive(connection):
                return connection
            self.discard(connection)

    def give_back(self, connection: Any) -> None:
        """Keep a connection, with no transaction open on it, for the next user."""
        with self._lock:
            self._forget_parent()
            if len(self._idle) < MAX_IDLE:
                self._idle.append(connection)
                return
        self.discard(connection)

    def discard(self, connection: Any) -> None:
        """Close a connection that is not to be used again; it may be broken, so closing may fail."""
        with contextlib.suppress(Exception):
            connection.close()

    def close(self) -> None:
        """Close every idle connection."""
        with self._lock:
            self._forget_parent()
            idle, self._idle = self._idle, []
        for connection in idle:
            self.discard(connection)

    def _forget_parent(self) -> None:
        """After a fork the sockets belong to the parent: keep the objects, so that nothing closes them."""
        if self._process != os.getpid():
            self._inherited += self._idle
            self._idle = []
            self._process = os.getpid()
