"""`queue-pipeline health`: what it finds in Dagster's storage."""

from __future__ import annotations

import json
import subprocess
import sys

import dagster as dg
import pytest
from dagster._core.scheduler.instigation import InstigatorStatus

from queue_pipeline.orchestration import names
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.support.command_line import problems, run
from queue_pipeline_tests.support.dagster.peek_sensor import store_peek_sensor
from queue_pipeline_tests.support.waiting import eventually

ORDERS = {"name": "orders", "queue": "orders", "oldest_seconds": 900.0, "start_seconds": 0.0}


@pytest.fixture
def queues(tmp_path):
    with QueueTransport(f"sqlite:///{tmp_path}/queues.db") as transport:
        transport.install("orders", plain_queues=["error"])
        yield transport


@pytest.fixture
def command(tmp_path, queues):
    return lambda *arguments: run("--database", f"sqlite:///{tmp_path}/queues.db", *arguments)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """DAGSTER_HOME, in which Dagster was never started."""
    folder = tmp_path / "dagster"
    folder.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(folder))
    return folder


@pytest.fixture
def instance(home):
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    with dg.DagsterInstance.get() as instance:
        yield instance


def test_a_pipeline_that_is_paused_may_leave_messages_waiting(command, queues, instance):
    store_peek_sensor(instance, ticked_seconds_ago=1, pipelines=[ORDERS])
    assert command("send", "orders", "--body", "{}").code == 0
    assert "oldest_message" in eventually(lambda: problems(command("health", "--json", "--oldest-seconds", 0.1)))
    queues.pauses.pause("orders", "an operator", "stock-taking")
    ran = command("health", "--json", "--oldest-seconds", 0.1)
    assert problems(ran) == {}
    assert [one["check"] for one in ran.json["notes"]] == ["paused"]


def test_a_sensor_that_ticks_is_healthy_and_names_the_queues_to_look_at(command, queues, instance):
    queues.install("elsewhere")
    store_peek_sensor(instance, ticked_seconds_ago=30, pipelines=[ORDERS])
    ran = command("health", "--json")
    assert problems(ran) == {}
    assert ran.json["queues"] == ["orders"]
    assert 29 < ran.json["dagster"]["loops"][0]["last_tick_seconds"] < 90


def test_a_sensor_whose_last_tick_is_old_is_a_problem_with_its_reason(command, instance):
    store_peek_sensor(instance, ticked_seconds_ago=300, error="could not reach user code server")
    found = problems(command("health", "--json"))
    assert "300 s ago" in found["ticks"]
    assert "could not reach user code server" in found["ticks"]
    assert problems(command("health", "--json", "--tick-seconds", 400)) == {}


def test_the_reason_of_a_failed_tick_is_shown_without_a_password(command, instance):
    error = "cannot connect to postgresql://shop:s3cret@db/queues"
    store_peek_sensor(instance, ticked_seconds_ago=300, error=error)
    ran = command("health", "--json")
    assert "postgresql://shop:***@db/queues" in json.loads(ran.out)["dagster"]["loops"][0]["last_error"]
    assert "s3cret" not in ran.out


def test_a_silent_daemon_is_distinguished_from_a_code_server_that_does_not_tick(command, instance):
    store_peek_sensor(instance, ticked_seconds_ago=300, daemon_reports=False)
    assert "the daemon does not report" in problems(command("health", "--json"))["daemon"]
    assert problems(command("health", "--json", "--check", "ticks")) == {}


def test_a_single_check_can_be_chosen_and_then_only_what_it_needs_is_read(command, queues, instance):
    store_peek_sensor(instance, ticked_seconds_ago=1, pipelines=[{**ORDERS, "queue": "missing"}])
    assert set(problems(command("health", "--json"))) == {"queue"}
    ran = command("health", "--json", "--check", "ticks")
    assert problems(ran) == {}
    assert ran.json["queues"] == []
    assert command("health", "--check", "weather").code == 2


@pytest.mark.parametrize(
    ("status", "ticked", "check"),
    [(InstigatorStatus.STOPPED, 1, "sensor"), (InstigatorStatus.RUNNING, None, "ticks")],
)
def test_a_sensor_that_is_off_or_never_ticked_is_a_problem(command, instance, status, ticked, check):
    store_peek_sensor(instance, ticked_seconds_ago=ticked, status=status)
    assert set(problems(command("health", "--json"))) == {check}


def test_a_sensor_that_was_never_on_is_a_problem_unless_only_the_database_is_asked(command, instance):
    assert set(problems(command("health", "--json"))) == {"sensor"}
    assert problems(command("health", "--json", "--database-only")) == {}


def test_the_sensor_of_a_location_that_is_gone_can_be_left_out(command, instance):
    store_peek_sensor(instance, ticked_seconds_ago=1, location="new")
    store_peek_sensor(instance, ticked_seconds_ago=9999, location="old")
    assert set(problems(command("health", "--json"))) == {"ticks"}
    assert problems(command("health", "--json", "--location", "new")) == {}


def test_a_run_that_works_holds_a_slot(command, queues, instance):
    store_peek_sensor(instance, ticked_seconds_ago=1, pipelines=[ORDERS])
    run_id = "6f1c0f0e-0000-4000-8000-000000000001"
    run = dg.DagsterRun(
        "orders_pipeline", run_id, status=dg.DagsterRunStatus.STARTED, tags={names.PIPELINE_TAG: "orders"}
    )
    instance.add_run(run)
    assert run_id in problems(command("health", "--json"))["runs"]
    queues.slots.take(queues.resolve("orders"), names.owner(run_id), 1, 1, 60)
    assert problems(command("health", "--json")) == {}


def test_an_empty_home_of_dagster_is_a_problem_and_stays_empty(command, home):
    assert "dagster instance migrate" in problems(command("health", "--json"))["dagster"]
    assert list(home.iterdir()) == []


def test_neither_spark_nor_definitions_are_loaded():
    code = (
        "import sys; import queue_pipeline.orchestration.storage.instance_health, queue_pipeline.cli.commands.health; "
        "print([name for name in sys.modules if name == 'pyspark' or name.startswith('queue_pipeline.defs')])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
