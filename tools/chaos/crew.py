"""The crew: starts workers, replaces those that died, stops and kills them, and adds up their journals."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from queue_pipeline.errors import QueuePipelineError
from tools.chaos import worker
from tools.chaos.arena import Arena
from tools.chaos.desk import STOP, UNEXPECTED
from tools.chaos.senders import DELAYED, PUBLISHED, SENT, UNREADABLE

CONTEXT = multiprocessing.get_context("forkserver")
# Forked from a process that has loaded everything: a killed worker is replaced within milliseconds.
CONTEXT.set_forkserver_preload(["tools.chaos.worker"])
_START_SECONDS = 60.0
_FINISH_SECONDS = 120.0
_NEW_MESSAGES = (SENT, DELAYED, PUBLISHED, UNREADABLE)
_KINDS = {
    "postgresql": Counter(sender=2, publisher=1, receiver=2, claimer=2, stager=1, run=2, mover=1, retrier=1),
    "sqlite": Counter(sender=1, publisher=1, receiver=1, claimer=1, stager=1, run=1, mover=1, retrier=1),
    "nginn": Counter(sender=1, receiver=1, claimer=1, stager=1, run=1, mover=1, retrier=1),
}


@dataclass
class Member:
    """A worker process."""

    arena: Arena
    kind: str
    process: ForkServerProcess
    pipe: Pipe
    resumes: float | None = None
    """When it goes on, while it is stopped."""


class Crew:
    """All workers of all arenas."""

    def __init__(self, arenas: list[Arena], folder: Path, seed: int) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._chance = random.Random(f"{seed}/crew")
        self.work: Counter[tuple[str, str]] = Counter()
        """What was reported, by kind of worker and action."""
        self.unexpected: Counter[str] = Counter()
        """Errors that no worker has to expect, by their text."""
        self._arenas = arenas
        self._members: list[Member] = []

    def start(self) -> None:
        """Start a worker of every kind in every arena, some twice."""
        (self._folder / STOP).unlink(missing_ok=True)
        for arena in self._arenas:
            kinds = _KINDS["nginn" if arena.is_nginn else "sqlite" if arena.schema is None else "postgresql"]
            for kind in kinds.elements():
                self._members.append(self._start(arena, kind))

    def finish(self) -> None:
        """Let every worker end what it has in work, so that no transaction is open afterwards."""
        (self._folder / STOP).touch()
        deadline = time.monotonic() + _FINISH_SECONDS
        for member in self._members:
            # A worker whose journal is not read blocks when its pipe is full.
            while member.process.is_alive() and time.monotonic() < deadline:
                self._read(member)
                time.sleep(0.01)
            self._read(member)
            if member.process.is_alive():
                self.unexpected[f"a {member.kind} did not end"] += 1
        self.close()

    @property
    def sent(self) -> int:
        """Messages that were sent and committed, as far as reported."""
        return sum(count for (_, action), count in self.work.items() if action in _NEW_MESSAGES)

    def poll(self) -> None:
        """Read the journals, let stopped workers go on, and replace those that died."""
        now = time.monotonic()
        for at, member in enumerate(self._members):
            if member.resumes is not None and now >= member.resumes:
                self._signal(member, signal.SIGCONT)
                member.resumes = None
            self._read(member)
            if not member.process.is_alive():
                member.pipe.close()
                member.process.join()
                if member.process.exitcode != -signal.SIGKILL:
                    self.unexpected[f"a {member.kind} ended with exit code {member.process.exitcode}"] += 1
                self._members[at] = self._start(member.arena, member.kind)

    def wait_until_started(self) -> None:
        """Wait until every worker is at work."""
        deadline = time.monotonic() + _START_SECONDS
        while sum(count for (_, action), count in self.work.items() if action == worker.STARTED) < len(self._members):
            if time.monotonic() > deadline:
                raise QueuePipelineError(f"the workers did not start within {_START_SECONDS:.0f} s")
            self.poll()
            time.sleep(0.05)

    def kill(self) -> bool:
        """End a worker without notice."""
        return self._signal(self._chance.choice(self._members), signal.SIGKILL)

    def stop(self) -> bool:
        """Stop a worker for a while, longer than many leases."""
        member = self._chance.choice(self._members)
        if member.resumes is not None:
            return False
        member.resumes = time.monotonic() + self._chance.choice((0.1, 0.4, 1.0, 2.5))
        return self._signal(member, signal.SIGSTOP)

    def resume_all(self) -> None:
        """Let all stopped workers go on."""
        for member in self._members:
            member.resumes = None
            self._signal(member, signal.SIGCONT)

    def close(self) -> None:
        """End all workers."""
        for member in self._members:
            self._signal(member, signal.SIGKILL)
        for member in self._members:
            member.process.join()
            member.pipe.close()
        self._members = []

    def _start(self, arena: Arena, kind: str) -> Member:
        ours, theirs = CONTEXT.Pipe(duplex=False)
        # Two workers never send the same numbers: they are made of this one.
        arguments = (arena, kind, next(self._numbers), self._folder, theirs)
        process = CONTEXT.Process(target=worker.main, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return Member(arena, kind, process, ours)

    def _read(self, member: Member) -> None:
        for action, count in _received(member.pipe):
            if action.startswith(UNEXPECTED):
                self.unexpected[action] += count
            self.work[member.kind, action.partition(": Traceback")[0]] += count

    def _signal(self, member: Member, number: signal.Signals) -> bool:
        with suppress(ProcessLookupError):
            if member.process.pid is not None and member.process.is_alive():
                os.kill(member.process.pid, number)
                return True
        return False


def _received(pipe: Pipe) -> Iterator[tuple[str, int]]:
    with suppress(EOFError, ConnectionResetError):
        while pipe.poll():
            yield pipe.recv()
