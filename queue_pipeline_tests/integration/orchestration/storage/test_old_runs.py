"""The job `remove_old_runs` on a real instance: what is old and ours goes, everything else stays."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.storage.event_log.schema import SqlEventLogStorageMetadata, SqlEventLogStorageTable
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from sqlalchemy import create_engine, func, select, text

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.storage import dagster_storage
from queue_pipeline.orchestration.storage.dagster_storage import remove_asset_events, remove_rows
from queue_pipeline.transport.database.engine import open_engine
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.storage_rows import storage_rows

ORDERS = dg.AssetKey(["queues", "orders_queue"])
CHECK = "oldest_message"


@pytest.fixture
def home(tmp_path):
    return tmp_path


@pytest.fixture
def instance(home):
    with dg.DagsterInstance.local_temp(str(home)) as instance:
        yield instance


def remove(instance, days=7, **tags):
    """Run the job; returns how many runs and events it removed."""
    jobs = build_definitions([pipelines.declare()], autostart=False).jobs
    (job,) = [job for job in jobs if job.name == "remove_old_runs"]
    config = {"ops": {"remove_history": {"config": {"keep_days": days}}}} if days else {}
    result = job.execute_in_process(instance=instance, run_config=config, tags=tags)
    (event,) = [event for event in result.events_for_node("remove_history") if event.is_successful_output]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def ran(instance, days_ago, job="orders_pipeline", status=dg.DagsterRunStatus.SUCCESS, **tags):
    """A run that was last heard of some days ago."""
    run = instance.create_run_for_job(_job(job), tags={names.PIPELINE_TAG: "orders", **tags})
    instance.report_engine_event("something happened", run)
    with instance.run_storage.connect() as connection:
        when = (datetime.now(UTC) - timedelta(days=days_ago)).replace(tzinfo=None)
        connection.exec_driver_sql(
            "UPDATE runs SET status = ?, update_timestamp = ?, create_timestamp = ? WHERE run_id = ?",
            (status.value, str(when), str(when), run.run_id),
        )
    return run.run_id


def _job(name):
    @dg.op
    def work():
        pass

    @dg.job(name=name)
    def job():
        work()

    return job


def observe(instance, count, days_ago):
    """Observations and check results of a sensor, some days old."""
    for number in range(count):
        instance.report_runless_asset_event(dg.AssetObservation(ORDERS, metadata={"depth_messages": number}))
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(passed=True, asset_key=dg.AssetKey("orders"), check_name=CHECK)
        )
    when = str((datetime.now(UTC) - timedelta(days=days_ago)).replace(tzinfo=None))
    storage = instance.event_log_storage
    for connect in (storage.index_connection, lambda: storage.run_connection("")):
        with connect() as connection:
            connection.exec_driver_sql("UPDATE event_logs SET timestamp = ?", (when,))
            connection.exec_driver_sql("UPDATE asset_check_executions SET create_timestamp = ?", (when,))


def test_a_run_that_ended_long_ago_goes_with_all_that_it_left(instance, home):
    remove(instance)
    before = storage_rows(home)
    old = ran(instance, days_ago=8)
    (home / "storage" / old).mkdir(parents=True)
    (home / "storage" / old / "result").write_text("a pickle")
    assert storage_rows(home) > before
    assert remove(instance)["runs"] == 1
    assert not [path for path in home.rglob("*") if old in path.name]
    added = storage_rows(home) - before
    # What is new is the second run of the job itself.
    assert added["runs"] == 1
    assert not instance.has_run(old)


def test_new_and_active_runs_and_those_of_others_are_kept(instance):
    kept = [
        ran(instance, days_ago=6),
        ran(instance, days_ago=99, status=dg.DagsterRunStatus.STARTED),
        ran(instance, days_ago=99, status=dg.DagsterRunStatus.NOT_STARTED),
        ran(instance, days_ago=99, job="another_job"),
        ran(instance, days_ago=99, **{REPOSITORY_LABEL_TAG: "__repository__@elsewhere"}),
    ]
    assert remove(instance)["runs"] == 0
    assert [run_id for run_id in kept if not instance.has_run(run_id)] == []


def test_runs_of_its_own_code_location_are_removed(instance):
    here = {REPOSITORY_LABEL_TAG: "__repository__@shop"}
    gone, stays = ran(instance, days_ago=9, **here), ran(instance, days_ago=9)
    assert remove(instance, **here)["runs"] == 1
    assert (instance.has_run(gone), instance.has_run(stays)) == (False, True)


def test_old_observations_and_check_results_go_but_the_newest(instance, home, monkeypatch):
    monkeypatch.setattr(dagster_storage, "PIECE", 7)
    observe(instance, 30, days_ago=8)
    assert remove(instance)["events"] > 0
    (last,) = instance.fetch_observations(ORDERS, limit=100).records
    assert last.asset_observation.metadata["depth_messages"].value == 29
    key = dg.AssetCheckKey(dg.AssetKey("orders"), CHECK)
    assert len(instance.event_log_storage.get_asset_check_execution_history(key, limit=100)) == 1
    assert instance.event_log_storage.get_latest_asset_check_execution_by_key([key])
    assert remove(instance)["events"] == 0


def test_new_observations_and_those_of_other_assets_stay(instance):
    observe(instance, 3, days_ago=6)
    assert remove(instance)["events"] == 0
    other = dg.AssetKey("other")
    assert remove_asset_events(instance, [other], datetime.now(UTC).replace(tzinfo=None), lambda: True) == 0
    assert len(instance.fetch_observations(ORDERS, limit=100).records) == 3


def test_rows_are_removed_on_postgresql_as_well(postgresql):
    """Dagster's tables there, without its PostgreSQL package."""
    engine = create_engine(open_engine(database_url(postgresql.url)).url)
    events = SqlEventLogStorageTable.c
    with engine.connect() as session:
        session.execute(text(f'SET search_path = "{postgresql.schema}"'))
        SqlEventLogStorageMetadata.create_all(session)
        for days in range(20):
            when = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days)
            row = {"run_id": "", "event": "{}", "asset_key": "a", "timestamp": when}
            session.execute(SqlEventLogStorageTable.insert().values(**row))
        old = [events.asset_key == "a", events.timestamp < datetime.now(UTC).replace(tzinfo=None) - timedelta(days=7)]
        removed = remove_rows(
            lambda: nullcontext(session), SqlEventLogStorageTable, [events.asset_key == "a"], old, lambda: True
        )
        left = session.execute(select(func.count()).select_from(SqlEventLogStorageTable)).scalar()
    # Fed in backwards, so that the newest row is one of the old ones.
    assert (removed, left) == (12, 8)
    engine.dispose()


def test_without_a_number_of_days_nothing_is_removed(instance, monkeypatch):
    monkeypatch.delenv("QUEUE_PIPELINE_KEEP_DAYS", raising=False)
    run_id = ran(instance, days_ago=99)
    remove(instance, days=None)
    assert instance.has_run(run_id)


@pytest.mark.parametrize(("days", "is_on"), [(None, False), ("14", True)])
def test_the_schedule_is_on_where_the_environment_says_how_long_history_is_kept(monkeypatch, days, is_on):
    monkeypatch.delenv("QUEUE_PIPELINE_KEEP_DAYS", raising=False)
    if days:
        monkeypatch.setenv("QUEUE_PIPELINE_KEEP_DAYS", days)
    definitions = build_definitions([pipelines.declare()], autostart=True)
    (schedule,) = [one for one in definitions.schedules if one.name == "remove_old_runs_schedule"]
    assert (schedule.default_status is dg.DefaultScheduleStatus.RUNNING) is is_on


@pytest.mark.parametrize("days", ["0", "-1", "soon", "99999", "1.5"])
def test_an_invalid_number_of_days_is_refused(monkeypatch, days):
    monkeypatch.setenv("QUEUE_PIPELINE_KEEP_DAYS", days)
    with pytest.raises(ConfigurationError, match="QUEUE_PIPELINE_KEEP_DAYS"):
        build_definitions([pipelines.declare()])
