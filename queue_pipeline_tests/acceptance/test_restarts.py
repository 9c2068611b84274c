"""A restart of the code server in the middle of work: messages flow again soon, and come out once."""

from __future__ import annotations

import pytest

from queue_pipeline.orchestration.names import owner
from queue_pipeline_tests.acceptance.shop import PROCESSED_WITHIN_SECONDS, Shop, settle
from queue_pipeline_tests.acceptance.test_exactly_once import check_completed_by_another, run_of
from queue_pipeline_tests.support.dagster.dagster_processes import Dagster, Run
from queue_pipeline_tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(600)]

REPLACED_WITHIN_SECONDS = 60.0
"""A fifth of the lease: nothing waits for it."""


def test_messages_flow_again_after_the_code_server_was_killed_with_its_run(shop: Shop, dagster: Dagster) -> None:
    settle(shop, dagster)
    with shop.locked_totals():
        shop.place(30, bad=3)
        killed = run_of(dagster, shop.held().owner)
        eventually(shop.somebody_waits_for_totals, seconds=PROCESSED_WITHIN_SECONDS)
        dagster.kill_code_server(after_seconds=2)
        assert not dagster.run(killed.id).is_over
    dagster.start_code_server()
    # The next run tries what its dead holder had in work on a Spark of its own, which takes some time to start.
    eventually(lambda: shop.is_idle() or is_held_by_another(shop, killed), seconds=REPLACED_WITHIN_SECONDS)
    shop.wait_until_idle()
    shop.check_exactly_once()
    check_completed_by_another(dagster, killed)
    assert dagster.run(killed.id).status == "FAILURE"


def is_held_by_another(shop: Shop, former: Run) -> bool:
    """Whether another run has taken the messages over."""
    return any(claim.owner not in (None, owner(former.id)) for claim in shop.transport.claims.list())
