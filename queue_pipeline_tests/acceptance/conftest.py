"""One deployment for the whole folder: a code server, a daemon and a webserver on a database of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.acceptance.shop import Shop
from queue_pipeline_tests.support.command_line import environment
from queue_pipeline_tests.support.dagster.dagster_processes import START_SECONDS, Dagster, dagster_processes
from queue_pipeline_tests.support.waiting import eventually
from tools.postgres_cluster import PostgresCluster

DATABASE = "acceptance"


@pytest.fixture(scope="package")
def shop(postgres: PostgresCluster) -> Iterator[Shop]:
    postgres.create_database(DATABASE)
    url = postgres.url(DATABASE)
    with QueueTransport(url) as transport:
        shop = Shop(transport, environment(QUEUE_PIPELINE_DATABASE=url))
        shop.open()
        yield shop


@pytest.fixture(scope="package")
def dagster(shop: Shop, spark_settings: dict[str, str], request: pytest.FixtureRequest) -> Iterator[Dagster]:
    variables = {
        **spark_settings,
        "QUEUE_PIPELINE_DATABASE": shop.environment["QUEUE_PIPELINE_DATABASE"],
        "QUEUE_PIPELINE_AUTOSTART": "1",
        # A tick is only seen when it is over; production lets it loop for longer.
        "QUEUE_PIPELINE_TICK_SECONDS": "4",
    }
    with dagster_processes(environment(**variables)) as dagster:
        # The suite's Spark server, which the runs then find; it starts while the others do.
        request.getfixturevalue("spark")
        eventually(dagster.is_ready, seconds=START_SECONDS)
        yield dagster


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
    """A test that fails shows what the processes printed."""
    report = yield
    dagster = getattr(item, "funcargs", {}).get("dagster")
    if report.failed and dagster is not None:
        report.sections.append(("Dagster's processes", dagster.logs()))
    return report
