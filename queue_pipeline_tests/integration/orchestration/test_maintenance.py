"""The jobs beside the pipelines, each executed in this process."""

from datetime import timedelta

import dagster as dg

from queue_pipeline.orchestration.maintenance import move_until_quiet
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.in_process import execute, figures
from queue_pipeline_tests.support.waiting import eventually


def test_purging_deletes_what_has_expired_in_every_queue(backend, queues, instance):
    short = timedelta(milliseconds=1)
    queues.send("orders", [new_message(str(n), time_to_be_received=short) for n in range(5)])
    queues.send("billing", [new_message("x", time_to_be_received=short), new_message("y")])
    eventually(lambda: sum(status.expired for status in queues.status("orders", "billing")) == 6)
    result = execute(backend, instance, "purge_expired", run_config={"ops": {"purge": {"config": {"batch": 2}}}})
    assert figures(result, "purge") == {"purged_orders": 5, "purged_billing": 1, "purged_error": 0}
    assert (queues.peek("orders"), queues.peek("billing")) == (0, 1)


def test_purging_passes_over_queues_that_are_not_installed(backend, instance):
    backend.transport().install("orders", plain_queues=["error"])
    assert figures(execute(backend, instance, "purge_expired"), "purge") == {"purged_orders": 0, "purged_error": 0}


def test_due_messages_are_moved_and_later_ones_are_left(backend, queues, instance):
    queues.send("orders", [new_message("due", delay=timedelta(seconds=-1)), new_message("x", delay=timedelta(hours=1))])
    result = execute(backend, instance, "move_due", run_config={"ops": {"move": {"config": {"linger_seconds": 0}}}})
    assert figures(result, "move") == {"moved": 1}
    assert queues.peek("orders") == 1


def test_a_due_message_for_a_queue_that_does_not_exist_ends_in_the_error_queue_of_the_pipeline(sqlite, instance):
    queues = sqlite.transport(endpoint="orders")
    queues.install("orders", plain_queues=["nowhere", "failed orders"])
    queues.send("nowhere", new_message("x", delay=timedelta(seconds=-1)))
    sqlite.sql(queues, "DROP TABLE nowhere")
    config = {"ops": {"move": {"config": {"linger_seconds": 0}}}}
    result = execute(sqlite, instance, "move_due", pipelines.declare(error_queue="failed orders"), run_config=config)
    assert figures(result, "move") == {"moved": 1}
    assert (queues.peek("orders"), queues.peek("failed orders")) == (0, 1)


def test_the_mover_stays_for_what_is_due_soon(backend, queues, instance):
    """UT-33, UT-35: what becomes due while the mover waits is moved in time."""
    delays = [timedelta(milliseconds=200), timedelta(milliseconds=500), timedelta(hours=1)]
    queues.send("orders", [new_message("x", delay=delay) for delay in delays])
    assert figures(execute(backend, instance, "move_due"), "move") == {"moved": 2}
    assert queues.peek("orders") == 2


class Clock:
    def __init__(self):
        self.time, self.slept = 0.0, []

    def now(self):
        return self.time

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += max(seconds, 0.01)


def moved(queues, clock, linger):
    return move_until_quiet([(queues, "orders"), (queues, "missing")], linger, now=clock.now, sleep=clock.sleep)


def test_the_mover_ends_where_nothing_is_due_within_its_linger(sqlite):
    """UT-34: a message that is due after the linger is left to the next mover."""
    queues, clock = sqlite.transport(), Clock()
    queues.install("orders")
    assert moved(queues, clock, 60.0) == 0
    queues.send("orders", new_message("x", delay=timedelta(seconds=90)))
    assert moved(queues, clock, 60.0) == 0
    assert clock.slept == []


def test_the_mover_looks_again_twice_a_second_and_ends_after_ten_minutes(sqlite):
    """UT-30, UT-31: however far away the next message is, one that comes in earlier is seen at the next look."""
    queues, clock = sqlite.transport(), Clock()
    queues.install("orders")
    queues.send("orders", new_message("x", delay=timedelta(seconds=50)))
    assert moved(queues, clock, 60.0) == 0
    assert set(clock.slept) == {0.5}
    assert 600 <= clock.time < 601


def test_every_queue_is_observed_on_demand(backend, queues, instance):
    queues.send("orders", new_message("x"))
    result = execute(backend, instance, "observe_queues")
    seen = {
        event.asset_key.to_user_string(): event.asset_observation_data.asset_observation.metadata[
            "depth_messages"
        ].value
        for event in result.all_events
        if event.is_asset_observation
    }
    assert seen == {"queues/orders_queue": 1, "queues/billing_queue": 0, "queues/error_queue": 0}


def test_a_queue_of_several_pipelines_is_observed_once(backend, queues, instance):
    queues.install("returns")
    returns = pipelines.declare(name="returns", input_queue="returns", output_queues=["billing"])
    result = execute(backend, instance, "observe_queues", pipelines.declare(), returns)
    seen = sorted(event.asset_key.path[-1] for event in result.all_events if event.is_asset_observation)
    assert seen == ["billing_queue", "error_queue", "orders_queue", "returns_queue"]


def checks(result):
    return {check.asset_key.path[-1].removesuffix("_queue"): check for check in result.get_asset_check_evaluations()}


def test_queues_with_all_their_indexes_pass_the_audit(backend, queues, instance):
    result = execute(backend, instance, "audit_indexes")
    assert {queue: check.passed for queue, check in checks(result).items()} == {
        "orders": True,
        "billing": True,
        "error": True,
    }


def test_a_missing_index_is_a_warning_with_the_statement_that_fixes_it(backend, queues, instance):
    if backend.name == "postgresql":
        rows = backend.sql(
            queues,
            "SELECT indexname FROM pg_indexes "
            "WHERE schemaname = ? AND tablename = 'orders' AND indexdef LIKE '%xpires%'",
            (backend.schema,),
        )
        drop = f'DROP INDEX "{backend.schema}"."{rows[0][0]}"'
    else:
        rows = backend.sql(
            queues, "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%orders\"%Expires%'"
        )
        drop = f'DROP INDEX "{rows[0][0]}"'
    backend.sql(queues, drop)
    result = execute(backend, instance, "audit_indexes")
    assert result.success
    check = checks(result)["orders"]
    assert not check.passed
    assert check.severity is dg.AssetCheckSeverity.WARN
    assert "CREATE INDEX" in check.metadata["fix"].value.upper()
    assert check.metadata["findings"].value == len(check.metadata["details"].records) >= 1
    (fix,) = [record.data["fix"] for record in check.metadata["details"].records]
    backend.sql(queues, fix)
    assert checks(execute(backend, instance, "audit_indexes"))["orders"].passed


def test_a_queue_that_is_not_installed_fails_its_check_and_says_how_to_install_it(backend, instance):
    backend.transport().install("orders", plain_queues=["error"])
    result = execute(backend, instance, "audit_indexes")
    assert result.success
    check = checks(result)["billing"]
    assert (check.passed, check.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "queue-pipeline install" in check.description
