"""A TCP proxy in front of a server that cuts connections on demand: at once, or right after a COMMIT passed it.

The second kind leaves the client without an answer to a commit that the server carries out.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe

CUT, CUT_AT_COMMIT, COUNT = "cut", "cut at commit", "count"
_CHUNK = 256 * 1024
_RESET = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class _Link:
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    ends_at_commit: bool = False

    def cut(self) -> None:
        """End both sides by a reset, as a network that is gone does."""
        for writer in (self.client, self.server):
            # One side may be closed already.
            with suppress(OSError):
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            writer.transport.abort()

    def close_client(self) -> None:
        """Leave the client without an answer; the server hears nothing before it has done its work."""
        self.client.transport.abort()


class _Proxy:
    def __init__(self, host: str, port: int, pipe: Pipe, seed: int) -> None:
        self._target = (host, port)
        self._pipe = pipe
        self._chance = random.Random(seed)
        self._links: set[_Link] = set()
        self._cut_at_commit = 0

    async def serve(self) -> None:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_CHUNK)
        asyncio.get_running_loop().add_reader(self._pipe.fileno(), self._obey)
        self._pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    def _obey(self) -> None:
        """Answer a command of the coordinator with how many connections were cut since the last one."""
        try:
            command = self._pipe.recv()
        except EOFError:
            raise SystemExit from None
        links = self._chance.sample(sorted(self._links, key=id), min(len(self._links), self._chance.choice((1, 2, 4))))
        if command == CUT:
            for link in links:
                link.cut()
            self._pipe.send(len(links))
            return
        for link in links if command == CUT_AT_COMMIT else ():
            link.ends_at_commit = True
        self._pipe.send(self._cut_at_commit)
        self._cut_at_commit = 0

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        try:
            answers, server = await asyncio.open_connection(*self._target, limit=_CHUNK)
        except OSError:
            client.transport.abort()
            return
        link = _Link(client, server)
        self._links.add(link)
        try:
            await asyncio.gather(self._to_server(reader, link), self._to_client(answers, link))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._links.discard(link)
            client.transport.abort()
            server.close()

    async def _to_server(self, reader: asyncio.StreamReader, link: _Link) -> None:
        while data := await reader.read(_CHUNK):
            link.server.write(data)
            if link.ends_at_commit and b"COMMIT" in data:
                self._cut_at_commit += 1
                await link.server.drain()
                link.close_client()
                break
            await link.server.drain()
        link.server.write_eof()

    async def _to_client(self, answers: asyncio.StreamReader, link: _Link) -> None:
        while data := await answers.read(_CHUNK):
            link.client.write(data)
            await link.client.drain()
        link.client.transport.abort()


def main(host: str, port: int, seed: int, pipe: Pipe) -> None:
    """Serve until the coordinator is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_Proxy(host, port, pipe, seed).serve())
