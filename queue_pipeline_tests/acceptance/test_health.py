"""`queue-pipeline health` beside a running deployment: a code server that is gone is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from queue_pipeline_tests.acceptance.shop import Shop, settle
from queue_pipeline_tests.support.command_line import environment, start
from queue_pipeline_tests.support.dagster.dagster_processes import START_SECONDS, Dagster
from queue_pipeline_tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(600)]

TICK_SECONDS = 15
"""Ticks take 4 s here, and Dagster begins one every 5 s."""


@pytest.mark.slow
def test_the_end_and_the_restart_of_a_code_server_are_noticed(shop: Shop, dagster: Dagster) -> None:
    settle(shop, dagster)
    assert "orders" in eventually(lambda: _healthy(shop, dagster), seconds=60)["queues"]
    dagster.kill_code_server(after_seconds=0)
    try:
        found = eventually(lambda: _problems(shop, dagster), seconds=120)
        assert [one["check"] for one in found] == ["ticks"]
        assert "start the code server again" in found[0]["description"]
    finally:
        dagster.start_code_server()
    eventually(lambda: _healthy(shop, dagster), seconds=START_SECONDS)


def _ask(shop: Shop, dagster: Dagster) -> tuple[int, dict[str, Any]]:
    variables = {**shop.environment, "DAGSTER_HOME": str(dagster.home)}
    ran = start(Path("/"), "health", "--json", "--tick-seconds", TICK_SECONDS, env=environment(**variables))
    assert ran.stderr == ""
    return ran.returncode, json.loads(ran.stdout)


def _healthy(shop: Shop, dagster: Dagster) -> dict[str, Any]:
    code, document = _ask(shop, dagster)
    return document if code == 0 else {}


def _problems(shop: Shop, dagster: Dagster) -> list[dict[str, str]]:
    code, document = _ask(shop, dagster)
    return document["problems"] if code == 1 else []
