"""The verdict on a message that failed alone, as a pure function: is it the cause, or would any message fail?"""

from __future__ import annotations

import enum
from dataclasses import dataclass

MOST_DOUBLINGS = 4
"""Of the number of messages that are tried before a run gives up: with the default, 6 in the first run and at most 96
in later ones. Each keeps a claim of its own alive until the verdict."""


class Verdict(enum.Enum):
    """Who is to blame for a failure."""

    MESSAGE = "the message"
    ENVIRONMENT = "the environment"
    UNKNOWN = "not known yet"


class Probe(enum.Enum):
    """What the transform did with something else than the message that failed."""

    SAMPLE_WORKS = "a message that was processed before works"
    SAMPLE_FAILS = "a message that was processed before fails now"
    EMPTY_WORKS = "no messages work, or fail in another way"
    EMPTY_FAILS = "no messages fail in the same way"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known when a message failed alone."""

    probe: Probe
    alike: int
    """Different messages, this one included, that failed alone in the same way since the last success of the run."""
    causes: int
    """How many different causes such messages had."""
    is_proven: bool
    """Whether some message succeeded since the last change of code or Spark."""
    is_last: bool
    """Whether nothing else is left to try."""


def judge(evidence: Evidence, alike_failures: int, failures_in_a_row: int) -> Verdict:
    """Decide. Where it is not known yet, other messages are tried first."""
    if evidence.probe in (Probe.SAMPLE_FAILS, Probe.EMPTY_FAILS):
        return Verdict.ENVIRONMENT
    if evidence.probe is Probe.SAMPLE_WORKS:
        return Verdict.MESSAGE
    if evidence.causes >= alike_failures and evidence.alike < alike_failures:
        return Verdict.MESSAGE
    if evidence.alike >= tries(alike_failures, failures_in_a_row):
        return Verdict.ENVIRONMENT
    if evidence.is_last:
        is_rare = evidence.alike < alike_failures
        return Verdict.MESSAGE if evidence.is_proven and is_rare else Verdict.ENVIRONMENT
    return Verdict.UNKNOWN


def tries(alike_failures: int, failures_in_a_row: int) -> int:
    """How many different messages must fail alike, without a success, before a run ends for it.

    Half of them are neighbours of the first, the others come from elsewhere in the queue. The number doubles in each
    run that follows a failed one, so that a good message behind many bad ones is found after a few runs.
    """
    doublings: int = 2 ** (1 + min(max(failures_in_a_row, 0), MOST_DOUBLINGS))
    return alike_failures * doublings
