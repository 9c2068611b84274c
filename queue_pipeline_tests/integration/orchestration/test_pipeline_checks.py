"""The checks on a pipeline's page: what failed and how to retry it, what waits for long, what expired unseen."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from queue_pipeline.orchestration.checks import AGE, ERRORS, EXPIRED, check_pipeline
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.transport import new_message
from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.waiting import eventually


def fail(transport, count, queue="orders", error_queue="error"):
    """Messages in the error queue as a pipeline leaves them there."""
    address = transport.resolve(queue).canonical
    sent = [new_message(f"{n}", message_type="Shop.Order") for n in range(count)]
    copies = [
        error_message(one.headers, one.body, Failure("shop.Refused", "no deliveries to XX"), address, queue)
        for one in sent
    ]
    transport.send(error_queue, copies)
    return [one.headers[wire.MESSAGE_ID] for one in sent]


def pasteable(queues, words, options=""):
    """A command with all that it needs: the database, and the schema if it is not the default one."""
    url = queues.database.url
    is_file = url.get_backend_name() == "sqlite"
    database = f"sqlite:///{url.database}" if is_file else '"$QUEUE_PIPELINE_DATABASE"'
    schema = f"--schema {queues.settings.schema} " if queues.settings.schema else ""
    return f"queue-pipeline --database {database} {options}{schema}{words}"


def test_an_empty_error_queue_passes(queues):
    found = check_pipeline(queues, pipelines.declare(), ERRORS)
    assert (found.passed, found.description) == (True, "no failed message of orders in error")


def test_failures_are_listed_with_the_command_that_retries_each(queues):
    ids = fail(queues, 3)
    found = check_pipeline(queues, pipelines.declare(), ERRORS)
    assert not found.passed
    assert "3 failed messages of orders in error" in found.description
    command = pasteable(queues, "errors retry --from orders")
    assert found.description.endswith(command)
    assert found.metadata["retry_all"].value == f"```\n{command}\n```"
    assert found.metadata["error_queue_messages"].value == 3
    records = [record.data for record in found.metadata["failed_messages"].records]
    assert [record["id"] for record in records] == ids[::-1]
    assert (records[0]["type"], records[0]["cause"]) == ("Shop.Order", "shop.Refused: no deliveries to XX")


def test_one_failed_message_is_one_message(queues):
    fail(queues, 1)
    assert "1 failed message of orders in error" in check_pipeline(queues, pipelines.declare(), ERRORS).description


def test_failures_of_other_queues_are_not_this_pipelines(queues):
    fail(queues, 2, queue="billing")
    assert check_pipeline(queues, pipelines.declare(), ERRORS).passed


def test_an_error_queue_of_another_name_is_named_in_the_command(queues):
    queues.install(plain_queues=["poison"])
    fail(queues, 1, error_queue="poison")
    found = check_pipeline(queues, pipelines.declare(error_queue="poison"), ERRORS)
    assert len(found.metadata["failed_messages"].records) == 1
    assert found.description.endswith(pasteable(queues, "errors retry --from orders", "--error-queue poison "))


@pytest.mark.parametrize(("seconds", "passed"), [(10, True), (1_000, False)])
def test_a_message_that_waits_for_long_warns(queues, seconds, passed):
    sent = wire.format_timestamp(datetime.now(UTC) - timedelta(seconds=seconds))
    queues.send("orders", new_message("1", headers={wire.TIME_SENT: sent}))
    found = check_pipeline(queues, pipelines.declare(oldest_message_seconds=500), AGE)
    assert found.passed is passed
    assert ("see whether the peek sensor is on" in found.description) is not passed
    assert found.metadata["depth_messages"].value == 1


def test_an_empty_queue_is_not_old(queues):
    assert check_pipeline(queues, pipelines.declare(), AGE).description == "orders is empty"


def test_messages_that_expired_unseen_warn(backend, queues):
    assert check_pipeline(queues, pipelines.declare(), EXPIRED).passed
    queues.send("orders", new_message("1", time_to_be_received=timedelta(milliseconds=1)))
    eventually(lambda: not check_pipeline(queues, pipelines.declare(), EXPIRED).passed)
    assert check_pipeline(queues, pipelines.declare(), EXPIRED).metadata["expired_messages"].value == 1
    dropped = check_pipeline(queues, pipelines.declare(), EXPIRED, expired=4)
    assert "5 messages of orders expired before a run took them" in dropped.description


def executed(backend, instance):
    """The checks of a pipeline by name, as a person executes them on the page of its asset."""
    by_hand = dg.define_asset_job("by_hand", dg.AssetSelection.checks_for_assets("orders"))
    definitions = dg.Definitions.merge(
        build_definitions([pipelines.declare()], autostart=False),
        dg.Definitions(resources=pipelines.resources(backend), jobs=[by_hand]),
    )
    result = definitions.resolve_job_def("by_hand").execute_in_process(instance=instance)
    return {one.check_name: one for one in result.get_asset_check_evaluations()}


def test_all_checks_of_a_pipeline_can_be_executed_manually(backend, queues, instance):
    fail(queues, 1)
    assert {name: one.passed for name, one in executed(backend, instance).items()} == {
        ERRORS: False,
        AGE: True,
        EXPIRED: True,
    }


def test_a_queue_that_is_not_installed_fails_its_checks_with_the_next_step(backend, instance):
    backend.transport().install("other")
    by_name = executed(backend, instance)
    assert not any(one.passed for name, one in by_name.items() if name != ERRORS)
    assert "create it with: queue-pipeline install" in by_name[AGE].description
