"""The sensors on a real Dagster instance and real queues; a tick peeks once."""

import json
import time
import uuid
from datetime import timedelta

import dagster as dg
import pytest
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import QueueTransportResource
from queue_pipeline.orchestration.watch import queue_observations
from queue_pipeline.orchestration.watch.surroundings import IN_FLIGHT
from queue_pipeline.orchestration.watch.watched_pipelines import pipelines_of
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.in_process import skip_reason

STATUS = dg.DagsterRunStatus
MODULE = ModuleCodePointer("queue_pipeline.definitions", "defs")


@pytest.fixture(autouse=True)
def one_peek_a_tick(monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")


def sensor_of(name, *declared):
    definitions = build_definitions(declared or [pipelines.declare()], autostart=False)
    return next(sensor for sensor in definitions.sensors if sensor.name == name)


def resource(backend):
    return QueueTransportResource(database=backend.url, default_schema=backend.schema)


def peek(backend, instance, *declared, cursor=None):
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"transport": resource(backend)}, sensor_name="peek_queues"
    )
    return sensor_of("peek_queues", *declared)(context)


def fill(transport, count=1, queue="orders", **options):
    transport.send(queue, [new_message(str(n), **options) for n in range(count)])


def add_run(instance, status, *, pipeline="orders", slots=None):
    tags = {names.PIPELINE_TAG: pipeline} | ({} if slots is None else {names.SLOTS_TAG: str(slots)})
    job = dg.job(name=f"{pipeline}_pipeline")(_nothing)
    place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), "__repository__")
    return instance.create_run_for_job(
        job,
        run_id=str(uuid.uuid4()),
        status=status,
        tags=tags,
        remote_job_origin=RemoteJobOrigin(place, job.name),
        job_code_origin=JobPythonOrigin(job.name, RepositoryPythonOrigin("python", MODULE)),
    )


def happened(instance, run, event):
    instance.report_dagster_event(dg.DagsterEvent(event_type_value=event.value, job_name=run.job_name), run.run_id)


def _nothing():
    pass


def requested(result):
    return [(request.job_name, request.tags) for request in result.run_requests or []]


def test_waiting_messages_request_a_run_that_is_counted_by_its_tags(backend, queues, instance):
    fill(queues, 5)
    result = peek(backend, instance)
    assert requested(result) == [
        (
            "orders_pipeline",
            {names.PIPELINE_TAG: "orders", names.SLOTS_TAG: "2", "queue_pipeline/waiting": "5"},
        )
    ]
    assert result.run_requests[0].run_key is None
    assert skip_reason(result) is None


def test_dagster_accepts_what_a_tick_requests(sqlite, instance):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 2)
    definitions = dg.Definitions.merge(
        build_definitions([pipelines.declare()], autostart=False),
        dg.Definitions(resources=pipelines.resources(sqlite)),
    )
    repository = definitions.get_repository_def()
    context = dg.build_sensor_context(
        instance=instance, definitions=definitions, resources={"transport": resource(sqlite)}
    )
    data = repository.get_sensor_def("peek_queues").evaluate_tick(context)
    (request,) = data.run_requests
    assert request.job_name == "orders_pipeline"
    assert dg.validate_run_config(repository.get_job("orders_pipeline"), request.run_config) is not None
    assert {event.asset_key.to_user_string() for event in data.asset_events} == {
        "queues/orders_queue",
        "queues/billing_queue",
        "queues/error_queue",
    }


def test_an_empty_queue_skips_the_tick_and_says_so(backend, queues, instance):
    result = peek(backend, instance)
    assert (requested(result), skip_reason(result)) == ([], "orders: nothing waits")


def test_messages_of_a_batch_without_a_holder_wait_too(backend, queues, instance):
    fill(queues, 3)
    queues.claims.release(queues.claim("orders", "run gone", 10))
    assert queues.peek("orders") == 0
    assert requested(peek(backend, instance))[0][1]["queue_pipeline/waiting"] == "3"


def test_messages_that_a_run_holds_do_not_wait(backend, queues, instance):
    fill(queues, 3)
    queues.claim("orders", "run 1", 10)
    assert skip_reason(peek(backend, instance)) == "orders: nothing waits"


@pytest.mark.parametrize("status", IN_FLIGHT, ids=lambda status: status.value)
def test_no_run_is_requested_while_as_many_are_in_flight_as_are_allowed(sqlite, instance, status):
    """TT-16: at most as many batches as declared are in work at once, over all runs."""
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 5)
    declared = pipelines.declare(max_concurrency=4, batches_per_run=2, batch_messages=1)
    add_run(instance, status, slots=2)
    assert [tags[names.SLOTS_TAG] for _, tags in requested(peek(sqlite, instance, declared))] == ["2"]
    add_run(instance, status)
    result = peek(sqlite, instance, declared)
    assert requested(result) == []
    assert skip_reason(result) == "orders: 5 messages wait, 4 slots in use"


def occupy(transport, owner, places, most=4):
    assert transport.slots.take(transport.resolve("orders"), owner, places, most, 300) == places


def test_messages_in_work_on_other_machines_are_counted_and_reported(backend, queues, instance):
    fill(queues, 5)
    occupy(queues, "run elsewhere", 2, most=2)
    result = peek(backend, instance)
    assert requested(result) == []
    assert skip_reason(result) == "orders: 5 messages wait, 2 slots in use, 2 of them on other machines"
    queues.slots.release(queues.resolve("orders"), "run elsewhere", keep=1)
    assert [tags[names.SLOTS_TAG] for _, tags in requested(peek(backend, instance))] == ["1"]
    queues.slots.release_owner("run elsewhere")
    assert [tags[names.SLOTS_TAG] for _, tags in requested(peek(backend, instance))] == ["2"]


def test_a_run_and_its_slots_are_counted_once(backend, queues, instance):
    fill(queues, 5)
    declared = pipelines.declare(max_concurrency=6, batch_messages=1)
    run = add_run(instance, STATUS.STARTED, slots=3)
    occupy(queues, names.owner(run.run_id), 2, most=6)
    assert [tags[names.SLOTS_TAG] for _, tags in requested(peek(backend, instance, declared))] == ["3"]
    occupy(queues, "run elsewhere", 3, most=6)
    result = peek(backend, instance, declared)
    assert requested(result) == []
    assert skip_reason(result) == "orders: 5 messages wait, 6 slots in use, 3 of them on other machines"


def test_a_run_without_the_tag_of_its_pipeline_is_counted_by_its_slots(backend, queues, instance):
    """A person materialized the asset: Dagster starts such a run under a job of its own."""
    fill(queues, 5)
    run = add_run(instance, STATUS.STARTED, pipeline="another", slots=1)
    occupy(queues, names.owner(run.run_id), 2, most=2)
    result = peek(backend, instance)
    assert requested(result) == []
    assert skip_reason(result) == "orders: 5 messages wait, 2 slots in use"


def test_runs_of_other_pipelines_and_ended_ones_are_not_counted(sqlite, instance):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport)
    for status in (STATUS.SUCCESS, STATUS.CANCELED):
        add_run(instance, status)
    add_run(instance, STATUS.STARTED, pipeline="returns", slots=2)
    assert len(requested(peek(sqlite, instance))) == 1


def test_a_pipeline_whose_last_runs_failed_waits_before_the_next(sqlite, instance):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 2)
    for _ in range(4):
        run = add_run(instance, STATUS.STARTED)
        instance.report_run_failed(run)
    result = peek(sqlite, instance)
    assert requested(result) == []
    assert skip_reason(result).startswith("orders: the last 4 runs failed; next try in ")
    run = add_run(instance, STATUS.STARTED)
    happened(instance, run, dg.DagsterEventType.PIPELINE_SUCCESS)
    assert len(requested(peek(sqlite, instance))) == 1


def test_a_paused_pipeline_is_skipped_until_it_is_resumed(backend, queues, instance):
    fill(queues)
    queues.pauses.pause("orders", "me")
    assert skip_reason(peek(backend, instance)) == "orders is paused"
    queues.pauses.resume("orders")
    assert len(requested(peek(backend, instance))) == 1


def test_a_missing_queue_is_named_with_the_command_that_installs_it(backend, instance):
    reason = skip_reason(peek(backend, instance))
    assert "orders" in reason
    assert "queue-pipeline install" in reason


def test_delayed_messages_are_no_reason_for_a_run_of_their_own(backend, queues, instance):
    queues.send("orders", new_message("late", delay=timedelta(seconds=-5)))
    result = peek(backend, instance)
    assert (requested(result), skip_reason(result)) == ([], "orders: nothing waits")


def observed(result):
    return {event.asset_key.to_user_string(): event.metadata for event in result.asset_events}


def test_queues_are_observed_and_not_again_before_something_changed(backend, queues, instance):
    fill(queues, 3)
    result = peek(backend, instance)
    seen = observed(result)
    assert set(seen) == {"queues/orders_queue", "queues/billing_queue", "queues/error_queue"}
    depth = seen["queues/orders_queue"]
    keys = ("depth_messages", "error_queue_messages", "due_later_messages", "in_work_messages")
    assert [depth[key].value for key in keys] == [3, 0, 0, 0]
    assert depth["age_of_oldest_s"].value >= 0
    fill(queues, 1)
    assert observed(peek(backend, instance, cursor=result.cursor)) == {}


def test_a_changed_depth_is_observed_after_a_minute_and_everything_after_an_hour(sqlite, instance):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 3)

    def aged(cursor, seconds):
        values = json.loads(cursor)
        values["observed"] = {queue: [when - seconds, depth] for queue, (when, depth) in values["observed"].items()}
        return json.dumps(values)

    cursor = peek(sqlite, instance).cursor
    fill(transport, 1)
    assert set(observed(peek(sqlite, instance, cursor=aged(cursor, 61)))) == {"queues/orders_queue"}
    assert len(observed(peek(sqlite, instance, cursor=aged(cursor, 3601)))) == 3


def test_a_tick_observes_a_bounded_number_of_queues_and_the_next_one_the_others(sqlite, instance, monkeypatch):
    monkeypatch.setattr(queue_observations, "MOST_IN_A_TICK", 2)
    sqlite.transport().install("orders", plain_queues=["billing", "error"])
    first = peek(sqlite, instance)
    second = peek(sqlite, instance, cursor=first.cursor)
    assert (len(observed(first)), len(observed(second))) == (2, 1)
    assert {*observed(first), *observed(second)} == {
        "queues/orders_queue",
        "queues/billing_queue",
        "queues/error_queue",
    }


def test_the_cursor_names_the_pipelines_that_are_watched(sqlite, instance):
    sqlite.transport().install("orders", plain_queues=["billing", "error"])
    cursor = peek(sqlite, instance, pipelines.declare(oldest_message_seconds=60)).cursor
    (watched,) = pipelines_of(cursor).values()
    assert (watched.name, watched.queue, watched.oldest_seconds) == ("orders", "orders", 60)


def test_a_preview_changes_nothing(backend, queues, instance):
    fill(queues, 2)
    peek(backend, instance)
    assert queues.peek("orders") == 2
    assert queues.claims.list() == []
    assert instance.get_runs_count() == 0


def test_what_ramp_up_learned_is_in_the_cursor(sqlite, instance):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport)
    declared = pipelines.declare(concurrency_policy="ramp_up", max_concurrency=3)
    cursor, slots = None, []
    for _ in range(5):
        result = peek(sqlite, instance, declared, cursor=cursor)
        cursor = result.cursor
        slots.append([tags[names.SLOTS_TAG] for _, tags in requested(result)])
    assert slots == [["1"], ["1"], ["1"], ["2"], ["2"]]


@pytest.mark.parametrize("secret", ["s3cr3t-pass"])
def test_a_password_is_in_no_reason_and_no_cursor(postgres, postgresql, instance, secret, caplog):
    address = postgresql.url.split("://", 1)[1].rsplit("@", 1)[-1]
    results = []
    for url in (f"postgresql://nobody:{secret}@{address}", f"postgresql://nobody:{secret}@127.0.0.1:1/none"):
        database = QueueTransportResource(database=url)
        context = dg.build_sensor_context(instance=instance, resources={"transport": database})
        result = sensor_of("peek_queues")(context)
        assert requested(result) == []
        results.append(skip_reason(result))
        assert secret not in (result.cursor or "")
        assert json.loads(result.cursor)["database_failures"] == 1
    assert all(secret not in reason for reason in results)
    assert all("next try in 1 s" in reason for reason in results)
    assert secret not in caplog.text


def test_an_unavailable_database_is_reported_in_full_once(sqlite, instance):
    database = QueueTransportResource(database="postgresql://nobody@127.0.0.1:1/none")

    def ticked(cursor):
        context = dg.build_sensor_context(instance=instance, cursor=cursor, resources={"transport": database})
        return sensor_of("peek_queues")(context)

    first = ticked(None)
    assert "the database is away" in skip_reason(first)
    assert first.asset_events == []
    values = json.loads(first.cursor)
    values["database_retry_at"] = time.time() - 1
    second = ticked(json.dumps(values))
    assert skip_reason(second) == "the database still cannot be used after 2 tries"


def test_a_locked_queue_is_reported(postgresql, instance):
    transport = postgresql.transport()
    transport.install("orders", "billing")
    impatient = QueueTransportResource(
        database=f"{postgresql.url}?options=-c%20lock_timeout%3D200", default_schema=postgresql.schema
    )
    with transport.transaction() as other:
        other.exec_driver_sql(f"LOCK TABLE {transport.resolve('orders').qualified} IN ACCESS EXCLUSIVE MODE")
        context = dg.build_sensor_context(instance=instance, resources={"transport": impatient})
        result = sensor_of("peek_queues")(context)
    assert "another session holds a lock" in skip_reason(result) and "orders" in skip_reason(result)
    assert requested(result) == []
