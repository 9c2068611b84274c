"""Runs that are killed: a child process drains a queue and dies by SIGKILL at a named step of the protocol.

The steps are made by wrapping methods, in the child only. Children are forked off one process that has loaded
everything, because an interpreter of its own for each of them would take longer than all the rest.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any, Self

from sqlalchemy import text

from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.local import LocalBackend
from queue_pipeline.processing.batch.transformer import Transformed
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.processing.run.pipeline_run import PipelineRun, RunEnd
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport import new_message
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.claims.completion import Completer, Completion
from queue_pipeline.transport.claims.failure_counts import FailureCounts
from queue_pipeline.transport.claims.outbox import Outbox
from queue_pipeline.transport.layouts.nservicebus.delayed import DelayedMover
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.operations.user_table_sql import TableRows
from queue_pipeline.transport.operations.user_tables import UserTables
from queue_pipeline.transport.send import Sender
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer, poisoned_by
from queue_pipeline_tests.support.processing.recovering import THIS_CODE

KILLED = -signal.SIGKILL
LEDGER = "ledger"
"""A table of the user's own that every completed message is written to."""
POISON = (5, 13)
POLICY = Recoverability(immediate_retries=1, delayed_retries=1, rate_limit_after=None)
COMPLETIONS = ("results", "delayed retry", "error copy")
STEPS = (
    "claim: written",
    "claim: taken over",
    "claim: committed",
    "batch: read",
    "batch: transforming",
    *(
        f"{completion}: {step}"
        for completion in COMPLETIONS
        for step in ("staged", "fenced", "sent", "claimed rows deleted", "outbox cleared", "committed")
    ),
    "results: own rows written",
    "failure: about to be counted",
    "failure: counted",
    "failure: committed",
    "split: decided",
    "split: made",
    "split: committed",
    "separation: made",
    "separation: committed",
    "due messages: moved",
    "due messages: committed",
)
"""Where a run can be killed. The step that ends in `committed` separates what is committed from what is not."""


@dataclass(frozen=True)
class Run:
    """One run in a child: on which database, under which owner, and where it dies, the n-th time it gets there."""

    url: str
    schema: str | None
    owner: str
    step: str | None = None
    times: int = 1
    batch_messages: int = 12
    after: str | None = None
    """It begins once this owner holds a batch."""

    def __post_init__(self) -> None:
        """Refuse a step that no run would ever reach."""
        if self.step is not None and self.step not in STEPS:
            raise ValueError(f"no step is called {self.step!r}")


class LedgerTransformer(PlainTransformer):
    """Writes the number of every message to a table beside what it sends."""

    def transform(self, batch: ClaimedBatch, sending: Sending) -> Transformed:
        """Results, and rows that must be written as often."""
        results = super().transform(batch, sending)
        rows = [(int(body),) for ready in results.ready for body in ready.bodies]
        return replace(results, tables=[TableRows(LEDGER, ("number",), rows)])


def drain(transport: QueueTransport, owner: str, batch_messages: int = 12) -> RunEnd:
    """Move what is due, as the mover does, and process all that there is, as a run does."""
    transport.move_due(transport.resolve("orders"))
    pipeline = QueuePipeline(
        name="orders", input_queue="orders", transform=lambda messages: messages, linger_seconds=0, peek_delay=0.1,
        batch_messages=batch_messages, max_concurrency=1, recoverability=POLICY,
    )  # fmt: skip
    transformer = LedgerTransformer(poisoned_by(*(b"%d" % number for number in POISON)))
    recovery = Recovery(pipeline, transport, transformer, proof=THIS_CODE)
    return PipelineRun(pipeline, transport, owner, recovery, slots=pipeline.slots).run()


class Fault:
    """Kills the process the n-th time that it reaches a step."""

    def __init__(self, step: str, times: int) -> None:
        self._step = step
        self._left = times
        self._lock = threading.Lock()
        self._completing = threading.local()

    def reach(self, step: str) -> None:
        """Tell that a step was reached; there may be no return."""
        if step == self._step:
            with self._lock:
                self._left -= 1
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Wrap the methods that make the steps."""
        reach = self.reach
        after(ClaimTable, "open", lambda _: reach("claim: written"))
        after(ClaimTable, "take_over", lambda claim: claim and reach("claim: taken over"))
        after(Claims, "claim", lambda claim: claim and reach("claim: committed"))
        after(LocalBackend, "read", lambda _: reach("batch: read"))
        before(PlainTransformer, "transform", lambda: reach("batch: transforming"))
        before(Claims, "fail", lambda: reach("failure: about to be counted"))
        after(FailureCounts, "record", lambda _: reach("failure: counted"))
        after(Claims, "fail", lambda _: reach("failure: committed"))
        before(Claims, "split", lambda: reach("split: decided"))
        after(ClaimTable, "split_at", lambda _: reach("split: made"))
        after(Claims, "split", lambda _: reach("split: committed"))
        after(ClaimTable, "separate", lambda _: reach("separation: made"))
        after(Claims, "separate", lambda _: reach("separation: committed"))
        after(DelayedMover, "_move", lambda counts: counts[1] and reach("due messages: moved"))
        after(DelayedMover, "move_due", lambda moved: moved and reach("due messages: committed"))
        self._follow_completions()
        after(ClaimTable, "pass_fence", lambda _: self._in_completion("fenced"))
        after(UserTables, "write", lambda _: self._in_completion("own rows written"))
        after(Sender, "write", lambda _: self._in_completion("sent"))
        before(Outbox, "clear", lambda: self._in_completion("claimed rows deleted"))
        after(Outbox, "clear", lambda _: self._in_completion("outbox cleared"))

    def _in_completion(self, step: str) -> None:
        completion = getattr(self._completing, "of", None)
        if completion is not None:
            self.reach(f"{completion}: {step}")

    def _follow_completions(self) -> None:
        """Know which of them it is that a thread is in: by what it sends."""
        original = Completer.complete

        @functools.wraps(original)
        def complete(completer: Completer, done: Completion) -> int:
            self._completing.of = _completion(done.sends)
            try:
                self._in_completion("staged")
                sent = original(completer, done)
                self._in_completion("committed")
                return sent
            finally:
                self._completing.of = None

        setattr(Completer, "complete", complete)  # noqa: B010


def _completion(ready: Sequence[MessageColumns]) -> str:
    if any(part.delayed for part in ready):
        return "delayed retry"
    return "error copy" if any(part.destination == "error" for part in ready) else "results"


def before(owner: type, name: str, call: Callable[[], object]) -> None:
    """Let a method call this first."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        call()
        return original(*arguments, **options)

    setattr(owner, name, wrapper)


def after(owner: type, name: str, call: Callable[[Any], object]) -> None:
    """Let a method call this with what it returns."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapper(*arguments: Any, **options: Any) -> Any:
        returned = original(*arguments, **options)
        call(returned)
        return returned

    setattr(owner, name, wrapper)


class Children:
    """Starts runs in children and reports how they ended; a context manager."""

    def __enter__(self) -> Self:
        """Start the process that the children are forked off."""
        command = [sys.executable, "-m", "queue_pipeline_tests.support.processing.killed_run"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it: it ends when there is nothing more to read."""
        self._process.communicate(timeout=60)

    def run(self, *runs: Run) -> list[int]:
        """Run all of them at the same time; returns their exit codes."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([asdict(run) for run in runs]) + "\n")
        self._process.stdin.flush()
        codes: list[int] = json.loads(self._process.stdout.readline())
        return codes


def serve() -> None:
    """Fork the runs that are asked for, a line of them at a time, and tell their exit codes."""
    _warm_up()
    for line in sys.stdin:
        children = [_fork(Run(**given)) for given in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(codes), flush=True)


def _warm_up() -> None:
    """PipelineRun a queue once, so that what is loaded at its first use is loaded before any child needs it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        QueueTransport(f"sqlite:///{folder}/queues.db", endpoint="orders") as transport,
    ):
        transport.install("orders", plain_queues=["billing", "error"])
        with transport.transaction() as connection:
            connection.execute(text(f"CREATE TABLE {LEDGER} (number int NOT NULL)"))
        transport.send("orders", [new_message(f"{number}") for number in (1, *POISON)])
        drain(transport, "warm up")


def _fork(run: Run) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _run(run)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def _run(run: Run) -> None:
    if run.step is not None:
        Fault(run.step, run.times).install()
    with QueueTransport(run.url, schema=run.schema, endpoint="orders") as transport:
        if run.after is not None:
            _wait_for(transport, run.after)
        ended = drain(transport, run.owner, run.batch_messages)
        if ended.failure is not None:
            raise ended.failure


def _wait_for(transport: QueueTransport, owner: str, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while all(claim.owner != owner for claim in transport.claims.list()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{owner} holds nothing after {seconds} s")
        time.sleep(0.002)


def kinds(steps: Sequence[str] = STEPS) -> list[str]:
    """The steps as they are named in the ids of tests."""
    return [step.replace(": ", "-").replace(" ", "_") for step in steps]


if __name__ == "__main__":
    serve()
