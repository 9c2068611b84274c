"""Fix, then retry, without a pause in between: the daemon starts a run with the new code at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.acceptance.shop import PROCESSED_WITHIN_SECONDS, runs_of_orders
from queue_pipeline_tests.support import command_line
from queue_pipeline_tests.support.dagster.dagster_processes import START_SECONDS, Dagster, dagster_processes
from queue_pipeline_tests.support.dagster.edited_shop import EditedShop
from queue_pipeline_tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture
def edited(tmp_path: Path, spark: object, spark_settings: dict[str, str]) -> EditedShop:
    """A project of its own, whose files a test may edit."""
    variables = {
        **spark_settings,
        "QUEUE_PIPELINE_DATABASE": f"sqlite:///{tmp_path}/queues.db",
        "QUEUE_PIPELINE_AUTOSTART": "1",
        "QUEUE_PIPELINE_TICK_SECONDS": "4",
    }
    shop = EditedShop(tmp_path / "project", variables)
    shop.write()
    return shop


@pytest.fixture
def queues(edited: EditedShop) -> Iterator[QueueTransport]:
    with QueueTransport(edited.settings["QUEUE_PIPELINE_DATABASE"]) as transport:
        transport.install("orders", plain_queues=["billing", "error"])
        yield transport


@pytest.fixture
def dagster(edited: EditedShop, queues: QueueTransport) -> Iterator[Dagster]:
    with dagster_processes(edited.environment, module=edited.module) as dagster:
        eventually(dagster.is_ready, seconds=START_SECONDS)
        yield dagster


def test_what_is_retried_after_a_fix_is_processed_by_the_new_code(
    edited: EditedShop, queues: QueueTransport, dagster: Dagster
) -> None:
    queues.send("orders", [new_message("NZ"), new_message("AT")])
    eventually(lambda: queues.peek("error") and queues.peek("billing"), seconds=PROCESSED_WITHIN_SECONDS)
    (old,) = runs_of_orders(dagster)
    assert not old.is_over, "it waits for more, for ten minutes"
    edited.serve("AT", "NZ")
    command = [*command_line.program(), "errors", "retry", "--exception", "CountryNotServed"]
    subprocess.run(command, env=dict(edited.environment), timeout=60, check=True)
    eventually(lambda: queues.peek("billing") == 2, seconds=PROCESSED_WITHIN_SECONDS)
    assert (queues.peek("orders"), queues.peek("error")) == (0, 0)
    eventually(lambda: dagster.run(old.id).status == "SUCCESS", seconds=60)
    assert len(runs_of_orders(dagster)) == 2
    ended = {one["run_id"]: one["run_ended_because"] for one in dagster.materializations("orders")}
    assert ended == {old.id: "the code changed: edited_shop.countries"}
