"""Messages from another process go through real runs of a real daemon, once, whatever happens to the runs."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from queue_pipeline.orchestration.names import PEEK_SENSOR, owner
from queue_pipeline_tests.acceptance.shop import PROCESSED_WITHIN_SECONDS, Shop, runs_of_orders, settle
from queue_pipeline_tests.support.dagster.dagster_processes import Dagster, Run
from queue_pipeline_tests.support.spark.warm_spark import DISCOVERY_VARIABLE
from queue_pipeline_tests.support.waiting import eventually

# The first test starts the deployment; a machine that is busy otherwise takes its time.
pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture
def quiet(shop: Shop, dagster: Dagster) -> None:
    """No run is left that could take what a test sends."""
    settle(shop, dagster)


def test_messages_of_another_process_come_out_once(shop: Shop, dagster: Dagster, quiet: None) -> None:
    before = {run.id for run in runs_of_orders(dagster)}
    shop.place(200, bad=6)
    shop.wait_until_idle()
    shop.check_exactly_once()
    settle(shop, dagster)
    started = [run for run in runs_of_orders(dagster) if run.id not in before]
    assert started
    for run in started:
        assert run.status == "SUCCESS"
        assert run.job == "orders_pipeline"
        assert run.tags["dagster/sensor_name"] == PEEK_SENSOR
    figures = [one for one in dagster.materializations("orders") if one["run_id"] not in before]
    assert sum(one["run_messages_in"] for one in figures) == 206
    assert sum(one["run_messages_out"] for one in figures) == 400
    assert sum(one["run_messages_to_error_queue"] for one in figures) == 6


def test_messages_of_a_killed_run_are_processed_once_by_the_next(shop: Shop, dagster: Dagster, quiet: None) -> None:
    with shop.locked_totals():
        shop.place(30, bad=3)
        claim = shop.held()
        eventually(shop.somebody_waits_for_totals, seconds=PROCESSED_WITHIN_SECONDS)
        killed = run_of(dagster, claim.owner)
        pid = dagster.worker_pid(killed.id)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: dagster.run(killed.id).status == "FAILURE", seconds=60)
    shop.wait_until_idle()
    shop.check_exactly_once()
    check_completed_by_another(dagster, killed)


@pytest.mark.slow
def test_messages_of_a_terminated_run_are_processed_once_by_the_next(
    shop: Shop, dagster: Dagster, quiet: None, spark_settings: dict[str, str]
) -> None:
    with spark_hangs(spark_settings):
        shop.place(30, bad=3)
        claim = shop.held()
        terminated = run_of(dagster, claim.owner)
        eventually(lambda: dagster.steps(terminated.id).get("orders.process_orders") == "IN_PROGRESS", seconds=60)
        dagster.terminate(terminated.id)
        eventually(lambda: dagster.run(terminated.id).status == "CANCELED", seconds=60)
        # By the run itself or, if it was between its steps, by the peek loop; the lease would last for minutes.
        eventually(lambda: owner(terminated.id) not in {claim.owner for claim in shop.transport.claims.list()})
    shop.wait_until_idle()
    shop.check_exactly_once()
    check_completed_by_another(dagster, terminated)


@pytest.mark.slow
def test_a_paused_pipeline_holds_its_messages_until_it_is_resumed(shop: Shop, dagster: Dagster, quiet: None) -> None:
    shop.command("pause", "orders", "--reason", "the shop is being painted")
    before = {run.id for run in dagster.runs()}
    shop.place(10)
    sent = time.time()
    eventually(
        lambda: any(
            "orders is paused" in (tick.skip_reason or "") and tick.timestamp > sent
            for tick in dagster.ticks(PEEK_SENSOR)
        ),
        seconds=60,
    )
    assert shop.waiting() == 10
    assert {run.id for run in runs_of_orders(dagster)} <= before
    shop.command("resume", "orders")
    shop.wait_until_idle()
    shop.check_exactly_once()


def run_of(dagster: Dagster, holder: str | None) -> Run:
    """The run that holds a batch."""
    (found,) = [run for run in runs_of_orders(dagster) if owner(run.id) == holder]
    return found


def check_completed_by_another(dagster: Dagster, former: Run) -> None:
    # A run writes its materialization after its last batch.
    completed = eventually(
        lambda: {one["run_id"] for one in dagster.materializations("orders") if one["run_messages_in"]}, seconds=60
    )
    assert former.id not in completed


@contextmanager
def spark_hangs(settings: dict[str, str]) -> Iterator[None]:
    """Spark's server stands still, as one does that collects garbage forever."""
    pid = json.loads(Path(settings[DISCOVERY_VARIABLE]).read_text())["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
