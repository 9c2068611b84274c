"""Our side of a mixed fleet on an NGinn queue: batches are completed, failed, given back or forgotten, or it dies."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import time
from collections.abc import Sequence

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.transport import Operation, OutgoingMessage, QueueTransport
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claims import ClaimedMessages
from queue_pipeline.transport.claims.completion import Completion, FailedRow
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline.transport.messages.message import ReceivedMessage
from queue_pipeline_tests.support.nginn.nginn_peer import DEADLINE_SECONDS, Peer, is_refused

ALIAS = "shop"
RESULTS = "results"
BATCH = 15
LEASE_SECONDS = 5.0
FORGOTTEN_SECONDS = 0.05
DYING_SECONDS = 1.0
SETTINGS = NGinnSettings(aliases=(ALIAS,), endpoint=f"sql://{ALIAS}/Worker")


def number_of(message: ReceivedMessage) -> int:
    """The number that its sender gave a message."""
    return int(json.loads(message.body)["n"])


class Worker:
    """Claims batch after batch of one queue."""

    def __init__(self, transport: QueueTransport, table: str, seed: int, refuse_every: int, wait: float) -> None:
        self._transport = transport
        self._queue = f"sql://{ALIAS}/{table}"
        self._owner = f"worker {os.getpid()}"
        self._chance = random.Random(seed)
        self._refuse_every = refuse_every
        self._wait = round(wait * 1000)

    def work(self, peer: Peer) -> None:
        """Go on until nothing is left."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            self._transport.move_due(self._transport.resolve(self._queue))
            if not self._take_one_batch():
                if peer.is_over():
                    return
                time.sleep(0.01)
        raise TimeoutError("messages are left over")

    def die(self, completing: bool) -> None:
        """Take a batch, and be killed with it in hand, or in the middle of its completion."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(ClaimLostError):
                if claim := self._claim(DYING_SECONDS):
                    found = self._transport.claims.messages(claim)
                    if completing:
                        self._complete(claim, found, ())
                    _kill_me()
        raise TimeoutError("there was nothing to die with")

    def _take_one_batch(self) -> bool:
        what = self._chance.choices(("complete", "complete late", "give back", "forget"), (60, 25, 10, 5))[0]
        lease = LEASE_SECONDS if what in ("complete", "give back") else FORGOTTEN_SECONDS
        claim = self._claim(lease)
        if claim is None:
            return False
        try:
            found = self._transport.claims.messages(claim)
            assert not found.poison
            if what == "give back":
                self._transport.claims.give_back(claim)
            elif what != "forget":
                if what == "complete late":
                    # Peers take what they find; the rest of them may still be ours.
                    time.sleep(1.5 * lease)
                failing = self._chance.choice((0, 0, 0, 1, len(found.good) // 3))
                self._complete(claim, found, self._chance.sample(found.good, min(failing, len(found.good))))
        except ClaimLostError:
            # A peer marked one of them, or the lease had expired; what is left of it is free for the next.
            with contextlib.suppress(ClaimLostError):
                self._transport.claims.release(claim)
        return True

    def _claim(self, lease_seconds: float) -> Claim | None:
        return self._transport.claim(self._queue, self._owner, BATCH, lease_seconds=lease_seconds)

    def _complete(self, claim: Claim, found: ClaimedMessages, failing: Sequence[ReceivedMessage]) -> None:
        refused = [one for one in found.good if is_refused(number_of(one), self._refuse_every)]
        later = [one for one in failing if one not in refused]
        marks = [FailedRow(one.row_version, "refused") for one in refused]
        marks += [FailedRow(one.row_version, "failed", self._wait) for one in later]
        done = [one for one in found.good if one not in refused and one not in later]
        results = [Operation(RESULTS, OutgoingMessage(str(number_of(one)).encode(), {})) for one in done]
        self._transport.claims.complete(Completion(claim, results, self._in_completion, failed=marks, read=found.read))

    def _in_completion(self, transaction: object) -> None:
        """What is done in the completing transaction."""


class Doomed(Worker):
    """Is killed inside the transaction that completes its batch."""

    def _in_completion(self, transaction: object) -> None:
        _kill_me()


def _kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """`work` until nothing is left, or die `holding` or `completing` a batch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["work", "holding", "completing"])
    parser.add_argument("url")
    parser.add_argument("--schema")
    parser.add_argument("--table", required=True)
    parser.add_argument("--wait", type=float, default=0.05, help="seconds before each retry")
    parser.add_argument("--refuse-every", type=int, default=0, help="one message in N is refused for good")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--members", type=int, default=1, help="it begins when N processes are there")
    given = parser.parse_args()
    kind = Doomed if given.part == "completing" else Worker
    with QueueTransport(given.url, schema=given.schema, nginn=SETTINGS) as transport:
        worker = kind(transport, given.table, given.seed, given.refuse_every, given.wait)
        peer = Peer(transport.database, given.schema, given.table)
        peer.join(given.members)
        if given.part == "work":
            worker.work(peer)
        else:
            worker.die(completing=given.part == "completing")


if __name__ == "__main__":
    main()
