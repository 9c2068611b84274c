"""A network partition for one server: a TCP proxy whose connections fall silent without being closed."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
from types import TracebackType
from typing import Self

_ATTACH_FILTER = 26
_DROP_ALL = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
"""A program of the kernel's packet filter: `ret 0`."""


def drop_packets(side: socket.socket) -> None:
    """Let the kernel drop all that arrives for a socket: nothing is acknowledged, no keep-alive probe either."""
    side.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HL", 1, ctypes.addressof(_DROP_ALL)))


def _fatal() -> bytes:
    fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"
    return b"E" + struct.pack("!I", len(fields) + 4) + fields


class Partition:
    """Forwards connections to a port of this machine, until one sends certain words and both its ends are cut off."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sides: list[socket.socket] = []
        self._words: bytes | None = None
        self._delivered = False
        self._last_words: bytes | None = None
        self.cut = threading.Event()
        """Set once a connection was cut off."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for side in [self._listener, *self._sides]:
            side.close()

    def cut_at(self, words: bytes, *, delivered: bool) -> None:
        """Cut off the next connection that sends these words to the server, after they were delivered or before."""
        self._words, self._delivered = words, delivered
        self.cut.clear()

    def end_after(self, words: bytes) -> None:
        """End the next connection in whose answers these words are, in the middle of the answer, as the server does."""
        self._last_words = words
        self.cut.clear()

    def _accept(self) -> None:
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._sides += [client, server]
            silent = threading.Event()
            for forward, ends in ((self._to_server, (client, server)), (self._to_client, (server, client))):
                threading.Thread(target=forward, args=(*ends, silent), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, silent: threading.Event) -> None:
        try:
            while data := client.recv(65_536):
                if self._words is not None and self._words in data:
                    self._words = None
                    silent.set()
                    drop_packets(client)
                    if self._delivered:
                        server.sendall(data)
                    drop_packets(server)
                    self.cut.set()
                    return
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def _to_client(self, server: socket.socket, client: socket.socket, silent: threading.Event) -> None:
        try:
            while (data := server.recv(65_536)) and not silent.is_set():
                if (words := self._last_words) is not None and words in data:
                    self._last_words = None
                    client.sendall(data[: data.index(words) + len(words)] + _fatal())
                    self.cut.set()
                    client.shutdown(socket.SHUT_RDWR)
                    server.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)
            if not silent.is_set():
                client.shutdown(socket.SHUT_WR)
        except OSError:
            return
