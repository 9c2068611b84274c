"""The route of a run: which of the two backends computes its batches. The only place that makes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from queue_pipeline.processing.batch.backend import Backend, BackendName, Processed
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.executors import ExecutorBackend, Executors
from queue_pipeline.processing.batch.local import LocalBackend
from queue_pipeline.processing.batch.transformer import Transformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.results.envelopes import Sending
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.messages.message import TransactionMode

_LOCAL = re.compile(r"local(\[.*\])?")


def is_local(master: str) -> bool:
    """Whether a Spark master runs its tasks in the driver's own process, as that of a local Connect server does."""
    return _LOCAL.fullmatch(master) is not None


def route(
    pipeline: QueuePipeline, master: Callable[[], str | None], *, is_reachable: bool, has_many_writers: bool
) -> BackendName:
    """The backend of a pipeline's batches; `auto` is executors on a cluster, whose master is asked for.

    `is_reachable`: another process can open the database. `has_many_writers`: several processes write to it at a time;
    where only one does, as in SQLite, executors would wait for each other, and are used if the pipeline asks for them.
    """
    if pipeline.route == "local" or pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        return "local"
    if pipeline.route == "executors":
        return "executors"
    if not (is_reachable and has_many_writers):
        return "local"
    # A server that does not name its master is not known to have executors that reach the database.
    named = master()
    return "executors" if named and not is_local(named) else "local"


def backend_of(
    pipeline: QueuePipeline, transport: QueueTransport, transformer: Transformer, executors: Executors | None = None
) -> Backend:
    """The backend of a run; without `executors` it is local."""
    local = LocalBackend(pipeline, transport, transformer)
    if executors is None:
        return local
    return RoutedBackend(pipeline, transport, local, ExecutorBackend(pipeline, transport, executors, local), executors)


class RoutedBackend:
    """One of two backends, chosen once, at the first batch: an empty queue starts no Spark to ask for its master."""

    def __init__(
        self,
        pipeline: QueuePipeline,
        transport: QueueTransport,
        local: LocalBackend,
        by_executors: ExecutorBackend,
        executors: Executors,
    ) -> None:
        self._pipeline = pipeline
        self._transport = transport
        self._backends: dict[BackendName, Backend] = {"local": local, "executors": by_executors}
        self._executors = executors

    @cached_property
    def _chosen(self) -> Backend:
        name = route(
            self._pipeline,
            self._executors.master,
            is_reachable=self._transport.settings is not None,
            has_many_writers=self._transport.database.dialect.locks_rows,
        )
        return self._backends[name]

    def read(self, claim: Claim, *, with_sample: bool) -> ClaimedBatch:
        """See `Backend`."""
        return self._chosen.read(claim, with_sample=with_sample)

    def came_back(self, batch: ClaimedBatch) -> list[tuple[int, int]]:
        """See `Backend`."""
        return self._chosen.came_back(batch)

    def process(self, batch: ClaimedBatch, sending: Sending) -> Processed:
        """See `Backend`."""
        return self._chosen.process(batch, sending)

    def probe(self, sample: ClaimedBatch | None, sending: Callable[[], Sending]) -> Exception | None:
        """A probe is one message: the local backend computes it."""
        return self._backends["local"].probe(sample, sending)

    def answers(self) -> bool:
        """Asks no master: the Spark that would be asked may be gone."""
        return self._backends["local"].answers()
