"""Dagster's objects over a queue of NGinn.MessageBus: a run, its plots, checks, and jobs that look after the queue."""

import json

import dagster as dg
import pytest
from pyspark.sql import functions as F

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.checks import AGE, ERRORS, check_pipeline
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.processing.declaration.outcomes import each, fail, publish, send
from queue_pipeline.transport import new_message
from queue_pipeline.transport.messages.event import Event
from queue_pipeline_tests.support.dagster import in_process, pipelines
from queue_pipeline_tests.support.databases.backends import run_sql

pytestmark = pytest.mark.spark_on_sqlite

QUEUE = "sql://db/Orders"
SETTINGS = {"aliases": ["db"], "endpoint": QUEUE, "retention_seconds": 0, "types": {"Shop.Order, Shop": "Shop.Order"}}


@pytest.fixture
def nginn(backend, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_NGINN", json.dumps(SETTINGS))
    transport = backend.transport()
    transport.install(QUEUE, "sql://db/Subscriber", "billing")
    return transport


def picky(messages):
    refused = F.col("payload.n") == 2
    return messages.select(
        "origin",
        each(
            send("billing", body=F.col("body"), when=~refused),
            publish("Shop.Sold", json=F.struct("payload.n"), when=~refused),
            fail(F.lit("two is refused"), error_type="TwoRefused", when=refused),
        ),
    )


def declare(**options):
    given = {
        "input_queue": QUEUE,
        "transform": picky,
        "body_schema": "n int not null",
        "publishes": [Event("Shop.Sold, Shop", parents=["Shop.Event"])],
    }
    return pipelines.declare(**{**given, **options})


def fill(transport, count):
    transport.send(QUEUE, [new_message(json.dumps({"n": n}), message_type="Shop.Order") for n in range(count)])


def bodies(transport, queue):
    return [json.loads(shown.body) for shown in transport.show(queue, 100)]


def test_a_run_over_an_nginn_queue_materializes_and_its_queue_is_plotted(backend, nginn, warm, instance):
    fill(nginn, 4)
    with nginn.database.transaction() as own:
        nginn.nginn.subscriptions.add(own, QUEUE, "sql://db/Subscriber", "Shop.Event", None)
    pipeline = declare()
    definitions = dg.Definitions.merge(
        build_definitions([pipeline], autostart=False), dg.Definitions(resources=pipelines.resources(backend, warm))
    )
    result = definitions.resolve_job_def(names.Names().job(pipeline)).execute_in_process(instance=instance)
    assert [body["n"] for body in bodies(nginn, "billing")] == [0, 1, 3]
    assert bodies(nginn, "sql://db/Subscriber") == [{"$type": "Shop.Sold, Shop", "n": n} for n in (0, 1, 3)]
    found = nginn.nginn.figures(nginn.resolve(QUEUE))
    assert (found.ready, found.scheduled, found.processed, found.failed) == (0, 0, 3, 1)
    observed = {
        event.asset_key.to_user_string(): event.asset_observation_data.asset_observation.metadata
        for event in result.all_events
        if event.event_type_value == "ASSET_OBSERVATION"
    }
    values = {name: value.value for name, value in observed["queues/sql/db/Orders_queue"].items()}
    assert {name: values[name] for name in ("depth_messages", "processed_messages", "error_queue_messages")} == {
        "depth_messages": 0,
        "processed_messages": 3,
        "error_queue_messages": 1,
    }
    assert values["latency_s"] > 0


def failed_orders(nginn):
    """Three orders, the second of which failed for good."""
    fill(nginn, 3)
    with nginn.database.transaction() as own:
        nginn.nginn.receiver.fail(own, nginn.resolve(QUEUE), [nginn.nginn.receiver.mark(shown(nginn)[1], "no stock")])
        run_sql(own.connection, f"UPDATE {nginn.resolve(QUEUE).qualified} SET subqueue = 'F' WHERE subqueue = 'R'")
    (failure,) = nginn.nginn.failed(nginn.resolve(QUEUE))
    return failure


def shown(nginn):
    return nginn.show(QUEUE, 100)


def test_the_check_names_failed_messages_and_the_command_that_makes_them_ready(nginn):
    pipeline = declare()
    assert check_pipeline(nginn, pipeline, ERRORS).passed
    failure = failed_orders(nginn)
    found = check_pipeline(nginn, pipeline, ERRORS)
    assert not found.passed
    assert found.description.endswith(f" nginn retry {QUEUE} --all")
    (row,) = (record.data for record in found.metadata["failed_messages"].records)
    assert (row["id"], row["cause"]) == (str(failure.id), "no stock")
    assert row["time"].endswith(" UTC")
    assert check_pipeline(nginn, pipeline, AGE).metadata["depth_messages"].value == 2


def test_the_jobs_over_failed_messages_retry_and_discard_them(backend, nginn, instance):
    failure = failed_orders(nginn)
    queue = nginn.resolve(QUEUE)

    def execute(job, op, **config):
        run_config = {"ops": {op: {"config": {"error_queue": QUEUE, **config}}}}
        return in_process.figures(in_process.execute(backend, instance, job, declare(), run_config=run_config), op)

    assert execute("retry_errors", "return_failed_messages", all=True)["returned"] == 1
    assert (nginn.nginn.failed(queue), nginn.peek(QUEUE)) == ([], 3)
    backend.sql(nginn, f"UPDATE {queue.qualified} SET subqueue = 'F'")
    assert execute("discard_errors", "discard_failed_messages", ids=[str(failure.id)])["discarded"] == 1
    assert len(nginn.nginn.failed(queue)) == 2
    assert execute("discard_errors", "discard_failed_messages", all=True)["discarded"] == 2


def test_the_purge_deletes_processed_messages_that_were_kept_for_long_enough(backend, nginn, instance):
    fill(nginn, 3)
    with nginn.receive(QUEUE, 2):
        pass
    result = in_process.execute(backend, instance, "purge_expired", declare())
    assert in_process.figures(result, "purge")[f"purged_{QUEUE}"] == 2
    assert nginn.nginn.figures(nginn.resolve(QUEUE)).processed == 0
    assert nginn.peek(QUEUE) == 1


def test_the_sensor_starts_runs_of_what_is_ready(backend, nginn, instance, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")
    options = {"input_queue": QUEUE, "transform": pipelines.forward}
    assert in_process.ticked(backend, instance, **options).skip_reason is not None
    fill(nginn, 2)
    result = in_process.ticked(backend, instance, **options)
    assert [request.job_name for request in result.run_requests] == ["orders_pipeline"]
