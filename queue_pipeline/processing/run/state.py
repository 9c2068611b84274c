"""What a run does next, as a pure function of what is known; `pipeline_run.py` carries it out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

LINGER_PEEK_SECONDS = 0.2
"""How often a lingering run looks: it is awake anyway, and a look costs a millisecond."""
QUEUE_EMPTY = "the queue is empty"


@dataclass(frozen=True, slots=True)
class RunView:
    """What is known of a run at one moment; times are seconds of one clock."""

    now: float
    deadline: float
    max_run_seconds: float
    not_before: float
    """No attempt begins before this time, because attempts keep failing."""
    idle_since: float
    linger_seconds: float
    longest_wait: float
    """A longer wait would make due messages late."""
    slots: int
    """How many batches may be in work."""
    held: int
    """How many slots of the queue the run holds."""
    in_work: int
    waiting: int
    """Claims that the run holds and that are not in work."""
    is_isolating: bool
    """Whether an isolated batch is in work."""
    has_isolated: bool
    """Whether an isolated batch waits."""
    is_careful: bool
    """Whether one batch at a time is tried: the rate is limited, or a message that succeeds is searched for."""
    found_none: bool
    """Whether neither a batch nor a slot was found since the last wait."""
    is_stopping: bool
    reason_to_stop: str | None = None

    @property
    def allowed(self) -> int:
        """How many batches may be in work now."""
        return 1 if self.is_careful or self.is_isolating else self.slots


@dataclass(frozen=True, slots=True)
class Take:
    """Begin an attempt at the next batch, if there is one."""


@dataclass(frozen=True, slots=True)
class AskForSlots:
    """Ask the queue for this many slots in all: those that the run holds are in use."""

    slots: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Take no further batch from here on; batches in work are finished."""

    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for the next attempt to end, but no longer than this."""

    seconds: float
    is_idle: bool = False
    """Whether there is nothing to do: a run that is idle for too long ends."""


@dataclass(frozen=True, slots=True)
class End:
    """Nothing is in work and nothing more will be."""

    reason: str


Step: TypeAlias = Take | AskForSlots | Stop | Wait | End


def next_step(view: RunView) -> Step:
    """The next step of a run. A wait never lasts longer than `longest_wait`."""
    if not view.is_stopping and view.now >= view.deadline:
        return Stop(f"max_run_seconds ({view.max_run_seconds:g} s) are over")
    if not view.is_stopping and view.reason_to_stop is not None:
        return Stop(view.reason_to_stop)
    if _may_begin(view):
        return Take() if view.in_work < view.held else AskForSlots(view.allowed)
    if view.in_work:
        return Wait(view.longest_wait)
    if view.is_stopping:
        return End(view.reason_to_stop or "")
    if view.waiting or view.now < view.not_before:
        return Wait(max(0.0, min(view.not_before - view.now, view.longest_wait)))
    if view.now - view.idle_since >= view.linger_seconds:
        return End(QUEUE_EMPTY)
    return Wait(min(view.longest_wait, LINGER_PEEK_SECONDS), is_idle=True)


def _may_begin(view: RunView) -> bool:
    """Whether one more batch may be in work: not beside an isolated one, which must be alone with its Spark."""
    if view.is_stopping or view.found_none or view.now < view.not_before:
        return False
    return view.in_work < view.allowed and not (view.in_work and view.has_isolated)
