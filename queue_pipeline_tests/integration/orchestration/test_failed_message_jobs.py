"""The jobs by which an operator deals with failed messages, each executed in this process."""

import dagster as dg
import pytest

from queue_pipeline.errors import ConfigurationError, QueueNotFoundError
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import QueueTransportResource
from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.dagster import pipelines

OPS = {"retry_errors": "return_failed_messages", "discard_errors": "discard_failed_messages"}
DECLARED = [pipelines.declare(), pipelines.declare(name="parcels", input_queue="parcels", error_queue="parcel_errors")]


def execute(backend, instance, job, declared=DECLARED, **config):
    database = QueueTransportResource(database=backend.url, default_schema=backend.schema)
    definitions = dg.Definitions.merge(
        build_definitions(declared, autostart=False),
        dg.Definitions(resources={"transport": database, "spark": dg.ResourceDefinition.none_resource()}),
    )
    run_config = {"ops": {OPS[job]: {"config": config}}} if config else None
    result = definitions.resolve_job_def(job).execute_in_process(instance=instance, run_config=run_config)
    (event,) = [event for event in result.events_for_node(OPS[job]) if event.is_successful_output]
    return {
        name: [record.data for record in value.records] if isinstance(value, dg.TableMetadataValue) else value.value
        for name, value in event.step_output_data.metadata.items()
    }


def failure(transport, message_id, queue="orders", kind="Shop.NoStockError"):
    headers = {**wire.standard_headers(message_type="Shop.OrderPlaced"), wire.MESSAGE_ID: message_id}
    return error_message(headers, b"{}", Failure(kind, "nothing left"), transport.resolve(queue).canonical, "Shop")


@pytest.fixture
def failed(queues):
    """Two messages in one error queue, and one in that of another pipeline."""
    queues.install("parcels", plain_queues=["parcel_errors"])
    queues.send("error", [failure(queues, "a"), failure(queues, "b", kind="Shop.Timeout")])
    queues.send("parcel_errors", failure(queues, "c", "parcels"))
    return queues


def ids(transport, queue):
    return [message.headers[wire.MESSAGE_ID] for message in transport.show(queue)]


def test_failed_messages_of_every_pipeline_go_back(backend, failed, instance):
    reported = execute(backend, instance, "retry_errors", all=True)
    assert (reported["returned"], reported["stayed"], reported["held"]) == (3, 0, 0)
    assert reported["queues"] == [
        {"queue": failed.resolve("orders").canonical, "returned": 2},
        {"queue": failed.resolve("parcels").canonical, "returned": 1},
    ]
    assert "not_returned" not in reported
    assert (ids(failed, "orders"), ids(failed, "parcels")) == (["a", "b"], ["c"])
    assert (failed.peek("error"), failed.peek("parcel_errors")) == (0, 0)


def test_selected_messages_are_returned(backend, failed, instance):
    assert execute(backend, instance, "retry_errors", exception="Timeout")["returned"] == 1
    assert execute(backend, instance, "retry_errors", ids=["c", "unknown"], to="billing")["returned"] == 1
    assert (ids(failed, "orders"), ids(failed, "billing"), ids(failed, "error")) == (["b"], ["c"], ["a"])
    assert execute(backend, instance, "retry_errors", error_queue="parcel_errors", all=True)["returned"] == 0


def test_what_stays_is_reported_in_a_table_and_the_run_succeeds(backend, failed, instance):
    failed.send("error", [failure(failed, "gone", "nowhere"), OutgoingMessage(b"", {wire.MESSAGE_ID: "lost"})])
    reported = execute(backend, instance, "retry_errors", error_queue="error", all=True)
    assert (reported["returned"], reported["stayed"]) == (2, 2)
    gone, lost = reported["not_returned"]
    assert (gone["id"], gone["failed_queue"]) == ("gone", failed.resolve("nowhere").canonical)
    assert "does not exist" in gone["reason"]
    assert (lost["id"], lost["failed_queue"]) == ("lost", "")
    assert ids(failed, "error") == ["gone", "lost"]


def test_selected_messages_are_discarded(backend, failed, instance):
    reported = execute(backend, instance, "discard_errors", failed_queue="orders", message_type="Shop.OrderPlaced")
    assert reported["discarded"] == 2
    assert {row["discarded"] for row in reported["queues"]} == {0, 2}
    assert (failed.peek("error"), failed.peek("parcel_errors"), failed.peek("orders")) == (0, 1, 0)


@pytest.mark.parametrize("job", OPS)
def test_an_empty_selection_is_refused_and_nothing_happens(backend, failed, instance, job):
    with pytest.raises(ConfigurationError, match="nothing is chosen; give ids"):
        execute(backend, instance, job)
    with pytest.raises(ConfigurationError, match="leave out one or the other"):
        execute(backend, instance, job, all=True, ids=["a"])
    assert (failed.peek("error"), failed.peek("parcel_errors")) == (2, 1)


def test_an_error_queue_that_is_not_installed_is_passed_over_unless_it_was_named(backend, queues, instance):
    queues.send("error", failure(queues, "a"))
    with pytest.raises(QueueNotFoundError, match="parcel_errors"):
        execute(backend, instance, "retry_errors", all=True, error_queue="parcel_errors")
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        execute(backend, instance, "retry_errors", all=True, to="nowhere")
    assert execute(backend, instance, "retry_errors", all=True)["returned"] == 1


def test_an_error_queue_of_two_pipelines_is_looked_through_once(backend, queues, instance):
    queues.send("error", OutgoingMessage(b"", {wire.MESSAGE_ID: "lost"}))
    address = f"{backend.schema}.error" if backend.name == "postgresql" else "error"
    declared = [pipelines.declare(), pipelines.declare(name="other", input_queue="other", error_queue=address)]
    assert execute(backend, instance, "retry_errors", declared, all=True)["stayed"] == 1


@pytest.mark.parametrize("name", [*OPS, *OPS.values()])
def test_no_pipeline_can_have_the_name_of_a_job_or_op(name):
    with pytest.raises(ConfigurationError, match=f"by the name '{name}' already"):
        build_definitions([pipelines.declare(name=name)], autostart=False)


def test_a_retry_lists_which_runs_may_take_the_messages(backend, failed, instance):
    orders = failed.resolve("orders")
    for owner in ("run old", "run new"):
        failed.slots.take(orders, owner, 1, 2, 300)
    failed.slots.end(orders, "run old", "other code is deployed")
    receivers = execute(backend, instance, "retry_errors", ids=["a"])["receivers"]
    assert [(each["owner"], each["queue"], each["may_take_them"]) for each in receivers] == [
        ("run new", orders.canonical, "yes"),
        ("run old", orders.canonical, "no: other code is deployed"),
    ]
