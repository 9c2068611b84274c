"""The database says who works: runs that hold nothing are ended, and those that only wait make room for others."""

import subprocess
import sys
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster import DagsterRunStatus as STATUS

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.watch import run_upkeep
from queue_pipeline.orchestration.watch.code_server import CodeServer
from queue_pipeline.orchestration.watch.run_upkeep import LAUNCHED, Deployment, RunUpkeep, end_runs
from queue_pipeline.orchestration.watch.upkeep import LOOK_SECONDS
from queue_pipeline.transport.operations.process_identity import this_process
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.held_by_runs import HERE, add_run, hold, holders, status_of
from queue_pipeline_tests.support.dagster.in_process import skip_reason, ticked
from queue_pipeline_tests.support.databases.elapsed import end_leases

LAUNCHED_RUNS = pytest.mark.parametrize("status", LAUNCHED, ids=lambda status: status.value)


@pytest.fixture
def dead():
    """A process that lived until just now."""
    code = "from queue_pipeline.transport.operations.process_identity import this_process; print(this_process())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@LAUNCHED_RUNS
def test_a_launched_run_that_holds_nothing_for_too_long_is_ended(queues, instance, keep, status):
    run = add_run(instance, status)
    keep(60)
    assert status_of(instance, run) is status
    keep(10)
    ended = STATUS.CANCELED if status is STATUS.CANCELING else STATUS.FAILURE
    assert status_of(instance, run) is ended
    (said,) = [entry.message for entry in instance.all_logs(run.run_id) if entry.is_dagster_event]
    assert f"it has held neither a slot nor a batch for 60 s, though Dagster showed it as {status.value}" in said


@LAUNCHED_RUNS
def test_a_run_that_holds_a_slot_or_a_batch_works(backend, queues, instance, keep, status):
    with_slot, with_batch = (hold(queues, add_run(instance, status)) for _ in range(2))
    queues.slots.release_owner(with_batch)
    queues.claims.release_owner(with_slot)
    keep(600)
    assert holders(queues) == ({with_slot}, {with_batch})
    assert {run.status for run in instance.get_runs()} == {status}
    end_leases(backend, queues, with_slot)
    keep(70)
    assert [run.status for run in instance.get_runs()].count(status) == 1


@pytest.mark.parametrize("status", [STATUS.QUEUED, STATUS.NOT_STARTED], ids=lambda one: one.value)
def test_a_run_that_is_not_launched_may_wait_for_any_time(queues, instance, keep, status):
    run = add_run(instance, status)
    keep(600)
    assert status_of(instance, run) is status


def test_runs_of_other_code_locations_are_not_changed(queues, instance, keep):
    """Another code location may have a pipeline of this name on another database, as may the command line."""
    elsewhere = add_run(instance, STATUS.STARTED, location="there")
    by_hand = add_run(instance, STATUS.STARTED, location=None)
    other = add_run(instance, STATUS.STARTED, pipeline="returns")
    keep(600)
    assert {status_of(instance, run) for run in (elsewhere, by_hand, other)} == {STATUS.STARTED}


def test_time_without_a_slot_restarts_after_a_change_and_after_a_gap(queues, instance, keep, clock):
    """A run that ends its last batch, or one that was not looked at for long, is not over."""
    run = add_run(instance, STATUS.STARTED)
    keep(50)
    owner = hold(queues, run)
    keep(LOOK_SECONDS)
    queues.slots.release_owner(owner)
    queues.claims.release_owner(owner)
    keep(50)
    clock.seconds += 3600
    keep(60)
    assert status_of(instance, run) is STATUS.STARTED
    keep(10)
    assert status_of(instance, run) is STATUS.FAILURE


def test_a_run_whose_process_is_gone_is_ended_at_once(queues, instance, keep, dead):
    gone, works = add_run(instance, STATUS.STARTED), add_run(instance, STATUS.STARTED)
    untagged = add_run(instance, STATUS.STARTED, pipeline="", location=None)
    for run in (gone, untagged):
        hold(queues, run, dead)
    kept = {hold(queues, works, this_process()), hold(queues, "run of another Dagster", dead)}
    keep(LOOK_SECONDS)
    assert holders(queues) == (kept, kept)
    assert [status_of(instance, run) for run in (gone, untagged, works)] == [
        STATUS.FAILURE,
        STATUS.FAILURE,
        STATUS.STARTED,
    ]


def test_a_run_whose_process_is_gone_is_ended_at_once_even_after_its_lease(backend, queues, instance, keep, dead):
    """A code server that is started again may look at it for the first time later than that."""
    gone, elsewhere = add_run(instance, STATUS.STARTED), add_run(instance, STATUS.STARTED)
    for owner in [hold(queues, gone, dead), hold(queues, elsewhere)]:
        end_leases(backend, queues, owner)
    assert queues.slots.list() == []
    keep(LOOK_SECONDS)
    assert [status_of(instance, run) for run in (gone, elsewhere)] == [STATUS.FAILURE, STATUS.STARTED]
    assert [slot.owner for slot in queues.slots.list(expired=True)] == [names.owner(elsewhere.run_id)]


def test_a_run_whose_code_server_was_replaced_may_hold_nothing_for_a_shorter_time(sqlite, tmp_path, clock):
    """A run that is a process of a code server is killed with it, often before it holds anything."""
    queues = sqlite.transport()
    queues.install("orders", plain_queues=["billing", "error"])
    (tmp_path / "home").mkdir()
    upkeep = RunUpkeep([pipelines.declare(start_seconds=60)], clock)
    with dg.DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        orphan, own = add_run(instance, STATUS.STARTING), add_run(instance, STATUS.STARTING)
        servicer = SimpleNamespace(_executions={own.run_id: "its process"})
        for _ in range(6):
            upkeep.look(Deployment(instance, queues, HERE, CodeServer(servicer)))
            clock.seconds += LOOK_SECONDS
        assert [status_of(instance, run) for run in (orphan, own)] == [STATUS.FAILURE, STATUS.STARTING]


def test_runs_that_were_ended_from_outside_do_not_count_as_failures(backend, queues, instance, keep, dead, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")
    for _ in range(4):
        hold(queues, add_run(instance, STATUS.STARTED), dead)
    keep(LOOK_SECONDS)
    assert {run.status for run in instance.get_runs()} == {STATUS.FAILURE}
    assert [request.job_name for request in ticked(backend, instance).run_requests] == ["orders_pipeline"]
    for _ in range(4):
        instance.report_run_failed(add_run(instance, STATUS.STARTED))
    assert "the last 4 runs failed" in skip_reason(ticked(backend, instance))


def test_a_run_that_only_waits_for_messages_ends_when_others_are_queued(queues, instance, keep, monkeypatch):
    monkeypatch.setattr(run_upkeep, "LINGER_SECONDS", -1.0)
    lingering, works = (hold(queues, add_run(instance, STATUS.STARTED)) for _ in range(2))
    hold(queues, "run of another Dagster")
    queues.claims.release_owner(lingering)
    queues.claims.release_owner("run of another Dagster")
    queued = add_run(instance, STATUS.QUEUED, pipeline="returns")
    assert ending(queues, keep) == {}, "it was queued just now"
    monkeypatch.setattr(run_upkeep, "QUEUED_SECONDS", -1.0)
    assert ending(queues, keep) == {lingering: "it only waited for messages, and other runs are queued"}
    assert works in holders(queues)[1]
    assert status_of(instance, queued) is STATUS.QUEUED


def test_no_run_ends_while_none_is_queued(queues, instance, keep, monkeypatch):
    monkeypatch.setattr(run_upkeep, "LINGER_SECONDS", -1.0)
    queues.claims.release_owner(hold(queues, add_run(instance, STATUS.STARTED)))
    add_run(instance, STATUS.STARTING, pipeline="returns")
    assert ending(queues, keep) == {}


def ending(queues, keep):
    keep(LOOK_SECONDS)
    return {one.owner: one.ending for one in queues.slots.list() if one.ending is not None}


def test_the_runs_of_a_code_server_that_stops_take_no_further_batch(queues, instance):
    own, other = add_run(instance, STATUS.STARTED), add_run(instance, STATUS.STARTED)
    hold(queues, own)
    hold(queues, other)
    end_runs(Deployment(instance, queues), [own.run_id], "the code server stops")
    assert {one.owner: one.ending for one in queues.slots.list()} == {
        names.owner(own.run_id): "the code server stops",
        names.owner(other.run_id): None,
    }
