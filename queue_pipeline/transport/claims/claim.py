"""A claim as a value: what it holds, what makes one valid, and what it means to have lost it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from queue_pipeline.errors import ClaimLostError, ConfigurationError, RowsDifferError, check_positive
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.texts import storable

DEFAULT_LEASE_SECONDS = 300.0
LONGEST_LEASE_SECONDS = 24 * 60 * 60.0
DEFAULT_MAX_BYTES = 1 << 40
LONGEST_OWNER = 200
LOW_BITS = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch in work, as a small value that other processes can continue with."""

    claim_id: str
    queue: str
    owner: str
    generation: int
    messages: int
    bytes: int
    first_row_version: int
    expired: int = 0
    forwarded: int = 0
    failures: int = 0
    """How often these messages have failed as they are; counted anew when the claim is split."""
    isolated: bool = False
    """Whether Spark or a process died while it worked on these messages: they are tried with no other beside them."""

    @property
    def fence(self) -> dict[str, Any]:
        """The values that the claim's row must still have for its holder to act on it."""
        return {"claim_id": self.claim_id, "owner": self.owner, "generation": self.generation}


@dataclass(frozen=True, slots=True)
class RowsRead:
    """Which messages were read, as figures that a database computes of a claim in one pass; none by default."""

    messages: int = 0
    first: int | None = None
    last: int | None = None
    low_bits: int = 0
    """The sum of the lower 32 bits of the row versions: in 64 bits it does not overflow."""

    @staticmethod
    def of(row_versions: Iterable[int]) -> RowsRead:
        """The figures of messages, by their row versions."""
        versions = list(row_versions)
        if not versions:
            return RowsRead()
        return RowsRead(len(versions), min(versions), max(versions), sum(version & LOW_BITS for version in versions))

    def __add__(self, other: RowsRead) -> RowsRead:
        firsts = [one.first for one in (self, other) if one.first is not None]
        lasts = [one.last for one in (self, other) if one.last is not None]
        return RowsRead(
            self.messages + other.messages,
            min(firsts, default=None),
            max(lasts, default=None),
            self.low_bits + other.low_bits,
        )

    def __str__(self) -> str:
        if not self.messages:
            return "no messages"
        return f"{self.messages:,} messages (row versions {self.first} to {self.last}, checksum {self.low_bits:x})"


@dataclass(frozen=True, slots=True)
class ClaimStatus:
    """A claim as the database has it; a negative lease has run out, no owner means that it was released."""

    claim_id: str
    queue: str
    owner: str | None
    generation: int
    messages: int
    bytes: int
    lease_seconds: float
    age_seconds: float
    failures: int = 0
    last_error: str | None = None
    first_row_version: int = 0
    isolated: bool = False

    @property
    def held(self) -> Claim | None:
        """The claim as its holder has it; None once it was released."""
        if self.owner is None:
            return None
        figures = (self.generation, self.messages, self.bytes, self.first_row_version)
        return Claim(self.claim_id, self.queue, self.owner, *figures, failures=self.failures, isolated=self.isolated)


def lost(claim: Claim) -> ClaimLostError:
    """The error of a process that acts on a claim which it no longer holds."""
    return ClaimLostError(
        f"claim {claim.claim_id} of {claim.queue} is no longer held by {claim.owner} at generation {claim.generation}: "
        "its lease ran out and another took it, or it was released; nothing was sent, and its present holder goes on"
    )


def partly_lost(claim: Claim) -> ClaimLostError:
    """The error of a claim of which another reader of its queue has some messages by now."""
    return ClaimLostError(
        f"claim {claim.claim_id} of {claim.queue}: another reader of the queue took some of its messages, after their "
        "lease was over or by hand; nothing was sent, and what is left is taken again"
    )


def differs(claim: Claim, read: object, held: object) -> RowsDifferError:
    """The error of a claim that holds other messages than its holder read."""
    return RowsDifferError(
        f"claim {claim.claim_id} of {claim.queue}: {read} were read, but the claim holds {held}; nothing was sent or "
        "deleted. Something that is no receiver changed its rows. When the claim is released, put its messages back "
        f"into the queue with: queue-pipeline claims return {shlex.quote(claim.queue)}"
    )


def ranges(row_versions: Iterable[int], all_of_them: Iterable[int]) -> list[tuple[int, int]]:
    """Messages of a claim as ranges of row versions that hold no other message of it."""
    wanted, found, previous = set(row_versions), list[tuple[int, int]](), False
    for version in sorted(all_of_them):
        if version in wanted:
            if previous:
                found[-1] = (found[-1][0], version)
            else:
                found.append((version, version))
        previous = version in wanted
    return found


def check_claim(queue: QueueTable, owner: str, max_messages: int, max_bytes: int, lease_seconds: float) -> None:
    """Refuse to ask for a claim that makes no sense."""
    check_positive(queue, max_messages, f"a batch of {max_messages} messages")
    check_positive(queue, max_bytes, f"a batch of {max_bytes} bytes")
    check_owner(queue.canonical, owner)
    check_lease(queue.canonical, lease_seconds)


def check_owner(queue: str, owner: str) -> None:
    """Refuse an owner that the table of claims could not hold."""
    if not 0 < len(owner) <= LONGEST_OWNER or owner != storable(owner):
        raise ConfigurationError(
            f"queue {queue}: the owner of a claim needs a name of 1 to {LONGEST_OWNER} characters of Unicode"
        )


def check_lease(queue: str, lease_seconds: float) -> None:
    """Refuse a lease that would be over at once, or never."""
    if not 0 < lease_seconds <= LONGEST_LEASE_SECONDS:
        raise ConfigurationError(
            f"queue {queue}: a lease of {lease_seconds} s; choose more than 0 and at most {LONGEST_LEASE_SECONDS:.0f}"
        )
