"""One run of chaos: databases, workers and faults, then quiet until all is processed, then the account."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa

from queue_pipeline.errors import ConfigurationError, QueuePipelineError
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database.setting import database_url
from tools.chaos.accountant import Account, Accountant
from tools.chaos.arena import ERRORS, Arena
from tools.chaos.crew import Crew
from tools.chaos.desk import DRAIN
from tools.chaos.faults import APPLICATION, Faults, ProxyProcess
from tools.chaos.plan import number_of_id
from tools.chaos.report import Report
from tools.postgres_cluster import PostgresCluster

DRAIN_SECONDS = 90.0
"""When the rest has not become smaller for this long, it is left over."""
_POLL_SECONDS = 0.02
_LOOK_SECONDS = 0.5
_UNKNOWN = math.inf
_MOST = 1_000_000


@dataclass(frozen=True)
class Options:
    """What to run."""

    seed: int
    seconds: float | None
    messages: int | None
    database: str | None
    show_progress: Callable[[str], None]


@dataclass(frozen=True)
class _Targets:
    """The databases of a run, and what its faults act on."""

    arenas: list[Arena]
    cluster: PostgresCluster | None = None
    engine: sa.Engine | None = None
    proxy: ProxyProcess | None = None


def run(options: Options) -> Report:
    """Run it; nothing is left behind, whatever happens."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="queue_pipeline-chaos-")))
        targets = closing.enter_context(_prepared(options, folder))
        for arena in targets.arenas:
            if targets.cluster is None:
                closing.callback(arena.remove)
            arena.install()
        crew = Crew(targets.arenas, folder, options.seed)
        closing.callback(crew.close)
        crew.start()
        crew.wait_until_started()
        faults = Faults(options.seed, crew, targets.engine, targets.cluster, targets.proxy)
        started = time.monotonic()
        _make_faults(options, crew, faults, started)
        seconds = time.monotonic() - started
        faults.end()
        (folder / DRAIN).touch()
        crew.resume_all()
        # Looks at several tables can miss a message that moves between them; once all workers ended, nothing moves.
        while _wait_until_processed(options, targets.arenas, crew):
            crew.finish()
            if not sum(map(_pending, targets.arenas)):
                break
            crew.start()
        crew.finish()
        drained = time.monotonic() - started - seconds
        return Report(
            options.seed,
            seconds,
            drained,
            [_account(options, arena, folder) for arena in targets.arenas],
            faults.counts,
            crew.work,
            crew.unexpected,
        )


def _make_faults(options: Options, crew: Crew, faults: Faults, started: float) -> None:
    shown = started
    while True:
        seconds = time.monotonic() - started
        if options.seconds is not None and seconds >= options.seconds:
            return
        if options.messages is not None and crew.sent >= options.messages:
            return
        crew.poll()
        faults.poll()
        if time.monotonic() - shown >= _LOOK_SECONDS:
            shown = time.monotonic()
            options.show_progress(f"{seconds:.0f} s: {crew.sent:,} messages sent, {faults.counts.total():,} faults")
        time.sleep(_POLL_SECONDS)


def _wait_until_processed(options: Options, arenas: list[Arena], crew: Crew) -> bool:
    """Wait until nothing is left to do; False when the rest does not become less any more."""
    fewest, since = math.inf, time.monotonic()
    while fewest and time.monotonic() - since < DRAIN_SECONDS:
        crew.poll()
        left = sum(map(_pending, arenas))
        if left < fewest:
            fewest, since = left, time.monotonic()
        options.show_progress(f"draining: {left:,.0f} messages are left")
        time.sleep(_LOOK_SECONDS)
    return not fewest


def _pending(arena: Arena) -> float:
    """Messages that wait, are delayed, are in work, or failed and can still succeed."""
    try:
        with arena.transport() as transport:
            figures = transport.status(*arena.with_delays)
            in_queues = sum(queue.pending + (queue.delayed or 0) + (queue.claimed or 0) for queue in figures)
            return in_queues + _retryable(arena, transport)
    except QueuePipelineError:
        # A worker was stopped while it held a lock, or the server is about to recover.
        return _UNKNOWN


def _retryable(arena: Arena, transport: QueueTransport) -> int:
    """Failed messages that the retrier still sends back."""
    if arena.is_nginn:
        queues = [transport.resolve(queue) for queue in arena.stages]
        found = [one.unique_id for queue in queues for one in transport.nginn.failed(queue, limit=_MOST)]
    else:
        found = [one.message_id for one in transport.failed.list(ERRORS, limit=_MOST) if one.failed_queue]
    known = [number_of_id(identity) for identity in found]
    return sum(1 for one in known if one is not None and arena.plan.doomed_at(one[1]) != one[0])


def _account(options: Options, arena: Arena, folder: Path) -> Account:
    options.show_progress(f"reading every message of {arena.name}")
    return Accountant(arena, folder).account()


@contextmanager
def _prepared(options: Options, folder: Path) -> Iterator[_Targets]:
    """The databases: a given one, or a private PostgreSQL server and a SQLite file."""
    with ExitStack() as closing:
        if options.database is None:
            cluster = closing.enter_context(PostgresCluster(settings={"max_connections": "300"}))
            targets = _postgresql(options, sa.make_url(cluster.url()), ("chaos", "chaos_nginn"), closing)
            arenas = [*targets.arenas, _sqlite(options, f"sqlite:///{folder}/queues.db")]
            yield replace(targets, arenas=arenas, cluster=cluster)
            return
        url = database_url(options.database)
        name = url.get_backend_name()
        if name == "sqlite":
            closing.callback(_remove_file, _new_file(url))
            yield _Targets([_sqlite(options, options.database)])
            return
        schemas = tuple(f"chaos{random.SystemRandom().getrandbits(32):08x}{end}" for end in ("", "_nginn"))
        if name == "postgresql":
            yield _postgresql(options, url, schemas, closing)
            return
        yield _Targets(_arenas(options, name, schemas, (options.database,)))


def _postgresql(options: Options, url: sa.URL, schemas: tuple[str, ...], closing: ExitStack) -> _Targets:
    """Both drivers, straight to the server and through the proxy; psycopg twice as often."""
    proxy = ProxyProcess(url.host or "127.0.0.1", url.port or 5432, options.seed)
    closing.callback(proxy.close)
    through = url.set(host="127.0.0.1", port=proxy.port)
    psycopg = [
        way.set(drivername="postgresql").update_query_dict({"application_name": APPLICATION}) for way in (url, through)
    ]
    odbc = [way.set(drivername="postgresql+pyodbc") for way in (url, through)]
    ways = tuple(way.render_as_string(hide_password=False) for way in (*psycopg, *psycopg, *odbc))
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    closing.callback(engine.dispose)
    return _Targets(_arenas(options, "postgresql", schemas, ways), engine=engine, proxy=proxy)


def _sqlite(options: Options, url: str) -> Arena:
    return Arena("sqlite", (url,), None, False, options.seed)


def _arenas(options: Options, name: str, schemas: tuple[str, ...], ways: tuple[str, ...]) -> list[Arena]:
    return [
        Arena(name, ways, schemas[0], False, options.seed),
        Arena(f"{name}, NGinn", ways, schemas[1], True, options.seed),
    ]


def _new_file(url: sa.URL) -> Path:
    path = Path(url.database or "")
    if path.exists():
        raise ConfigurationError(f"{path} is there already; name a new file, which is removed at the end")
    return path


def _remove_file(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
