"""The job of a pipeline, executed in this process with a real database and a real Spark."""

import json

import dagster as dg
import pytest
from pyspark.sql import functions as F

from queue_pipeline.orchestration import names, run_log
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.declaration.outcomes import each, fail, send
from queue_pipeline.transport import new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.dagster import pipelines

pytestmark = pytest.mark.spark_on_sqlite


def execute(pipeline, resources, instance, tags=None):
    definitions = dg.Definitions.merge(
        build_definitions([pipeline], autostart=False), dg.Definitions(resources=resources)
    )
    job = definitions.resolve_job_def(names.Names().job(pipeline))
    return job.execute_in_process(instance=instance, raise_on_error=False, tags=tags)


def fill(transport, count, **options):
    transport.send("orders", [new_message(json.dumps({"n": n}), **options) for n in range(count)])


def bodies(transport, queue):
    return [shown.body for shown in transport.show(queue, 1_000)]


def failure_of(result):
    (event,) = [event for event in result.all_events if event.is_step_failure]
    error = event.step_failure_data.error
    return f"{error.message} {event.step_failure_data.user_failure_data}"


def picky(messages):
    return messages.select(
        "origin",
        each(
            send("billing", body=F.col("body"), when=F.col("payload.n") != 2),
            fail(F.lit("two is refused"), error_type="TwoRefused", when=F.col("payload.n") == 2),
        ),
    )


def test_a_run_drains_its_queue_and_materializes_with_its_figures(backend, queues, warm, instance):
    fill(queues, 10, message_type="Shop.OrderPlaced")
    queues.send("orders", new_message("not json"))
    pipeline = pipelines.declare(transform=picky, body_schema="n int not null", batch_messages=4)
    result = execute(pipeline, pipelines.resources(backend, warm), instance)
    assert result.success
    assert sorted(json.loads(body)["n"] for body in bodies(queues, "billing")) == [0, 1, 3, 4, 5, 6, 7, 8, 9]
    assert (queues.peek("orders"), queues.peek("error"), queues.claims.list()) == (0, 2, [])
    (event,) = result.asset_materializations_for_node("orders.process_orders")
    assert event.asset_key == dg.AssetKey("orders")
    values = {name: value.value for name, value in event.metadata.items()}
    assert {
        name: values[name]
        for name in ("messages_in", "messages_out", "messages_to_error_queue", "run_batches", "run_highest_attempt")
    } == {
        "messages_in": 11,
        "messages_out": 9,
        "messages_to_error_queue": 2,
        "run_batches": 3,
        "run_highest_attempt": 1,
    }
    assert values["run_ended_because"] == "the queue is empty"
    assert values["latency_max_s"] >= values["latency_p95_s"] >= values["latency_p50_s"] >= 0
    assert {record.data["cause"].partition(":")[0] for record in event.metadata["failed_messages"].records} == {
        "TwoRefused",
        "MessageBodyUnreadable",
    }
    observed = {
        event.asset_key.to_user_string(): {
            name: value.value for name, value in event.asset_observation_data.asset_observation.metadata.items()
        }
        for event in result.all_events
        if event.is_asset_observation
    }
    assert (
        observed["queues/orders_queue"]["depth_messages"],
        observed["queues/orders_queue"]["error_queue_messages"],
    ) == (0, 2)
    assert observed["queues/billing_queue"]["depth_messages"] == 9


def test_a_run_reports_while_it_works_and_its_materialization_has_the_rest_and_the_sums(
    backend, queues, warm, instance, monkeypatch
):
    monkeypatch.setattr(run_log, "REPORT_SECONDS", 0.0)
    fill(queues, 9)
    pipeline = pipelines.declare(transform=picky, body_schema="n int not null", batch_messages=3)
    result = execute(pipeline, pipelines.resources(backend, warm), instance)
    reports = [
        event.asset_observation_data.asset_observation
        for event in result.all_events
        if event.is_asset_observation and event.asset_key == dg.AssetKey("orders")
    ]
    (last,) = (event.metadata for event in result.asset_materializations_for_node("orders.process_orders"))
    assert reports
    assert "messages in" in reports[0].description
    assert "run_messages_in" not in reports[0].metadata
    assert sum(one["messages_in"].value for one in [last, *(report.metadata for report in reports)]) == 9
    assert last["run_messages_in"].value == 9


def test_an_empty_queue_ends_the_run_without_a_result_and_without_spark(backend, queues, instance):
    nobody = SparkResource(spark_config={"spark.remote": "sc://127.0.0.1:1"})
    result = execute(pipelines.declare(), pipelines.resources(backend, nobody), instance)
    assert result.success
    assert result.get_asset_materialization_events() == []
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == ["orders.process_orders"]


def test_a_missing_queue_fails_the_run_with_the_command_that_installs_it(backend, instance):
    backend.transport().install("other")
    result = execute(pipelines.declare(), pipelines.resources(backend), instance)
    assert not result.success
    reported = failure_of(result)
    assert "pipeline orders: queue " in reported
    assert "queue-pipeline install" in reported
    assert "Traceback" not in reported


def test_a_paused_pipeline_takes_nothing(backend, queues, instance):
    fill(queues, 2)
    queues.pauses.pause("orders", "me", "maintenance")
    result = execute(pipelines.declare(), pipelines.resources(backend), instance)
    assert result.success
    assert queues.peek("orders") == 2
    assert queues.claims.list() == []


def wrong_columns(messages):
    return messages.select("origin", F.col("body").alias("boddy"))


def test_wrong_columns_fail_the_run_by_name_and_release_the_batch(backend, queues, warm, instance):
    fill(queues, 3)
    pipeline = pipelines.declare(transform=wrong_columns)
    result = execute(pipeline, pipelines.resources(backend, warm), instance)
    assert not result.success
    reported = failure_of(result)
    assert "boddy" in reported
    assert "its messages are released and will be processed again" in reported
    (claim,) = queues.claims.list()
    assert (claim.owner, claim.generation, claim.messages) == (None, 1, 3)
    assert queues.peek("billing") == 0
    again = execute(pipelines.declare(), pipelines.resources(backend, warm), instance)
    assert again.success
    (event,) = again.get_asset_materialization_events()
    assert event.materialization.metadata["run_highest_attempt"].value == 2
    assert queues.peek("billing") == 3


def test_a_missing_output_queue_sends_nothing_and_keeps_the_messages(backend, queues, warm, instance):
    fill(queues, 3)
    pipeline = pipelines.declare(output_queues=["billing", "nowhere"], transform=both_ways)
    result = execute(pipeline, pipelines.resources(backend, warm), instance)
    assert not result.success
    assert "nowhere" in failure_of(result)
    assert "queue-pipeline install" in failure_of(result)
    assert queues.peek("billing") == 0
    (claim,) = queues.claims.list()
    assert (claim.owner, claim.messages) == (None, 3)


def both_ways(messages):
    return messages.select("origin", each(send("billing", body=F.col("body")), send("nowhere", body=F.col("body"))))


@pytest.mark.parametrize(("tag", "batches"), [("1", 1), ("3", 3), ("64", 4), ("no number", 4), ("0", 4)])
def test_a_run_claims_first_as_many_batches_as_its_tag_allows(sqlite, instance, tag, batches):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 20)
    pipeline = pipelines.declare(batch_messages=2, max_concurrency=4, transform=refuse_to_start)
    nobody = SparkResource(spark_config={"spark.remote": "sc://127.0.0.1:1"})
    resources = pipelines.resources(sqlite, nobody)
    result = execute(pipeline, resources, instance, tags={names.SLOTS_TAG: tag})
    assert not result.success
    output = result.output_for_node("orders.dequeue_orders")
    assert [claim["messages"] for claim in output] == [2] * batches
    assert "does not answer" in failure_of(result)
    assert [claim.owner for claim in transport.claims.list()] == [None] * batches
    assert transport.peek("orders") == 20 - 2 * batches


def refuse_to_start(messages):
    raise AssertionError("Spark was not there")


def test_no_password_is_in_anything_that_dagster_keeps_of_a_run(postgresql, warm, instance):
    transport = postgresql.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 1)
    secret = postgresql.url.split("://", 1)[1].split("@")[0].partition(":")[2]
    result = execute(pipelines.declare(), pipelines.resources(postgresql, warm), instance)
    assert result.success
    kept = " ".join(
        [record.user_message + repr(record.dagster_event) for record in instance.all_logs(result.run_id)]
        + [repr(instance.get_run_by_id(result.run_id))]
    )
    assert postgresql.url not in kept
    assert not secret or secret not in kept


def test_a_result_carries_its_conversation_on(sqlite, warm, instance):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    message = new_message("{}", headers={wire.CONVERSATION_ID: "talk"})
    transport.send("orders", message)
    assert execute(pipelines.declare(), pipelines.resources(sqlite, warm), instance).success
    (shown,) = transport.show("billing")
    assert shown.headers[wire.CONVERSATION_ID] == "talk"
    assert shown.headers[wire.RELATED_TO] == message.headers[wire.MESSAGE_ID]
    assert shown.headers[wire.REPLY_TO_ADDRESS] == transport.resolve("orders").canonical
