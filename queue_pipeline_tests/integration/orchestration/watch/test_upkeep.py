"""What ticks do beside their peeks: what ended runs hold is released, the outbox swept, pipelines are checked."""

from datetime import timedelta

import dagster as dg
import pytest
from dagster import DagsterRunStatus as STATUS

from queue_pipeline.orchestration.checks import ERRORS
from queue_pipeline.orchestration.watch.run_upkeep import Deployment
from queue_pipeline.orchestration.watch.upkeep import CHECK_SECONDS, LOOK_SECONDS, REPORT_SECONDS, Upkeep
from queue_pipeline.transport import OutgoingMessage, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.held_by_runs import HERE, Clock, add_run, hold, holders
from queue_pipeline_tests.support.dagster.in_process import peek_sensor, skip_reason, ticked


@pytest.mark.parametrize("status", [STATUS.FAILURE, STATUS.CANCELED, STATUS.SUCCESS], ids=lambda one: one.value)
def test_what_an_ended_run_holds_is_released_and_nothing_of_others(queues, instance, keep, status):
    hold(queues, add_run(instance, status))
    kept = {hold(queues, add_run(instance, STATUS.STARTED)), hold(queues, "run of another Dagster")}
    kept.add(hold(queues, "a person"))
    keep(LOOK_SECONDS)
    assert holders(queues) == (kept, kept)
    (released,) = [claim for claim in queues.claims.list() if claim.owner is None]
    assert released.failures == 0, "nothing was being tried"


def test_a_release_that_fails_is_tried_again_until_it_succeeds(backend, queues, instance, clock):
    """The event of a run's end comes once; what the run holds is there for as long as it holds it."""
    upkeep = Upkeep([pipelines.declare()], clock)
    owner = hold(queues, add_run(instance, STATUS.FAILURE))
    table = queues.book.own("QueueClaims").qualified
    moved = f'{table.rsplit(".", 1)[0]}."Elsewhere"' if backend.schema else '"Elsewhere"'
    backend.sql(queues, f'ALTER TABLE {table} RENAME TO "Elsewhere"')
    for _ in range(3):
        upkeep.look(Deployment(instance, queues, HERE), lambda: True)
        assert "runs and what they hold: " in upkeep.troubles()[0]
        clock.seconds += LOOK_SECONDS
    backend.sql(queues, f'ALTER TABLE {moved} RENAME TO "QueueClaims"')
    assert holders(queues) == ({owner}, {owner})
    upkeep.look(Deployment(instance, queues, HERE), lambda: True)
    assert (holders(queues), upkeep.troubles()) == ((set(), set()), [])


def test_a_tick_releases_what_ended_runs_hold_and_says_what_it_could_not_do(backend, queues, instance, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "1.5")
    hold(queues, add_run(instance, STATUS.FAILURE))
    ticked(backend, instance, preview=True)
    assert holders(queues) != (set(), set())
    backend.sql(queues, f"DROP TABLE {queues.book.own('QueueOutbox').qualified}")
    queues.pauses.pause("orders", "me")
    sensor = peek_sensor(pipelines.declare())
    said = skip_reason(ticked(backend, instance, sensor=sensor))
    assert holders(queues) == (set(), set())
    assert said.startswith("orders is paused; the outbox: ") and "QueueOutbox" in said


def test_what_was_staged_for_a_deleted_claim_is_swept(backend, queues, instance, keep):
    queues.install("billing")
    queues.send("orders", [OutgoingMessage(b"", {}) for _ in range(2)])
    kept, gone = (queues.claim("orders", "me", 1) for _ in range(2))
    result = MessageColumns("billing", False, ["1"], [NEVER_EXPIRES], ["{}"], [b""])
    for claim in (kept, gone):
        staged = queues.outbox.stage(claim, "job.0.1", [result])
    column = "claim_id" if backend.name == "postgresql" else "ClaimId"
    backend.sql(queues, f"DELETE FROM {queues.book.own('QueueClaims').qualified} WHERE {column} = ?", (gone.claim_id,))
    keep(LOOK_SECONDS)
    rows = backend.sql(queues, f"SELECT count(*) FROM {queues.book.own('QueueOutbox').qualified}")
    assert [tuple(row) for row in rows] == [(1,)]
    assert queues.claims.complete(Completion(kept, staged=staged, read=None)) == 1


def reported(upkeep):
    return {one.check_name: one.passed for one in of_pipelines(upkeep.take_evaluations(lambda: True))}


def of_pipelines(evaluations):
    return [one for one in evaluations if one.check_name != "indexes"]


def test_the_indexes_of_every_queue_are_checked_once_a_day_from_the_first_look(queues, keep):
    """In the UI a check that never ran looks as if it had passed."""
    upkeep = keep(LOOK_SECONDS)
    first = [
        one.asset_key.to_user_string() for one in upkeep.take_evaluations(lambda: True) if one.check_name == "indexes"
    ]
    assert sorted(first) == ["queues/billing_queue", "queues/error_queue", "queues/orders_queue"]
    again = keep(CHECK_SECONDS).take_evaluations(lambda: True)
    assert [one for one in again if one.check_name == "indexes"] == []


def test_checks_are_reported_when_they_change_and_every_hour(queues, keep):
    assert len(reported(keep(LOOK_SECONDS))) == 3
    assert reported(keep(2 * CHECK_SECONDS)) == {}
    queues.send("error", new_message("x", headers={"NServiceBus.FailedQ": queues.resolve("orders").canonical}))
    assert reported(keep(CHECK_SECONDS)) == {ERRORS: False}
    assert reported(keep(CHECK_SECONDS)) == {}
    assert reported(keep(REPORT_SECONDS)) == {
        "error_queue_empty": False,
        "oldest_message": True,
        "nothing_expired": True,
    }


def test_a_check_is_reported_as_it_is_at_the_end_of_a_tick_and_not_as_it_was_at_its_beginning(queues, keep):
    """A run that ends meanwhile has reported newer checks, which an older one must not replace."""
    upkeep = keep(LOOK_SECONDS)
    queues.send("error", new_message("x", headers={"NServiceBus.FailedQ": queues.resolve("orders").canonical}))
    assert reported(upkeep)[ERRORS] is False


def test_the_next_tick_reports_what_a_tick_has_no_time_for(queues, keep):
    """Dagster ends a tick after 60 s, and with it the runs that it would have started."""
    upkeep, times = keep(LOOK_SECONDS), iter([True, False])
    assert len(upkeep.take_evaluations(lambda: next(times))) == 1
    assert len(upkeep.take_evaluations(lambda: True)) == 5


def test_a_check_that_cannot_be_made_at_the_end_of_a_tick_is_made_at_that_of_the_next(backend, queues, keep):
    """It is looked at again after minutes, indexes after a day."""
    upkeep, table = keep(LOOK_SECONDS), queues.book.own("QueueFailures").qualified
    moved = f'{table.rsplit(".", 1)[0]}."Elsewhere"' if backend.schema else '"Elsewhere"'
    backend.sql(queues, f'ALTER TABLE {table} RENAME TO "Elsewhere"')
    assert set(reported(upkeep)) == {"error_queue_empty", "nothing_expired"}
    backend.sql(queues, f'ALTER TABLE {moved} RENAME TO "QueueFailures"')
    assert set(reported(upkeep)) == {"oldest_message"}


def test_what_a_run_reported_is_corrected_when_it_is_no_longer_true(queues, instance, keep):
    assert reported(keep(LOOK_SECONDS))[ERRORS] is True
    by_a_run = dg.AssetCheckEvaluation(dg.AssetKey("orders"), ERRORS, passed=False, metadata={})
    instance.report_runless_asset_event(by_a_run)
    assert reported(keep(CHECK_SECONDS)) == {ERRORS: True}


def test_a_tick_reports_checks_and_a_preview_does_not(backend, queues, instance, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "30")
    queues.send("orders", new_message("x", time_to_be_received=timedelta(hours=1)))

    def checks(**options):
        result = ticked(backend, instance, **options)
        return [event for event in result.asset_events if isinstance(event, dg.AssetCheckEvaluation)]

    assert checks(preview=True) == []
    assert {(one.asset_key.to_user_string(), one.passed) for one in of_pipelines(checks())} == {("orders", True)}


def test_checks_of_many_pipelines_are_made_one_after_the_other(queues, instance, clock):
    """A queue that is missing, or a database that answers slowly, delays a tick by one check at most."""
    many = [pipelines.declare(name=f"orders{number}", input_queue=f"orders{number}") for number in range(10)]
    upkeep, made = Upkeep(many, clock), []
    while clock.seconds < 1_000 + CHECK_SECONDS:
        upkeep.look(Deployment(instance, queues), lambda: True)
        made.append(len(of_pipelines(upkeep.take_evaluations(lambda: True))))
        clock.seconds += CHECK_SECONDS / 20
    assert (sum(made), max(made)) == (30, 3)


def test_a_look_begins_no_check_after_a_second_and_the_next_looks_continue(queues, instance):
    """After an outage all checks are due at once."""
    slow = SlowClock()
    upkeep = Upkeep([pipelines.declare(name=f"orders{number}") for number in range(10)], slow)
    slow.seconds += CHECK_SECONDS
    made = []
    while sum(made) < 30:
        upkeep.look(Deployment(instance, queues), lambda: True)
        made.append(len(of_pipelines(upkeep.take_evaluations(lambda: True))))
    assert max(made) == 3, "the checks of one pipeline"


class SlowClock(Clock):
    """Each step takes a third of a second."""

    def __call__(self):
        self.seconds += 1 / 3
        return self.seconds
