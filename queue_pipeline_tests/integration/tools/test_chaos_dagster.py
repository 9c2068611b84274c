"""The adversary of a deployment: half a minute of faults, an account that is right, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.waiting import eventually
from tools.chaos.accountant import Account
from tools.chaos.dagster.accountant import accounts
from tools.chaos.dagster.plan import (
    BILLING,
    ERRORS,
    FINE,
    HOSTILE,
    HOSTILE_ERRORS,
    HOSTILE_RESULTS,
    ORDERS,
    RESULTS,
    TOTALS,
    VALUE_ERROR,
    order,
)
from tools.chaos.dagster.shop import SUMS, Look, Sender, install, look
from tools.postgres_cluster import PostgresCluster

SEED = 20
SECONDS = 25
START_SECONDS = 300.0


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.chaos", "--dagster", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


def processes_with(folder: Path) -> list[int]:
    """Processes whose environment names the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_orders_keep_flowing_under_faults_and_every_message_is_accounted_for(folder: Path):
    process = start("--seconds", str(SECONDS), "--seed", str(SEED), "--json", TMPDIR=str(folder))
    output, errors = process.communicate()
    print(f"seed {SEED}\n{output}\n{errors}")
    found = json.loads(output)
    assert process.returncode == 0
    assert found["right"]
    assert [one["sent"] > 0 for one in found["databases"]] == [True, True]
    assert sum(one["times"] for one in found["standstills"].values()) > 0
    assert not processes_with(folder)
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_interrupted_run_leaves_no_process_and_no_file(folder: Path):
    logs = folder / "logs"
    process = start("--seconds", "600", "--seed", "1", "--logs", str(logs), TMPDIR=str(folder))
    # Three services, PostgreSQL, a run and Spark are at work by the time of the first fault.
    eventually(lambda: (logs / "faults.log").exists(), seconds=2 * START_SECONDS)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    eventually(lambda: not processes_with(folder))
    assert list(folder.iterdir()) == [logs]


@pytest.fixture
def shop(postgres: PostgresCluster) -> Iterator[QueueTransport]:
    name = f"chaos_{uuid.uuid4().hex}"
    postgres.create_database(name)
    with QueueTransport(postgres.url(name)) as transport:
        install(transport)
        yield transport


def finish(transport: QueueTransport, queue: str, *bodies: dict[str, Any]) -> None:
    """Put messages where a pipeline would have put them."""
    transport.send(queue, [new_message(json.dumps(body)) for body in bodies])


def take(transport: QueueTransport, queue: str) -> None:
    with transport.transaction() as connection:
        connection.execute(sa.text(f"DELETE FROM {queue}"))


def settle(transport: QueueTransport, orders: int) -> None:
    """Take the orders from their queue, with results and totals as the pipelines write them."""
    take(transport, ORDERS)
    finish(transport, RESULTS, *({**order(number), "zones": ["UTC", "UTC"]} for number in range(orders)))
    with transport.transaction() as connection:
        for table in SUMS.values():
            for number in range(orders):
                one = order(number)
                row = {"customer": one["customer"], "messages": 1, "amount": one["amount"]}
                connection.execute(sa.insert(table), row)


def read(transport: QueueTransport) -> list[Account]:
    with transport.database.engine.connect() as connection:
        return accounts(connection)


def test_what_was_sent_and_processed_once_is_right(shop: QueueTransport):
    sender = Sender(shop, SEED)
    sender.send_orders(5)
    sender.send_hostile(FINE)
    sender.send_hostile(VALUE_ERROR)
    with shop.database.engine.connect() as connection:
        assert look(connection) == {ORDERS: Look(0, 5), BILLING: Look(0, 0), HOSTILE: Look(0, 2)}
    settle(shop, 5)
    take(shop, HOSTILE)
    queue = shop.resolve(ORDERS)
    shop.slots.take(queue, "run 1", wanted=1, most=1, lease_seconds=60)
    shop.slots.release(queue, "run 1")
    finish(shop, HOSTILE_RESULTS, {"number": 0, "action": FINE})
    finish(shop, HOSTILE_ERRORS, {"number": 1, "action": VALUE_ERROR})
    orders, hostile = read(shop)
    assert (orders.differences, hostile.differences) == (Account("").differences,) * 2
    assert (orders.sent, orders.results, orders.failed, orders.effects) == (5, 5, 0, 10)
    assert (hostile.sent, hostile.results, hostile.failed) == (2, 1, 1)
    with shop.database.engine.connect() as connection:
        assert look(connection) == {ORDERS: Look(5, 0), BILLING: Look(5, 0), HOSTILE: Look(2, 0)}


def test_what_was_lost_duplicated_changed_or_left_over_is_named(shop: QueueTransport):
    sender = Sender(shop, SEED)
    sender.send_orders(6)
    sender.send_hostile(VALUE_ERROR)
    settle(shop, 6)
    shop.slots.take(shop.resolve(ORDERS), "run 1", wanted=1, most=1, lease_seconds=60)
    finish(shop, RESULTS, {**order(1), "zones": ["UTC", "UTC"]})
    finish(shop, ERRORS, order(2))
    with shop.transaction() as connection:
        connection.execute(sa.text("DELETE FROM results WHERE convert_from(body, 'UTF8')::json ->> 'number' = '0'"))
        changed = "convert_to(replace(convert_from(body, 'UTF8'), '[\"UTC\"', '[\"CET\"'), 'UTF8')"
        where = "convert_from(body, 'UTF8')::json ->> 'number' = '3'"
        connection.execute(sa.text(f"UPDATE results SET body = {changed} WHERE {where}"))
        connection.execute(sa.update(SUMS[TOTALS]).where(SUMS[TOTALS].c.customer == 4).values(messages=2))
    orders, hostile = read(shop)
    assert dict(orders.lost) == {"message 0 of orders is not in results": 1}
    assert dict(orders.doubled) == {
        "message 1 of orders is 2 times in results, not 1": 1,
        "message 2 of orders is 1 times in the error queue, not 0": 1,
    }
    assert dict(orders.changed) == {
        "message 3 met settings of another pipeline: ['CET', 'UTC']": 1,
        "order_totals of customer 4: (2, 149), not (1, 149)": 1,
    }
    assert dict(orders.left_over) == {"rows in QueueSlots": 1}
    assert dict(hostile.lost) == {"message 0 of hostile is not in the error queue": 1}
    assert dict(hostile.left_over) == {"rows in hostile": 1}
