"""How many slots to start: the three policies, as functions of what was counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from queue_pipeline.processing.declaration.pipeline import ConcurrencyPolicy

SUCCESSES_TO_GROW = 3
FAILURES_TO_SHRINK = 3


@dataclass(frozen=True, slots=True)
class Demand:
    """What one peek found: messages that wait, whether there may be more than were counted, and who is at work."""

    waiting: int
    capped: bool
    in_flight: int
    batch_messages: int
    max_concurrency: int

    @property
    def room(self) -> int:
        """How many slots may still be started."""
        return max(0, self.max_concurrency - self.in_flight)


@dataclass(frozen=True, slots=True)
class RampUp:
    """What the policy `ramp_up` remembers: its two counters, and the number of slots that it wants now."""

    successes: int = 0
    failures: int = 0
    slots: int = 1


def slots_to_start(policy: ConcurrencyPolicy, demand: Demand, memory: RampUp) -> tuple[int, RampUp]:
    """How many slots to start now, and what to remember."""
    if policy == "ramp_up":
        memory = learn(memory, demand)
        return (min(demand.room, max(0, memory.slots - demand.in_flight)) if demand.waiting else 0), memory
    return (pending(demand) if policy == "pending" else fixed(demand)), memory


def pending(demand: Demand) -> int:
    """One slot for every batch that waits; a count that hit its limit stands for as many as are allowed."""
    if demand.waiting < 1:
        return 0
    batches = demand.room if demand.capped else ceil(demand.waiting / demand.batch_messages)
    return min(batches, demand.room)


def fixed(demand: Demand) -> int:
    """All slots as soon as anything waits."""
    return demand.room if demand.waiting > 0 else 0


def learn(memory: RampUp, demand: Demand) -> RampUp:
    """Count a peek that found messages as a success and an empty one as a failure; some in a row change the number."""
    if demand.waiting > 0:
        memory = replace(memory, successes=memory.successes + 1, failures=0)
        if memory.successes > SUCCESSES_TO_GROW and memory.slots < demand.max_concurrency:
            memory = replace(memory, successes=0, slots=memory.slots + 1)
    else:
        memory = replace(memory, failures=memory.failures + 1, successes=0)
        if memory.failures > FAILURES_TO_SHRINK and memory.slots > 1:
            memory = replace(memory, failures=0, slots=memory.slots - 1)
    return replace(memory, slots=min(memory.slots, demand.max_concurrency))


def share(slots: int, per_run: int) -> list[int]:
    """Slots distributed over runs: as many in each as it takes."""
    full, rest = divmod(slots, per_run)
    return [per_run] * full + ([rest] if rest else [])
