"""Fixtures that the whole suite shares: one PostgreSQL cluster per session, one schema (or file) per test."""

from __future__ import annotations

import itertools
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from sqlalchemy import text
from xdist.remote import Producer

from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import (
    PSYCOPG,
    PYODBC,
    SQLSERVER_VARIABLE,
    Backend,
    backend_names,
    chosen_driver,
    postgresql_names,
)
from queue_pipeline_tests.support.scheduling import SERVICES, GroupScheduling, group_of
from queue_pipeline_tests.support.spark.warm_spark import private_spark, users_spark
from queue_pipeline_tests.support.wheel import install_wheel
from tools.postgres_cluster import PostgresCluster

_numbers = itertools.count(1)
# Runs in the process of the tests would end when a person edits the project; those of their own processes do.
os.environ["QUEUE_PIPELINE_WATCH_CODE"] = "0"
# Java's second compiler takes half of the processor time of a Spark that lives for minutes, and pays for less of it.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")


def pytest_report_header() -> str:
    server = "set" if os.environ.get(SQLSERVER_VARIABLE) else f"not run: {SQLSERVER_VARIABLE} is not set"
    driver = "pyodbc" if chosen_driver() == PYODBC else "psycopg, a few modules through pyodbc as well"
    return f"databases: {', '.join(backend_names())}; PostgreSQL through {driver}; T-SQL server: {server}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what asks for a database on every one, or on PostgreSQL over the drivers that its module is for."""
    both_drivers = metafunc.definition.get_closest_marker("both_drivers") is not None
    if "backend" in metafunc.fixturenames:
        psycopg_only = metafunc.definition.get_closest_marker("psycopg_only") is not None
        names = backend_names(both_drivers=both_drivers, psycopg_only=psycopg_only)
        metafunc.parametrize("backend", names, indirect=True)
    if "postgresql" in metafunc.fixturenames:
        metafunc.parametrize("postgresql", postgresql_names(both_drivers=both_drivers), indirect=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="run the slow tests as well, which rarely fail")
    parser.addoption(
        "--quick", action="store_true", help="run what needs no Spark, no server, no browser and no services of Dagster"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for."""
    left_out = set() if config.getoption("--all") else {item for item in items if item.get_closest_marker("slow")}
    if config.getoption("--quick"):
        left_out |= {item for item in items if _is_heavy(item)}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _is_heavy(item: pytest.Item) -> bool:
    """Whether a test uses Spark or a server, or starts many processes of its own."""
    fixtures, callspec = getattr(item, "fixturenames", ()), getattr(item, "callspec", None)
    on_a_server = callspec is not None and callspec.params.get("backend", "sqlite") != "sqlite"
    needs_a_server = on_a_server or not {"spark_settings", "postgres", "postgresql"}.isdisjoint(fixtures)
    return bool(needs_a_server or item.get_closest_marker("heavy") or group_of(item.nodeid) in SERVICES)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Make reports UTF-8, as which they go to another process: some tests log and print halves of surrogate pairs."""
    report = yield
    report.sections = [(name, _storable(text)) for name, text in report.sections]
    if report.failed and (shown := str(report.longrepr)) != _storable(shown):
        report.longrepr = _storable(shown)
    return report


def _storable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    """What `--dist loadscope` distributes: groups of tests that share what takes long to start."""
    return GroupScheduling(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresCluster]:
    # Each test leaves a schema of tables that nothing uses any more: autovacuum would work on all of them.
    settings = {"max_connections": "300", "autovacuum": "off"}
    with PostgresCluster(settings=settings, driver=chosen_driver()) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def schemas(postgres: PostgresCluster) -> Iterator[str]:
    """Names of empty schemas, made many at a time: psql takes longer to start than to make them."""

    def made() -> Iterator[str]:
        for first in itertools.count(1, 50):
            names = [f"test{number}" for number in range(first, first + 50)]
            postgres.run_sql("; ".join(f"CREATE SCHEMA {name}" for name in names))
            yield from names

    return made()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a virtual environment that holds the built wheel."""
    return install_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def wheel_spark(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Iterator[dict[str, str]]:
    """The environment of the Spark server that projects with the wheel share."""
    with users_spark(tmp_path_factory.mktemp("spark"), wheel / "python") as settings:
        yield settings


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment under which this process and those that tests start share one Spark server."""
    with private_spark(tmp_path_factory.mktemp("spark")) as settings:
        yield settings


@pytest.fixture(scope="session")
def spark_resource(spark_settings: dict[str, str]) -> SparkResource:
    return SparkResource(spark_config=spark_config())


@pytest.fixture(scope="session")
def spark(spark_resource: SparkResource) -> SparkSession:
    """The one session of the suite."""
    return spark_resource.spark_session


@pytest.fixture
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    """Each test that asks for this runs on every database."""
    yield from _open(request.param, request, tmp_path)


@pytest.fixture
def sqlite(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    yield from _open("sqlite", request, tmp_path)


@pytest.fixture
def postgresql(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    yield from _open(request.param, request, tmp_path)


@pytest.fixture
def sqlserver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    if not os.environ.get(SQLSERVER_VARIABLE):
        pytest.skip(f"needs a T-SQL server: set {SQLSERVER_VARIABLE} to its setting (mssql://…)")
    yield from _open("sqlserver", request, tmp_path)


@pytest.fixture
def transport(backend: Backend) -> QueueTransport:
    """A transport with the queue `orders` and the error queue installed."""
    transport = backend.transport()
    transport.install("orders")
    return transport


@pytest.fixture
def needs_row_locks(backend: Backend) -> None:
    if not backend.skips_locked_rows:
        reason = "Babelfish ignores READPAST" if backend.is_babelfish else "SQLite has one writer at a time"
        pytest.skip(f"needs row locks: {reason}")


def _open(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    closers: list = []
    try:
        if name == "sqlite":
            yield Backend(name, f"sqlite:///{tmp_path}/queues.db", None, closers=closers)
        elif name in ("postgresql", PSYCOPG, PYODBC):
            cluster: PostgresCluster = request.getfixturevalue("postgres")
            schema = next(request.getfixturevalue("schemas"))
            url = cluster.url(driver=None if name == "postgresql" else name)
            yield Backend("postgresql", url, schema, closers=closers)
        else:
            yield from _open_sqlserver(os.environ[SQLSERVER_VARIABLE], closers)
    finally:
        for close in closers:
            close()


def _open_sqlserver(setting: str, closers: list) -> Iterator[Backend]:
    engine = Database(database_url(setting)).engine.execution_options(isolation_level="AUTOCOMMIT")
    schema = f"qp_test_{os.getpid()}_{next(_numbers)}"
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
        version = connection.exec_driver_sql("SELECT @@VERSION").scalar_one()
    try:
        yield Backend("sqlserver", setting, schema, "Babelfish" in version, closers)
    finally:
        for close in closers:
            close()
        closers.clear()
        listed = "SELECT CAST(TABLE_NAME AS nvarchar(128)) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = :schema"
        with engine.connect() as connection:
            for table in connection.execute(text(listed), {"schema": schema}).scalars().all():
                connection.exec_driver_sql(f"DROP TABLE [{schema}].[{table.replace(']', ']]')}]")
            connection.exec_driver_sql(f"DROP SCHEMA {schema}")
        engine.dispose()
