"""What becomes of a batch that failed, as pure functions of what was counted; `recovery.py` carries it out."""

from __future__ import annotations

import enum

from queue_pipeline.processing.declaration.recoverability import Recoverability

LEAST_DEATHS = 2
"""How often Spark or the process must die of a message alone before it is given up: a restart may hit any message."""


class Step(enum.Enum):
    """What is done next with messages that failed together."""

    RETRY = "retry"
    SPLIT = "split"
    WAIT = "wait for the verdict"
    ISOLATE = "try alone"
    GIVE_UP = "give up"


class AfterDeath(enum.Enum):
    """What is done after Spark, or a part of it that batches share, died while it worked on a batch."""

    ISOLATE = "mark the batch as isolated, uncounted, and go on"
    ISOLATE_AND_END = "mark the batch as isolated, uncounted, and end the run"
    COUNT = "count a failure of the batch and go on"
    COUNT_AND_RESTART = "count a failure of the batch and go on with a new Spark"
    COUNT_AND_END = "count a failure of the batch and end the run"


def after_failure(
    policy: Recoverability, messages: int, failures: int, *, unrecoverable: bool = False, kills: bool = False
) -> Step:
    """The next step for messages that have failed this many times; several are split, because one of them is the cause.

    `kills`: Spark or a process died while it worked on them.
    """
    if messages > 1:
        return Step.SPLIT
    if kills and failures < LEAST_DEATHS:
        return Step.RETRY
    return Step.GIVE_UP if unrecoverable or failures > policy.immediate_retries else Step.RETRY


def after_abandonment(policy: Recoverability, messages: int, failures: int, *, isolated: bool) -> Step | None:
    """The step for messages that failed in other processes, before they are tried here; None: they are tried.

    A death is counted on an isolated batch only; on any other, the failure was the message's own.
    """
    step = after_failure(policy, messages, failures, kills=isolated)
    return None if step is Step.RETRY else step


def after_death(*, isolated: bool, is_gone: bool, can_restart: bool) -> AfterDeath:
    """The step after Spark died. Any batch that shared it may be the cause, so only an isolated batch is counted.

    `is_gone`: no Spark answers, and a new one is needed; `can_restart`: this process can start one.
    """
    if not isolated:
        return AfterDeath.ISOLATE_AND_END if is_gone else AfterDeath.ISOLATE
    if not is_gone:
        return AfterDeath.COUNT
    return AfterDeath.COUNT_AND_RESTART if can_restart else AfterDeath.COUNT_AND_END


def after_unreliable_failure(messages: int, *, fails_for_all: bool) -> Step:
    """The step for messages that only this process has: all are given up if the next ones would fail as well."""
    return Step.GIVE_UP if fails_for_all or messages <= 1 else Step.SPLIT
