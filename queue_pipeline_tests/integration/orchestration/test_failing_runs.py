"""Runs whose transform fails, with a real Spark: what is processed and reported, and what a person can do then."""

import json

import dagster as dg
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.transport import new_message
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support import service_control
from queue_pipeline_tests.support.dagster import pipelines

ONCE = {"immediate_retries": 0, "delayed_retries": 0}


def execute(pipeline, resources, instance):
    definitions = dg.Definitions.merge(
        build_definitions([pipeline], autostart=False), dg.Definitions(resources=resources)
    )
    job = definitions.resolve_job_def(names.Names().job(pipeline))
    return job.execute_in_process(instance=instance, raise_on_error=False)


def fill(transport, count):
    messages = [new_message(json.dumps({"n": n}), message_type="Shop.Order") for n in range(count)]
    transport.send("orders", messages)
    return [message.headers[wire.MESSAGE_ID] for message in messages]


def numbers(transport, queue):
    return sorted(json.loads(shown.body)["n"] for shown in transport.show(queue, 1_000))


def allergic_to_five(messages):
    """A function of Python in Spark's workers that raises on one message."""

    def check(text):
        if json.loads(text)["n"] == 5:
            raise ValueError("five is not allowed")
        return text

    checked = F.udf(check, StringType())(F.col("body").cast("string"))
    return messages.select("origin", checked.alias("body"))


def metadata_of(result):
    (event,) = result.get_asset_materialization_events()
    return event.step_materialization_data.materialization.metadata


def test_one_message_that_breaks_a_worker_is_found_reported_and_retried(backend, queues, warm, instance):
    """The good ones are processed once; the poison is reported with its error and the command that brings it back."""
    ids = fill(queues, 12)
    resources = pipelines.resources(backend, warm)
    result = execute(pipelines.declare(transform=allergic_to_five, recoverability=ONCE), resources, instance)
    assert result.success
    assert numbers(queues, "billing") == [n for n in range(12) if n != 5]
    assert numbers(queues, "error") == [5]
    (shown,) = queues.show("error")
    imported = service_control.import_error(wire.encode(shown.headers), shown.body)
    assert shown.headers[wire.EXCEPTION_TYPE] == "builtins.ValueError"
    assert shown.headers[wire.EXCEPTION_MESSAGE] == "five is not allowed"
    assert imported.failed_queue == queues.resolve("orders").canonical
    assert "test_failing_runs.check() in " in shown.headers[wire.EXCEPTION_STACK_TRACE].splitlines()[1]

    reported = metadata_of(result)
    assert (
        reported["messages_in"].value,
        reported["messages_to_error_queue"].value,
        reported["messages_out"].value,
    ) == (12, 1, 11)
    assert reported["run_failed_attempts"].value >= 2
    (record,) = reported["failed_messages"].records
    assert (record.data["id"], record.data["cause"]) == (ids[5], "builtins.ValueError: five is not allowed")
    assert reported["retry_all"].value.splitlines()[1].endswith(" errors retry --from orders")
    checks = {one.check_name: one.passed for one in evaluations(result)}
    assert checks == {"error_queue_empty": False, "oldest_message": True, "nothing_expired": True}

    retried = queues.failed.retry("error", Selection(ids=(ids[5],)))
    assert retried.returned == 1
    result = execute(pipelines.declare(), resources, instance)
    assert numbers(queues, "billing") == list(range(12))
    assert {one.check_name: one.passed for one in evaluations(result)}["error_queue_empty"]
    (again,) = [one for one in queues.show("billing", 100) if json.loads(one.body)["n"] == 5]
    assert again.headers[wire.RELATED_TO] == ids[5]


def evaluations(result):
    found = [event for event in result.all_events if event.event_type_value == "ASSET_CHECK_EVALUATION"]
    return [event.asset_check_evaluation_data for event in found]


def test_retries_and_failures_are_logged_at_their_levels(sqlite, warm, instance):
    """Immediate retries are information, later ones a warning, and the error queue an error."""
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 6)
    policy = {"immediate_retries": 1, "delayed_retries": 0}
    pipeline = pipelines.declare(transform=allergic_to_five, recoverability=policy)
    result = execute(pipeline, pipelines.resources(sqlite, warm), instance)
    assert result.success
    logs = [(record.level, record.user_message) for record in instance.all_logs(result.run_id)]
    assert (20, "1 message failed (attempt 1) and will be tried again at once: "
            "builtins.ValueError: five is not allowed") in logs  # fmt: skip
    assert [level for level, line in logs if line.startswith("1 message moved to error (")] == [40]
