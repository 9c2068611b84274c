"""The adversary of a deployment: what its seed plans, how it attributes standstills, and what its account notices."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from click.testing import CliRunner

from queue_pipeline_tests.support.waiting import eventually
from tools.chaos.accountant import Account
from tools.chaos.dagster.accountant import compare, compare_totals
from tools.chaos.dagster.command import command
from tools.chaos.dagster.liveness import silent_service
from tools.chaos.dagster.plan import BILLING, HARMFUL, HARMLESS, HOSTILE, ORDERS, action, fault_order, order
from tools.chaos.dagster.report import DagsterReport
from tools.chaos.dagster.services import Services
from tools.chaos.dagster.shop import Look
from tools.chaos.dagster.standstill import Standstills
from tools.chaos.report import Report
from tools.processes import Processes

pytestmark = pytest.mark.heavy

KINDS = ["killed", "stopped", "reloaded"]
QUIET = Look(0, 0)


def test_every_round_of_hostile_messages_has_each_action_and_another_order():
    size = 12 + 6 + len(HARMFUL)
    rounds = [[action(7, number) for number in range(first, first + size)] for first in (0, size, 2 * size)]
    assert [Counter(one) for one in rounds] == [Counter(rounds[0])] * 3
    assert set(rounds[0]) == {*HARMLESS, *HARMFUL}
    assert rounds[0] != rounds[1]
    assert rounds[0] == [action(7, number) for number in range(size)]
    assert rounds[0] != [action(8, number) for number in range(size)]


def test_an_action_that_is_left_out_is_never_asked_for():
    assert "hang_in_udf" not in {action(1, number, ["value_error"]) for number in range(100)}


def test_every_round_of_faults_has_each_kind_in_an_order_of_the_seed():
    found = list(islice(fault_order(3, KINDS), 9))
    assert [sorted(found[first : first + 3]) for first in (0, 3, 6)] == [sorted(KINDS)] * 3
    assert found == list(islice(fault_order(3, KINDS), 9))


def test_an_order_is_known_by_its_number():
    assert order(12) == order(12) == {"number": 12, "customer": 5, "amount": 445}


def looks(standstills: Standstills, *found: tuple[float, int, int]) -> None:
    for now, done, waiting in found:
        standstills.observe({ORDERS: Look(done, waiting), BILLING: QUIET, HOSTILE: QUIET}, now)


def test_a_standstill_begins_with_its_fault_and_ends_with_the_next_completed_message():
    standstills = Standstills(0.0)
    looks(standstills, (1.0, 1, 5))
    standstills.fault("killed", 3.0)
    looks(standstills, (10.0, 1, 9), (12.0, 2, 8), (13.0, 3, 7))
    assert standstills.of("killed", [ORDERS]) == 9.0
    assert standstills.of("killed", [BILLING, HOSTILE]) == 0.0
    assert standstills.times == {"killed": 1}


def test_a_pipeline_that_works_on_after_a_fault_and_then_stands_still_counts_from_its_last_message():
    standstills = Standstills(0.0)
    standstills.fault("killed", 3.0)
    looks(standstills, (4.0, 1, 5), (24.0, 1, 5))
    assert standstills.of("killed", [ORDERS]) == 20.0


def test_time_in_which_nothing_waits_is_no_standstill():
    standstills = Standstills(0.0)
    standstills.fault("killed", 1.0)
    looks(standstills, (1.5, 1, 0), (50.0, 1, 0), (50.5, 1, 3), (52.0, 2, 0))
    assert standstills.of("killed", [ORDERS]) == 2.0


def test_time_in_which_a_pipeline_is_paused_is_no_standstill():
    standstills = Standstills(0.0)
    standstills.fault("paused", 1.0)
    for now in (2.0, 3.0, 60.0, 61.0):
        standstills.observe({ORDERS: Look(0, 5)}, now, {ORDERS})
    looks(standstills, (61.5, 0, 5), (63.0, 1, 4))
    assert standstills.of("paused", [ORDERS]) == 2.0


def test_a_standstill_under_two_faults_belongs_to_both_each_from_its_own_beginning():
    standstills = Standstills(0.0)
    looks(standstills, (1.0, 1, 5))
    standstills.fault("killed", 2.0)
    standstills.fault("stopped", 6.0)
    looks(standstills, (10.0, 2, 5))
    assert (standstills.of("killed", [ORDERS]), standstills.of("stopped", [ORDERS])) == (8.0, 4.0)


def test_only_the_last_fault_before_a_standstill_is_its_cause():
    standstills = Standstills(0.0)
    standstills.fault("killed", 1.0)
    looks(standstills, (2.0, 1, 5))
    standstills.fault("stopped", 3.0)
    looks(standstills, (4.0, 2, 5), (30.0, 3, 5))
    assert (standstills.of("killed", [ORDERS]), standstills.of("stopped", [ORDERS])) == (2.0, 26.0)


def test_recovery_is_a_completed_message_of_each_pipeline():
    standstills = Standstills(0.0)
    looks(standstills, (5.0, 1, 0))
    assert standstills.has_completed_since([ORDERS], 4.0)
    assert not standstills.has_completed_since([ORDERS, BILLING], 4.0)
    assert not standstills.has_completed_since([ORDERS], 5.0)


def test_the_account_names_what_was_lost_duplicated_misplaced_and_never_sent():
    account = Account(ORDERS)
    sent = {1: True, 2: True, 3: True, 4: False, 5: False}
    compare(account, sent, results=Counter([1, 2, 2, 5, 9]), failed=Counter([3, 4]))
    assert dict(account.lost) == {
        "message 3 of orders is not in results": 1,
        "message 5 of orders is not in the error queue": 1,
    }
    assert dict(account.doubled) == {
        "message 2 of orders is 2 times in results, not 1": 1,
        "message 3 of orders is 1 times in the error queue, not 0": 1,
        "message 5 of orders is 1 times in results, not 0": 1,
    }
    assert dict(account.never_sent) == {"message 9 of orders": 1}
    assert (account.sent, account.results, account.failed) == (5, 5, 2)
    assert not account.is_right


def test_an_account_is_correct_if_each_message_is_where_it_belongs():
    account = Account(HOSTILE)
    compare(account, {1: True, 2: False}, results=Counter([1]), failed=Counter([2]))
    compare_totals(account, "order_totals", {1: (2, 30)}, {1: (2, 30)})
    assert account.is_right


def test_totals_that_differ_are_named():
    account = Account(ORDERS)
    compare_totals(account, "order_totals", {1: (2, 30), 2: (1, 5)}, {1: (3, 30), 3: (1, 1)})
    assert dict(account.changed) == {
        "order_totals of customer 1: (3, 30), not (2, 30)": 1,
        "order_totals of customer 2: (0, 0), not (1, 5)": 1,
        "order_totals of customer 3: (1, 1), not (0, 0)": 1,
    }


def outcome(seconds: float, unexpected: Counter[str] | None = None) -> DagsterReport:
    standstills = Standstills(0.0)
    standstills.fault("killed", 0.0)
    looks(standstills, (seconds, 1, 1))
    standstills.observe({HOSTILE: Look(1, 1)}, 500.0)
    report = Report(1, 60.0, 5.0, [Account(ORDERS)], standstills.times, Counter(), unexpected or Counter())
    return DagsterReport(report, standstills, longest_standstill=120.0)


def test_a_standstill_of_the_orders_above_the_limit_fails_the_run_and_one_of_the_hostile_pipeline_does_not():
    assert outcome(120.0).is_right
    late = outcome(120.5)
    assert not late.is_right
    assert late.too_long == ["killed"]
    assert late.as_json()["standstills"] == {"killed": {"times": 1, "orders_seconds": 120.5, "hostile_seconds": 379.5}}
    assert "after 'killed' the orders stood still for more than 120 s" in late.lines()


def test_an_unexpected_error_fails_the_run():
    assert not outcome(1.0, Counter({"2 runs are STARTED though nothing waits": 2})).is_right


def test_an_unknown_action_is_refused_by_name():
    done = CliRunner().invoke(command, ["--dagster", "--without", "hang_in_udf,sing"])
    assert done.exit_code == 2
    assert "sing is none of value_error" in done.output


def probed(*problems: tuple[str, str]) -> str:
    return json.dumps({"problems": [{"check": check, "description": text} for check, text in problems]})


@pytest.mark.parametrize(
    ("output", "service"),
    [
        (probed(), None),
        (probed(("database", "the queues cannot be looked at")), None),
        (probed(("daemon", "the daemon does not report: start it again.")), "daemon"),
        (probed(("ticks", "the daemon reports: start the code server again, or reload")), "code server"),
        ("Traceback", None),
    ],
)
def test_a_liveness_probe_names_the_service_that_does_not_tick(output: str, service: str | None):
    assert silent_service(output) == service


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    sleeper = [sys.executable, "-c", "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"]
    found = Services(tmp_path, os.environ, {"sleeper": sleeper})
    yield found
    found.close()


def both(processes: Processes, *others_than: int) -> list[int]:
    """The service and what it started, once both are there."""
    found = processes.alive()
    return found if len(found) == 2 and not {*found} & {*others_than} else []


def test_a_service_that_dies_ends_its_children_and_is_started_again(services: Services):
    services.start()
    processes: Processes = services._services["sleeper"].processes
    before = eventually(lambda: both(processes))
    os.kill(min(before), 9)
    after = eventually(lambda: both(processes, *before))
    assert services.restarts == {"sleeper": 1}
    assert all(services.has("sleeper", pid) for pid in after)
    services.close()
    assert processes.alive() == []


def test_a_service_that_is_stopped_starts_again(services: Services):
    services.start()
    processes: Processes = services._services["sleeper"].processes
    before = eventually(lambda: both(processes))
    assert services.stop("sleeper")
    assert not services.stop("sleeper"), "it is being stopped already"
    assert eventually(lambda: both(processes, *before))
