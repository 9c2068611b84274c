"""Batches through the executors of a real cluster, exactly once: while workers die, tasks fail and databases crash."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.spark.cluster_run import WAIT, ClusterRun, cluster_run
from queue_pipeline_tests.support.waiting import eventually
from tools.cluster.standalone import StandaloneCluster
from tools.example import shop
from tools.example.orders import random_seed
from tools.example.samples import samples
from tools.postgres_cluster import PostgresCluster

ORDERS = int(os.environ.get("QUEUE_PIPELINE_TEST_ORDERS", "30000"))
"""As many as fit into a quick suite; it has been run with 200,000, and takes three minutes longer then."""
MESSAGES = 25_000
SPECULATION = (
    "spark.speculation=true; spark.speculation.interval=50ms; "
    "spark.speculation.multiplier=1.05; spark.speculation.quantile=0.3"
)

pytestmark = [pytest.mark.timeout(600)]


@pytest.fixture
def database() -> Iterator[PostgresCluster]:
    """A server of the test's own: some of these tests crash it."""
    with PostgresCluster() as cluster:
        yield cluster


@pytest.fixture
def transport(database: PostgresCluster) -> Iterator[QueueTransport]:
    with QueueTransport(database.url()) as transport:
        yield transport


def counted(transport: QueueTransport, statement: str) -> int:
    with transport.transaction() as connection:
        return int(connection.execute(text(statement)).scalar_one())


def staged(transport: QueueTransport) -> int:
    """Results in the outbox; the reports of parts that were read are there too, under the name of their job alone."""
    return counted(transport, """SELECT count(*) FROM "QueueOutbox" WHERE task LIKE '%.%'""")


def nothing_is_left(transport: QueueTransport) -> None:
    """Neither in work nor staged, and no run at work."""
    assert transport.claims.list() == []
    assert transport.slots.list() == []
    for table in ("QueueOutbox", "orders.Claimed"):
        assert counted(transport, f'SELECT count(*) FROM "{table}"') == 0
    assert transport.peek("orders") == 0


def nobody_holds_anything(transport: QueueTransport) -> bool:
    """Neither a batch, released or not, nor a slot."""
    free = all(claim.lease_seconds <= 0 for claim in transport.claims.list())
    return free and transport.slots.list() == []


def fill(transport: QueueTransport) -> None:
    """Messages of several parts; a task waits at the last of them."""
    transport.install("orders", "billing")
    numbered = (new_message(str(number)) for number in range(MESSAGES - 1))
    transport.send("orders", [*numbered, new_message(WAIT)])


def every_message_once(transport: QueueTransport) -> None:
    with transport.transaction() as connection:
        rows = connection.execute(text("SELECT convert_from(body, 'UTF8'), count(*) FROM billing GROUP BY body")).all()
    times = Counter(dict(map(tuple, rows)))
    assert len(times) == MESSAGES
    assert set(times.values()) == {1}


def waits_with_others_staged(run: ClusterRun, transport: QueueTransport) -> bool:
    return run.waits() and staged(transport) >= MESSAGES // 2


def test_the_example_goes_through_once_while_a_worker_is_killed_and_tasks_fail(
    cluster: StandaloneCluster, database: PostgresCluster, transport: QueueTransport, tmp_path: Path
) -> None:
    shop.install(transport)
    sent = shop.send(transport, samples(ORDERS, bad=0.01, seed=random_seed()))
    good = sent[None]
    assert 0 < sent.total() - good < ORDERS
    with cluster_run(
        "example",
        database.url(),
        cluster.master,
        cluster.environment,
        tmp_path / "run",
        batch=ORDERS // 2,
        conf=SPECULATION,
    ) as run:
        eventually(lambda: run.process.poll() is not None or staged(transport) > 0, seconds=240)
        killed = next(worker for worker in cluster.workers if cluster.executors(worker))
        for pid in [killed.pid, *cluster.executors(killed)]:
            os.kill(pid, signal.SIGKILL)
        cluster.start_worker()
        result = run.result()
    assert (result["reason"], result["failure"], result["messages"]) == ("the queue is empty", None, ORDERS)
    # Spark handled all of it: no batch had to be tried again.
    assert result["failed_attempts"] == 0
    for queue in ("billing", "shipping"):
        assert counted(transport, f"SELECT count(*) FROM {queue}") == good
        about = f"SELECT count(DISTINCT convert_from(body, 'UTF8')::json ->> 'OrderId') FROM {queue}"
        assert counted(transport, about) == good
    assert counted(transport, "SELECT count(*) FROM error") == ORDERS - good == result["failed"]
    assert sum(total.orders for total in shop.totals(transport)) == good
    nothing_is_left(transport)


@pytest.mark.slow
def test_an_executor_that_hangs_past_its_lease_and_comes_back_sends_nothing(
    cluster: StandaloneCluster, database: PostgresCluster, transport: QueueTransport, tmp_path: Path
) -> None:
    fill(transport)
    one_core = "spark.cores.max=1"
    with cluster_run(
        "waiting", database.url(), cluster.master, cluster.environment, tmp_path / "zombie", conf=one_core
    ) as zombie:
        eventually(lambda: waits_with_others_staged(zombie, transport), seconds=120)
        zombie.hang()
        eventually(lambda: nobody_holds_anything(transport))
        with cluster_run(
            "waiting", database.url(), cluster.master, cluster.environment, tmp_path / "heir", conf=one_core
        ) as heir:
            heir.go_on()
            result = heir.result()
        assert (result["failure"], result["messages"]) == (None, MESSAGES)
        every_message_once(transport)
        assert transport.claims.list() == []
        # Its task wakes up first, and would stage what is still in its hands; then the driver, which would complete.
        zombie.go_on()
        zombie.come_back()
        result = zombie.result()
    assert (result["failure"], result["messages"]) == (None, 0)
    every_message_once(transport)
    nothing_is_left(transport)


@pytest.mark.slow
def test_a_crash_of_the_database_in_mid_batch_has_the_batch_processed_again_once(
    cluster: StandaloneCluster, database: PostgresCluster, transport: QueueTransport, tmp_path: Path
) -> None:
    fill(transport)
    with cluster_run("waiting", database.url(), cluster.remote, cluster.environment, tmp_path / "crashed") as run:
        eventually(lambda: waits_with_others_staged(run, transport), seconds=120)
        database.restart("immediate")
        assert staged(transport) == 0
        run.go_on()
        assert run.result()["failure"] in ("StagedLostError", "DatabaseUnavailableError", "TransientDatabaseError")
    assert counted(transport, "SELECT count(*) FROM billing") == 0
    assert counted(transport, 'SELECT count(*) FROM "orders.Claimed"') == MESSAGES
    # While the server recovered, the run may have been unable to let go of what it held.
    eventually(lambda: nobody_holds_anything(transport))
    with cluster_run("waiting", database.url(), cluster.remote, cluster.environment, tmp_path / "again") as run:
        run.go_on()
        result = run.result()
    assert (result["failure"], result["messages"]) == (None, MESSAGES)
    every_message_once(transport)
    nothing_is_left(transport)
