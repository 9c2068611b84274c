"""One worker process: draws its way to the database, and does its kind of work until it is killed."""

from __future__ import annotations

import ctypes
import logging
import random
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from queue_pipeline.errors import ConfigurationError, QueuePipelineError
from tools.chaos.arena import Arena
from tools.chaos.claimers import Claimer
from tools.chaos.desk import UNEXPECTED, Desk
from tools.chaos.keepers import Mover, Retrier
from tools.chaos.receivers import Receiver
from tools.chaos.runs import Runner
from tools.chaos.senders import Publisher, Sender
from tools.chaos.stagers import Stager

STARTED = "started"
_PR_SET_PDEATHSIG = 1
_IDLE_SECONDS = (0.01, 0.2)
_ERROR_SECONDS = (0.02, 0.3)


class Actor(Protocol):
    """Does one kind of work."""

    def step(self) -> bool:
        """One piece of it; False when there was nothing to do."""


KINDS: dict[str, Callable[[Desk], Actor]] = {
    "sender": Sender,
    "publisher": Publisher,
    "receiver": Receiver,
    "claimer": Claimer,
    "stager": Stager,
    "run": Runner,
    "mover": Mover,
    "retrier": Retrier,
}


def main(arena: Arena, kind: str, incarnation: int, folder: Path, pipe: Pipe) -> None:
    """Work until killed or stopped. Errors that the transport raises on purpose are what a worker has to expect."""
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What goes wrong here is intended, and every line of it would be written thousands of times.
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    chance = random.Random(f"{arena.seed}/{arena.name}/{kind}/{incarnation}")
    with arena.transport(chance.choice(arena.urls)) as transport:
        desk = Desk(arena, kind, incarnation, transport, folder, pipe, chance)
        actor = KINDS[kind](desk)
        desk.note(STARTED)
        idle = _IDLE_SECONDS[0]
        while not desk.is_stopped:
            try:
                idle = _IDLE_SECONDS[0] if actor.step() else min(2 * idle, _IDLE_SECONDS[1])
                time.sleep(idle if idle > _IDLE_SECONDS[0] else 0)
            except BrokenPipeError:
                return
            except Exception as error:
                desk.note(_described(error))
                time.sleep(chance.uniform(*_ERROR_SECONDS))


def _described(error: Exception) -> str:
    """The note about an error: its name if the transport raises it on purpose under faults, else all of it."""
    if isinstance(error, sa.exc.DBAPIError):
        # A statement of the worker's own, in a transaction of the transport's.
        return "own statement failed"
    if isinstance(error, QueuePipelineError) and not isinstance(error, ConfigurationError):
        return type(error).__name__
    return f"{UNEXPECTED}: {''.join(traceback.format_exception(error))}"


def _die_with_parent() -> None:
    """A stopped worker would otherwise outlive a coordinator that was killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
