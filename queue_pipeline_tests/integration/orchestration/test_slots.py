"""Runs and the sensor beside others on the same queue: what another machine has in work counts here too."""

import dagster as dg
import pytest

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.orchestration import names, pipeline_asset
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.transport import new_message
from queue_pipeline.transport.operations.process_identity import this_process
from queue_pipeline_tests.support.dagster import pipelines

NOBODY = SparkResource(spark_config={"spark.remote": "sc://127.0.0.1:1"})
"""A Spark that does not answer: every call fails."""


def execute(backend, instance, **options):
    pipeline = pipelines.declare(batch_messages=2, **options)
    definitions = dg.Definitions.merge(
        build_definitions([pipeline], autostart=False),
        dg.Definitions(resources=pipelines.resources(backend, NOBODY)),
    )
    job = definitions.resolve_job_def(names.Names().job(pipeline))
    return job.execute_in_process(instance=instance, raise_on_error=False)


def fill(transport, count):
    transport.send("orders", [new_message(str(n)) for n in range(count)])


def occupy(transport, owner, slots, most):
    assert transport.slots.take(transport.resolve("orders"), owner, slots, most, 300) == slots


def held(transport):
    return transport.slots.held(transport.resolve("orders"))


def logged(instance, result):
    return " ".join(record.user_message for record in instance.all_logs(result.run_id))


def test_a_run_whose_slots_are_all_taken_by_another_machine_ends_at_once(backend, queues, instance):
    fill(queues, 5)
    occupy(queues, "run elsewhere", 2, most=2)
    result = execute(backend, instance, max_concurrency=2)
    assert result.success
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == ["orders.process_orders"]
    reported = f"all 2 slots of {queues.resolve('orders')} are taken by run elsewhere (2); this run has nothing to do"
    assert reported in logged(instance, result)
    assert (queues.peek("orders"), queues.claims.list()) == (5, [])
    assert held(queues) == {"run elsewhere": 2}


def test_a_run_claims_no_more_batches_than_it_has_slots(backend, queues, instance):
    fill(queues, 10)
    occupy(queues, "run elsewhere", 2, most=3)
    result = execute(backend, instance, max_concurrency=3)
    assert [claim["messages"] for claim in result.output_for_node("orders.dequeue_orders")] == [2]
    assert queues.peek("orders") == 8
    assert held(queues) == {"run elsewhere": 2}


def test_a_run_gives_its_slots_back_when_it_ends(backend, queues, instance, monkeypatch):
    fill(queues, 10)
    seen, take_batch = [], pipeline_asset.take_batch

    def look(*arguments):
        seen.append(held(queues))
        return take_batch(*arguments)

    monkeypatch.setattr(pipeline_asset, "take_batch", look)
    result = execute(backend, instance, max_concurrency=3)
    assert not result.success
    assert seen == [{names.owner(result.run_id): 3}] * 3
    assert held(queues) == {}


def test_a_run_that_found_nothing_gives_its_slots_back(backend, queues, instance):
    assert execute(backend, instance).success
    assert held(queues) == {}


def test_a_run_that_fails_while_it_claims_gives_its_slots_back(backend, queues, instance, monkeypatch):
    def fail(*_):
        assert len(held(queues)) == 1
        raise QueuePipelineError("no")

    monkeypatch.setattr(pipeline_asset, "take_batch", fail)
    assert not execute(backend, instance).success
    assert held(queues) == {}


@pytest.mark.parametrize("most", [2, 3])
def test_the_step_that_claims_keeps_a_slot_for_every_batch_and_no_more(backend, queues, instance, monkeypatch, most):
    """Between the steps a run waits for nothing in the other slots."""
    fill(queues, 2)
    seen = []
    monkeypatch.setattr(pipeline_asset, "_held", lambda *arguments: seen.append(held(queues)) or [])
    result = execute(backend, instance, max_concurrency=most)
    assert seen == [{names.owner(result.run_id): 1}]


def test_the_step_that_claims_names_the_process_of_a_run_that_has_only_one(sqlite, instance, monkeypatch):
    """Its slots are free at once when that process is killed between the steps."""
    transport, seen = sqlite.transport(), []
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 2)
    monkeypatch.setattr(pipeline_asset, "_held", lambda *_: seen.extend(transport.slots.list()) or [])
    execute(sqlite, instance)
    assert [one.process for one in seen] == [this_process()]
