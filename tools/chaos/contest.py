"""One run of chaos: databases, workers and faults, then quiet until all is processed, then the account."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import sqlalchemy as sa

from queue_pipeline.transport.database.setting import database_url
from queue_pipeline.transport.errors import ConfigurationError, QueuePipelineError
from tools.chaos.accountant import Account, Accountant
from tools.chaos.arena import Arena
from tools.chaos.crew import Crew
from tools.chaos.desk import DRAIN
from tools.chaos.faults import APPLICATION, Faults, Proxy
from tools.chaos.progress import pending
from tools.chaos.report import Report
from tools.postgres_cluster import PostgresCluster

DRAIN_SECONDS = 90.0
"""When the rest has not become smaller for so long, it is left over."""
_POLL_SECONDS = 0.02
_LOOK_SECONDS = 0.5
_UNKNOWN = math.inf


@dataclass(frozen=True)
class Wishes:
    """What was asked for."""

    seed: int
    seconds: float | None
    messages: int | None
    database: str | None = None
    tell: Callable[[str], None] = lambda line: None


@dataclass
class _Stage:
    arenas: list[Arena]
    cluster: PostgresCluster | None = None
    engine: sa.Engine | None = None
    proxy: Proxy | None = None


def run(wishes: Wishes) -> Report:
    """Run it; nothing is left behind, whatever happens."""
    with ExitStack() as closing:
        folder = Path(closing.enter_context(TemporaryDirectory(prefix="queue_pipeline-chaos-")))
        stage = closing.enter_context(_prepared(wishes, folder))
        for arena in stage.arenas:
            if stage.cluster is None:
                closing.callback(arena.remove)
            arena.install()
        crew = Crew(stage.arenas, folder, wishes.seed)
        closing.callback(crew.close)
        crew.start()
        crew.wait_until_started()
        faults = Faults(wishes.seed, crew, stage.engine, stage.cluster, stage.proxy)
        started = time.monotonic()
        _make_trouble(wishes, crew, faults, started)
        trouble = time.monotonic() - started
        faults.end()
        (folder / DRAIN).touch()
        crew.resume_all()
        # Looks at several tables can miss a message that moves between them; once all workers ended, nothing moves.
        while _wait_until_processed(wishes, stage.arenas, crew):
            crew.finish()
            if not sum(map(_pending, stage.arenas)):
                break
            crew.start()
        crew.finish()
        drained = time.monotonic() - started - trouble
        return Report(
            wishes.seed,
            trouble,
            drained,
            [_account(wishes, arena, folder) for arena in stage.arenas],
            faults.counts,
            crew.work,
            crew.unexpected,
        )


def _make_trouble(wishes: Wishes, crew: Crew, faults: Faults, started: float) -> None:
    told = started
    while True:
        seconds = time.monotonic() - started
        if wishes.seconds is not None and seconds >= wishes.seconds:
            return
        if wishes.messages is not None and crew.sent >= wishes.messages:
            return
        crew.poll()
        faults.poll()
        if time.monotonic() - told >= _LOOK_SECONDS:
            told = time.monotonic()
            wishes.tell(f"{seconds:.0f} s: {crew.sent:,} messages sent, {faults.counts.total():,} faults")
        time.sleep(_POLL_SECONDS)


def _wait_until_processed(wishes: Wishes, arenas: list[Arena], crew: Crew) -> bool:
    """Wait until nothing is left to do; False when the rest does not become less any more."""
    fewest, since = math.inf, time.monotonic()
    while fewest and time.monotonic() - since < DRAIN_SECONDS:
        crew.poll()
        left = sum(map(_pending, arenas))
        if left < fewest:
            fewest, since = left, time.monotonic()
        wishes.tell(f"draining: {left:,.0f} messages are left")
        time.sleep(_LOOK_SECONDS)
    return not fewest


def _pending(arena: Arena) -> float:
    try:
        with arena.transport() as transport:
            return pending(arena, transport)
    except QueuePipelineError:
        # A worker was stopped with a lock in its hand, or the server is about to recover.
        return _UNKNOWN


def _account(wishes: Wishes, arena: Arena, folder: Path) -> Account:
    wishes.tell(f"reading every message of {arena.name}")
    return Accountant(arena, folder).account()


@contextmanager
def _prepared(wishes: Wishes, folder: Path) -> Iterator[_Stage]:
    """The databases: a given one, or a private PostgreSQL server and a SQLite file."""
    sqlite = Arena("sqlite", (f"sqlite:///{folder}/queues.db",), None, False, wishes.seed)
    with ExitStack() as closing:
        if wishes.database is None:
            cluster = closing.enter_context(PostgresCluster(settings={"max_connections": "300"}))
            url = sa.make_url(cluster.url())
            stage = _postgresql(wishes, url, ("chaos", "chaos_nginn"), closing)
            stage.cluster = cluster
            stage.arenas.append(sqlite)
            yield stage
            return
        url = database_url(wishes.database)
        name = url.get_backend_name()
        if name == "sqlite":
            closing.callback(_remove_file, _new_file(url))
            yield _Stage([Arena("sqlite", (wishes.database,), None, False, wishes.seed)])
            return
        schemas = tuple(f"chaos{random.SystemRandom().getrandbits(32):08x}{end}" for end in ("", "_nginn"))
        if name == "postgresql":
            yield _postgresql(wishes, url, schemas, closing)
            return
        yield _Stage(_arenas(wishes, name, schemas, (wishes.database,)))


def _postgresql(wishes: Wishes, url: sa.URL, schemas: tuple[str, ...], closing: ExitStack) -> _Stage:
    """Both drivers, straight to the server and through the proxy."""
    proxy = Proxy(url.host or "127.0.0.1", url.port or 5432, wishes.seed)
    closing.callback(proxy.close)
    through = url.set(host="127.0.0.1", port=proxy.port)
    ways = []
    for way in (url, through, url, through):
        psycopg = way.set(drivername="postgresql").update_query_dict({"application_name": APPLICATION})
        ways.append(psycopg.render_as_string(hide_password=False))
    ways += [way.set(drivername="postgresql+pyodbc").render_as_string(hide_password=False) for way in (url, through)]
    engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True)
    closing.callback(engine.dispose)
    return _Stage(_arenas(wishes, "postgresql", schemas, tuple(ways)), engine=engine, proxy=proxy)


def _arenas(wishes: Wishes, name: str, schemas: tuple[str, ...], ways: tuple[str, ...]) -> list[Arena]:
    return [
        Arena(name, ways, schemas[0], False, wishes.seed),
        Arena(f"{name}, NGinn", ways, schemas[1], True, wishes.seed),
    ]


def _new_file(url: sa.URL) -> Path:
    path = Path(url.database or "")
    if path.exists():
        raise ConfigurationError(f"{path} is there already; name a new file, which is removed at the end")
    return path


def _remove_file(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
