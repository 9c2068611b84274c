"""“Re-execute from failure”: the step that claimed is skipped, its claims are taken over from the run that failed."""

import dagster as dg
import pytest

from queue_pipeline.orchestration import names
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster import pipelines


@pytest.fixture
def instance(tmp_path):
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        yield instance


@pytest.fixture
def broken(backend, spark, tmp_path, monkeypatch):
    """The file that breaks the transform; what a process needs to build the job is in the environment."""
    monkeypatch.setenv(pipelines.DATABASE, backend.url)
    monkeypatch.setenv(pipelines.SCHEMA, backend.schema or "")
    monkeypatch.setenv(pipelines.BROKEN, str(tmp_path / "broken"))
    (tmp_path / "broken").touch()
    return tmp_path / "broken"


@pytest.fixture
def queues(backend):
    transport = backend.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


def execute(instance, job, failed=None):
    options = dg.ReexecutionOptions.from_failure(failed, instance) if failed else None
    with dg.execute_job(dg.reconstructable(job), instance, raise_on_error=False, reexecution_options=options) as result:
        return result.run_id, result.success


def steps_of(instance, run_id, kind):
    return [
        record.event_log_entry.dagster_event.step_key
        for record in instance.get_records_for_run(run_id, of_type=kind).records
    ]


def bodies(transport):
    return sorted(shown.body.decode() for shown in transport.show("billing", 100))


def job_for(backend):
    return pipelines.fragile_job if backend.schema else pipelines.fragile_job_without_schema


def fails_then_succeeds(instance, job, queues, broken):
    queues.send("orders", [new_message(str(n)) for n in range(10)])
    first, succeeded = execute(instance, job)
    assert not succeeded
    assert {claim.owner for claim in queues.claims.list()} == {None}
    assert queues.peek("billing") == 0
    held = sum(claim.messages for claim in queues.claims.list())
    assert held == 8
    broken.unlink()
    second, succeeded = execute(instance, job, failed=first)
    assert succeeded
    assert steps_of(instance, second, dg.DagsterEventType.STEP_SUCCESS) == ["orders.process_orders"]
    assert bodies(queues) == sorted(f"done {n}" for n in range(10))
    assert queues.claims.list() == []
    assert (queues.peek("orders"), queues.peek("error")) == (0, 0)
    return first, second


def test_a_fixed_transform_processes_the_same_messages_once(backend, queues, instance, broken):
    first, second = fails_then_succeeds(instance, job_for(backend), queues, broken)
    assert instance.get_run_by_id(second).parent_run_id == first


def test_what_another_run_processed_meanwhile_is_left_to_it(sqlite, spark, tmp_path, monkeypatch, instance):
    monkeypatch.setenv(pipelines.DATABASE, sqlite.url)
    monkeypatch.setenv(pipelines.SCHEMA, "")
    monkeypatch.setenv(pipelines.BROKEN, str(tmp_path / "broken"))
    (tmp_path / "broken").touch()
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", [new_message(str(n)) for n in range(6)])
    failed, _ = execute(instance, job_for(sqlite))
    (tmp_path / "broken").unlink()
    # A batch that another owner holds by now, and one that was completed by a run of its own.
    taken = transport.claim("orders", names.owner("another"), 100)
    _, succeeded = execute(instance, job_for(sqlite))
    assert succeeded
    assert len(bodies(transport)) == 6 - taken.messages
    again, succeeded = execute(instance, job_for(sqlite), failed=failed)
    assert succeeded
    assert len(bodies(transport)) == 6 - taken.messages
    assert [claim.owner for claim in transport.claims.list()] == [names.owner("another")]
    assert steps_of(instance, again, dg.DagsterEventType.ASSET_MATERIALIZATION) == []


def test_a_run_that_finds_no_slot_gives_back_what_it_took_over(backend, queues, instance, broken):
    queues.send("orders", [new_message(str(n)) for n in range(10)])
    first, succeeded = execute(instance, job_for(backend))
    assert not succeeded
    broken.unlink()
    orders = queues.resolve("orders")
    assert queues.slots.take(orders, "run elsewhere", 2, 2, 300) == 2
    second, succeeded = execute(instance, job_for(backend), failed=first)
    assert succeeded
    assert (bodies(queues), queues.peek("orders")) == ([], 2)
    assert [(claim.owner, claim.messages) for claim in queues.claims.list()] == [(None, 4), (None, 4)]
    reported = " ".join(record.user_message for record in instance.all_logs(second))
    assert f"done: all 2 slots of {orders} are taken by run elsewhere (2)" in reported
    queues.slots.release_owner("run elsewhere")
    _, succeeded = execute(instance, job_for(backend), failed=first)
    assert succeeded
    assert bodies(queues) == sorted(f"done {n}" for n in range(10))
    assert queues.slots.list() == []


@pytest.mark.slow
def test_a_fixed_transform_processes_the_same_messages_once_where_every_step_is_a_process(
    postgresql, spark, tmp_path, monkeypatch, instance
):
    monkeypatch.setenv(pipelines.DATABASE, postgresql.url)
    monkeypatch.setenv(pipelines.SCHEMA, postgresql.schema)
    monkeypatch.setenv(pipelines.BROKEN, str(tmp_path / "broken"))
    (tmp_path / "broken").touch()
    transport = postgresql.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    fails_then_succeeds(instance, pipelines.fragile_job_of_processes, transport, tmp_path / "broken")
