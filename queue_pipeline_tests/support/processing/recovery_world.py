"""A pipeline with its queues and holders, all that may happen to them, and what has to hold after each step."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pytest

from queue_pipeline.errors import ClaimLostError
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.errors import EverythingFailsError
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import new_message
from queue_pipeline.transport.addresses.queues import CLAIMED_SUFFIX, CLAIMS_TABLE, DELAYED_SUFFIX, FAILURES_TABLE
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.databases.elapsed import end_delays, end_leases
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer, Poisoned
from queue_pipeline_tests.support.processing.recovering import THIS_CODE

POLICY = Recoverability(immediate_retries=1, delayed_retries=1, rate_limit_after=None)
KINDS = ("good", "always failing", "failing once", "failing three times", "refused", "crashing")
UNSTEADY = {"failing once": 1, "failing three times": 3}
ROUNDS_TO_SETTLE = 40
EVERYTHING = Selection(everything=True)


class Crash(BaseException):
    """Stands for the death of a process: no `except Exception` catches it."""


class FlakyTransformer(PlainTransformer):
    """Fails by what stands in a body, until it is fixed."""

    def __init__(self) -> None:
        super().__init__(self._fail)
        self.state = "failing by body"
        self._failed: Counter[bytes] = Counter()
        self._own_lock = threading.Lock()

    def put(self, state: str, everything: Sequence[bytes]) -> None:
        """Fix it, break it for all messages, or let it fail by the bodies again."""
        self.state = state
        refused = [body for body in everything if kind_of(body) == "refused" and state == "failing by body"]
        self.refuse = dict.fromkeys(refused, "not this one")

    def _fail(self, bodies: Sequence[bytes]) -> None:
        if self.state == "broken":
            raise ArithmeticError("it works on nothing")
        for body in bodies:
            kind = kind_of(body)
            if kind in UNSTEADY:
                with self._own_lock:
                    self._failed[body] += 1
                    if self._failed[body] <= UNSTEADY[kind]:
                        raise Poisoned(f"not yet: {kind}")
            elif kind == "always failing" and self.state == "failing by body":
                raise Poisoned(kind)
            elif kind == "crashing" and self.state == "failing by body":
                raise Crash


def kind_of(body: bytes) -> str:
    return body.decode().partition(" ")[2]


class World:
    """A pipeline, its queues, those who hold its batches, and what is known of every message that was sent."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.transport = backend.transport(endpoint="orders")
        self.transport.install("orders", plain_queues=["billing", "error"])
        self._orders = self.transport.resolve("orders")
        book = self.transport.book
        self._tables = {queue: self.transport.resolve(queue).qualified for queue in ("orders", "billing", "error")}
        self._tables |= {
            suffix: book.sibling(self._orders, suffix).qualified for suffix in (DELAYED_SUFFIX, CLAIMED_SUFFIX)
        }
        self._claims = book.own(CLAIMS_TABLE).qualified
        self._failures = book.own(FAILURES_TABLE).qualified

    def begin(self) -> None:
        """Empty every table, and know of nothing: examples share them."""
        for table in (*self._tables.values(), self._claims, self._failures):
            self._sql(f"DELETE FROM {table}")
        self.transformer = FlakyTransformer()
        self.bodies: dict[str, bytes] = {}
        self.discarded: set[str] = set()
        self.held: list[Claim] = []
        self.stale: list[Claim] = []
        self.uncounted = 0
        self._owners = 0

    # --- what may happen ---------------------------------------------------------------------------------------

    def send(self, kinds: Sequence[str]) -> None:
        """Send a message of each kind."""
        messages = [new_message(f"{len(self.bodies) + n} {kind}") for n, kind in enumerate(kinds)]
        self.bodies |= {message.headers[wire.MESSAGE_ID]: message.body for message in messages}
        self.transport.send("orders", messages)
        self.transform(self.transformer.state)

    def transform(self, state: str) -> None:
        """Fix the transform, break it, or let it fail by the bodies."""
        self.transformer.put(state, list(self.bodies.values()))

    def run(self, slots: int, batch: int, end: str) -> None:
        """One run. If it dies, it releases nothing itself; `end` says how its leases end."""
        pipeline, owner = self._pipeline(batch), self._new_owner()
        recovery = Recovery(pipeline, self.transport, self.transformer, proof=THIS_CODE)
        is_dead = threading.Event()

        release = self.transport.claims.release

        def attempt(claim: Claim) -> Any:
            try:
                return Recovery.attempt(recovery, claim)
            except Crash:
                is_dead.set()
                raise

        with (
            mock.patch.object(recovery, "attempt", attempt),
            mock.patch.object(
                self.transport.claims, "release", lambda claim: None if is_dead.is_set() else release(claim)
            ),
        ):
            ended = PipelineRun(pipeline, self.transport, owner, recovery, slots=slots, on_attempt=self._note).run()
        if isinstance(ended.failure, EverythingFailsError):
            self.uncounted += 1
        else:
            assert (ended.failure is not None) == is_dead.is_set(), ended
        if is_dead.is_set():
            self._end(owner, end)

    def take(self, batch: int) -> None:
        """Somebody takes a batch and holds it."""
        claim = self.transport.claim("orders", self._new_owner(), batch)
        if claim is not None:
            self.held.append(claim)

    def try_held(self, which: int, end: str) -> None:
        """Somebody tries the batch that it holds."""
        if claim := self._pick_held(which):
            try:
                recovery = Recovery(self._pipeline(10), self.transport, self.transformer, proof=THIS_CODE)
                attempted = recovery.attempt(claim)
            except Crash:
                self.held.append(claim)
                self._end(claim.owner, end)
            except EverythingFailsError:
                self.uncounted += 1
                self.held.append(claim)
            else:
                self._note(attempted)
                self.held += [*attempted.again, *attempted.later]
                if not attempted.again and not attempted.later:
                    self.stale.append(claim)

    def die(self, which: int, end: str) -> None:
        """Somebody dies with all that it holds, but may come to life again."""
        if claim := self._pick_held(which):
            self.held.append(claim)
            self._end(claim.owner, end)

    def let_go(self, which: int) -> None:
        """An owner releases a batch, for others to take over."""
        if claim := self._pick_held(which):
            self.transport.claims.release(claim)
            self.stale.append(claim)

    def give_back(self, which: int) -> None:
        """Somebody puts a batch back into the queue."""
        if claim := self._pick_held(which):
            assert self.transport.claims.give_back(claim) == claim.messages
            # Failures are counted with the claim, and that is gone.
            self.uncounted += claim.failures
            self.stale.append(claim)

    def split(self, which: int, keep: int) -> None:
        """Somebody cuts a batch in two."""
        if claim := self._pick_held(which):
            parts = self.transport.claims.split(claim, 1 + keep % (claim.messages - 1)) if claim.messages > 1 else ()
            self.held += parts or (claim,)

    def adopt(self, which: int) -> None:
        """An owner takes over a batch from a holder that it knows to be dead."""
        if claim := self._pick_held(which):
            adopted = self.transport.claims.adopt(claim, self._new_owner())
            assert adopted is not None
            self.held.append(adopted)
            self.stale.append(claim)

    def adopt_too_late(self, which: int) -> None:
        """Somebody wants a batch that its holder lost; it gets it only if it is free."""
        if self.stale:
            stale = self.stale[which % len(self.stale)]
            free = {one.claim_id for one in self.transport.claims.list() if one.owner is None or one.lease_seconds <= 0}
            adopted = self.transport.claims.adopt(stale, self._new_owner())
            assert (adopted is not None) == (stale.claim_id in free)
            self.held += [adopted] if adopted else []

    def complete_too_late(self, which: int) -> None:
        """Somebody comes to life again and completes a batch that is no longer its own."""
        if self.stale:
            late = MessageColumns(
                "billing", False, ["late"], [NEVER_EXPIRES], [wire.encode({wire.MESSAGE_ID: "late"})], [b""]
            )
            with pytest.raises(ClaimLostError):
                self.transport.claims.complete(Completion(self.stale[which % len(self.stale)], sends=[late], read=None))

    def wait(self) -> None:
        """Delayed messages become due."""
        end_delays(self._backend, self.transport)
        self.transport.move_due(self._orders)

    def retry(self, which: int | None = None) -> None:
        """A person returns failed messages to their source: one, or all."""
        failed = self._failed_ids()
        chosen = failed if which is None else [failed[which % len(failed)]] if failed else []
        if chosen:
            selection = EVERYTHING if which is None else Selection(ids=tuple(chosen))
            assert self.transport.failed.retry("error", selection).returned == len(chosen)
        for message_id in chosen:
            del self.transformer.alone[self.bodies[message_id]]

    def discard(self, which: int) -> None:
        """A person deletes a failed message for good."""
        if failed := self._failed_ids():
            chosen = failed[which % len(failed)]
            assert self.transport.failed.discard("error", Selection(ids=(chosen,))) == 1
            self.discarded.add(chosen)

    # --- what has to hold --------------------------------------------------------------------------------------

    def check(self) -> None:
        """Every message is in one place, claims tell the truth, and nothing was tried too often."""
        places = {name: self._ids(name) for name in self._tables}
        results = {result_id(message_id): message_id for message_id in self.bodies}
        # A result stands for its message: one that is in a queue as well as among the results counts twice.
        found = Counter(results.get(identity, identity) for ids in places.values() for identity in ids)
        wanted = Counter({message_id: 1 for message_id in self.bodies if message_id not in self.discarded})
        assert found == wanted, {"missing": wanted - found, "too many": found - wanted, "places": places}
        assert not set(places["billing"]) & set(self.bodies), "a message itself stands among the results"
        assert "good" not in self.kinds("error"), "a message was blamed for what another did"
        claim_id = "claim_id" if self._backend.name == "postgresql" else "ClaimId"
        claimed = self._sql(f"SELECT {claim_id}, count(*) FROM {self._tables[CLAIMED_SUFFIX]} GROUP BY {claim_id}")
        counted = {str(identity).lower(): count for identity, count in claimed}
        assert {one.claim_id: one.messages for one in self.transport.claims.list()} == counted
        for body, tries in self.transformer.alone.items():
            assert tries <= POLICY.attempts + self.uncounted, body

    def settle(self) -> None:
        """All goes well from now on: everything comes out."""
        for claim in self.held:
            self.transport.claims.release(claim)
        self.held = []
        self.transform("fixed")
        for _ in range(ROUNDS_TO_SETTLE):
            self.run(1, 10, "failed")
            self.check()
            self.wait()
            self.retry()
            if all(not self._ids(name) for name in self._tables if name != "billing"):
                break
        left = {name: len(self._ids(name)) for name in self._tables}
        assert left == {**dict.fromkeys(left, 0), "billing": len(self.bodies) - len(self.discarded)}
        assert self.transport.claims.list() == []
        self.check()

    def kinds(self, queue: str) -> list[str]:
        """What kinds of messages are in a queue."""
        return sorted(kind_of(shown.body) for shown in self.transport.show(queue, 100))

    # --- helpers -----------------------------------------------------------------------------------------------

    def _pipeline(self, batch: int) -> QueuePipeline:
        return QueuePipeline(
            name="orders", input_queue="orders", transform=lambda messages: messages, linger_seconds=0, peek_delay=0.1,
            batch_messages=batch, recoverability=POLICY,
        )  # fmt: skip

    def _note(self, attempted: Attempted) -> None:
        """Attempts on messages whose verdict is not known yet are not counted."""
        self.uncounted += len(attempted.later)

    def _end(self, owner: str, end: str) -> None:
        """End the leases of the dead: as failed, cleanly, or by letting the time pass."""
        if end == "lease over":
            end_leases(self._backend, self.transport, owner)
            # No other owner has taken them over: the dead could still complete them, and that would be right.
            self.held = [claim for claim in self.held if claim.owner != owner]
            return
        self.transport.claims.release_owner(owner, died=end == "failed")
        self.uncounted += end == "cleanly"
        self.stale += [claim for claim in self.held if claim.owner == owner]
        self.held = [claim for claim in self.held if claim.owner != owner]

    def _pick_held(self, which: int) -> Claim | None:
        """A batch that is held; if there is none, one is taken now."""
        if not self.held:
            self.take(4)
        return self.held.pop(which % len(self.held)) if self.held else None

    def _new_owner(self) -> str:
        self._owners += 1
        return f"owner {self._owners}"

    def _failed_ids(self) -> list[str]:
        return [failed.message_id for failed in self.transport.failed.list("error")]

    def _ids(self, name: str) -> list[str]:
        return [
            wire.decode(text)[wire.MESSAGE_ID] for (text,) in self._sql(f"SELECT Headers FROM {self._tables[name]}")
        ]

    def _sql(self, statement: str) -> list[Any]:
        return self._backend.sql(self.transport, statement)


def result_id(message_id: str) -> str:
    """As the plain transformer makes it."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, message_id))
