"""The faults: which there are, and when each happens."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import ForkServerProcess

import sqlalchemy as sa

from queue_pipeline.errors import QueuePipelineError
from tools.chaos import proxy
from tools.chaos.crew import CONTEXT, Crew
from tools.postgres_cluster import PostgresCluster

KILLED, STOPPED, BACKENDS, RESTARTS = "workers killed", "workers stopped", "backends terminated", "server restarts"
CUTS, COMMIT_CUTS = "connections cut", "connections cut at commit"
APPLICATION = "queue_pipeline chaos"
_SECONDS_BETWEEN = (0.05, 0.5)
_RESTART_SECONDS = 8.0
_ANSWER_SECONDS = 60.0
_TERMINATE = sa.text(
    "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND datname = current_database()"
    " AND (:every OR application_name = :application) ORDER BY random() LIMIT :most) chosen"
)


class ProxyProcess:
    """The proxy in a process of its own, and the pipe to it."""

    def __init__(self, host: str, port: int, seed: int) -> None:
        self._pipe: Pipe
        self._pipe, theirs = CONTEXT.Pipe()
        self._process: ForkServerProcess = CONTEXT.Process(
            target=proxy.main, args=(host, port, seed, theirs), daemon=True
        )
        self._process.start()
        theirs.close()
        self.port: int = self._pipe.recv()

    def ask(self, command: str) -> int:
        """Give a command; returns how many connections it has cut."""
        self._pipe.send(command)
        if not self._pipe.poll(_ANSWER_SECONDS):
            raise QueuePipelineError(f"the proxy did not answer within {_ANSWER_SECONDS:.0f} s")
        count: int = self._pipe.recv()
        return count

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


class Faults:
    """Makes faults: first each kind once in the order of the seed, then at random."""

    def __init__(
        self,
        seed: int,
        crew: Crew,
        engine: sa.Engine | None = None,
        cluster: PostgresCluster | None = None,
        connections: ProxyProcess | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._chance = random.Random(f"{seed}/faults")
        self._crew = crew
        self._is_private = cluster is not None
        self._proxy = connections
        self._last_restart = -math.inf
        self._next = time.monotonic() + 1.0
        self._weights: dict[Callable[[], None], int] = {self._kill: 8, self._stop: 4}
        if connections is not None:
            self._weights |= {partial(self._cut, connections): 3, partial(self._cut_at_commit, connections): 4}
        if engine is not None:
            self._weights[partial(self._terminate, engine)] = 3
        if cluster is not None:
            self._weights[partial(self._restart, cluster)] = 1
        self._first = list(self._weights)
        self._chance.shuffle(self._first)

    def poll(self) -> None:
        """Make the next fault when its time has come."""
        if time.monotonic() < self._next:
            return
        kinds = list(self._weights)
        fault = self._first.pop() if self._first else self._chance.choices(kinds, list(self._weights.values()))[0]
        fault()
        self._next = time.monotonic() + self._chance.uniform(*_SECONDS_BETWEEN)

    def end(self) -> None:
        """Count what the proxy did since it was last asked."""
        if self._proxy is not None:
            self.counts[COMMIT_CUTS] += self._proxy.ask(proxy.COUNT)

    def _kill(self) -> None:
        self.counts[KILLED] += self._crew.kill()

    def _stop(self) -> None:
        self.counts[STOPPED] += self._crew.stop()

    def _cut(self, connections: ProxyProcess) -> None:
        self.counts[CUTS] += connections.ask(proxy.CUT)

    def _cut_at_commit(self, connections: ProxyProcess) -> None:
        self.counts[COMMIT_CUTS] += connections.ask(proxy.CUT_AT_COMMIT)

    def _terminate(self, engine: sa.Engine) -> None:
        values = {"every": self._is_private, "application": APPLICATION, "most": self._chance.choice((1, 3))}
        # The server may have been restarted since the connection was last used.
        with suppress(sa.exc.DBAPIError), engine.begin() as connection:
            self.counts[BACKENDS] += connection.execute(_TERMINATE, values).scalar_one()

    def _restart(self, cluster: PostgresCluster) -> None:
        if time.monotonic() < self._last_restart + _RESTART_SECONDS:
            return
        cluster.restart("immediate")
        self._last_restart = time.monotonic()
        self.counts[RESTARTS] += 1
