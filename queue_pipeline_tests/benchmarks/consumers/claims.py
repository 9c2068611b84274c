"""The transport of ours in one of several receiving processes: claim and complete, nothing made of it."""

from __future__ import annotations

import os

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.completion import Completion


class Claims:
    """Claims batch after batch of one queue and completes each."""

    def __init__(self, url: str) -> None:
        self._transport = QueueTransport(url)
        self._owner = f"receiver {os.getpid()}"

    def drain(self, queue: str, batch: int) -> int:
        """Work until the queue is empty; how many messages that were."""
        done = 0
        while claim := self._transport.claim(queue, self._owner, batch):
            self._transport.claims.complete(Completion(claim, read=None))
            done += claim.messages
        return done
