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
