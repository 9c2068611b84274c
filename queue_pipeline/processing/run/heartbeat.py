"""Keeps the leases of claims in work, and of the slots that they have, alive for as long as their process is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable
from types import TracebackType

from queue_pipeline.errors import ClaimLostError, QueuePipelineError
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.operations.slots import RunSlots

BEATS_PER_LEASE = 3
"""How often a lease is renewed before it would end."""
RETRY_SECONDS = 5.0
"""How soon a renewal that failed is tried again: the database may be back, and the lease nearly over."""

logger = logging.getLogger(__name__)


class Heartbeat:
    """A thread that renews the claims that were given to it, and a run's slots; a context manager."""

    def __init__(self, claims: Claims, lease_seconds: float, slots: RunSlots | None = None) -> None:
        self._claims = claims
        self._slots_held = slots
        self._lease = lease_seconds
        self._held: dict[str, Claim] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="queue_pipeline heartbeat", daemon=True)

    def hold(self, claim: Claim) -> None:
        """Renew this claim from now on."""
        with self._lock:
            self._held[claim.claim_id] = claim

    def let_go(self, claim: Claim) -> None:
        """Renew this claim no longer."""
        with self._lock:
            self._held.pop(claim.claim_id, None)

    def release(self, claims: Iterable[Claim]) -> None:
        """Renew these no longer, and let others take them at once."""
        for claim in claims:
            self.let_go(claim)
            try:
                self._claims.release(claim)
            except ClaimLostError:
                continue
            except QueuePipelineError as error:
                logger.warning(
                    "claim %s of %s could not be released and waits for its lease: %s",
                    claim.claim_id,
                    claim.queue,
                    error,
                )

    @property
    def held(self) -> list[Claim]:
        """The claims that are being renewed."""
        with self._lock:
            return list(self._held.values())

    def beat(self) -> bool:
        """Renew the slots and every held claim once; a lost claim is dropped. Returns whether the database answered."""
        answered = True
        if self._slots_held is not None:
            try:
                self._slots_held.renew()
            except QueuePipelineError as error:
                answered = False
                logger.warning("the lease of a run's slots could not be renewed: %s", error)
        for claim in self.held:
            try:
                self._claims.renew(claim, self._lease)
            except ClaimLostError:
                with self._lock:
                    is_held = self._held.pop(claim.claim_id, None) is not None
                if is_held:
                    logger.warning("claim %s of %s was lost; it cannot be completed here", claim.claim_id, claim.queue)
            except QueuePipelineError as error:
                answered = False
                logger.warning(
                    "the lease of claim %s of %s could not be renewed: %s", claim.claim_id, claim.queue, error
                )
        return answered

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _beat(self) -> None:
        pause = interval = self._lease / BEATS_PER_LEASE
        while not self._stop.wait(pause):
            pause = interval if self.beat() else min(interval, RETRY_SECONDS)
