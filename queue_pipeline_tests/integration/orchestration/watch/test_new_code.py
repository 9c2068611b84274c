"""Code that was reloaded or redeployed: the sensor ends runs of other code, and does not wait for them."""

import importlib
import os
import sys
import time
import uuid

import dagster as dg
import pytest

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.definitions import build_definitions, project_code
from queue_pipeline.orchestration.pipeline_asset import pipeline_asset
from queue_pipeline.orchestration.watch.run_upkeep import Deployment
from queue_pipeline.orchestration.watch.surroundings import DagsterSurroundings
from queue_pipeline.processing.run import source_code
from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.transport import new_message
from queue_pipeline.transport.due_mover import DueMover
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.dagster.in_process import skip_reason, ticked

STATUS = dg.DagsterRunStatus
LONG_AGO = 1_700_000_000


@pytest.fixture
def prices(tmp_path, monkeypatch):
    """The file of a project, written long ago, whose only module is loaded."""
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "prices_of_tests.py"
    file.write_text("TAX = 20\n")
    os.utime(file, (LONG_AGO, LONG_AGO))
    importlib.import_module(file.stem)
    # All other code of this process counts as installed: it may be edited while the tests run.
    monkeypatch.setattr(source_code, "_installed_folders", lambda: (os.sep,))
    yield file
    del sys.modules[file.stem]


@pytest.fixture
def code(prices):
    """The code of that project as a code server has loaded it."""
    return SourceCode({prices.stem})


@pytest.fixture
def look(queues, instance, code):
    """Looks for runs of old code, as a tick does."""
    return lambda: surroundings(queues, instance, code).end_old_runs([pipelines.declare()])


def surroundings(queues, instance, code):
    return DagsterSurroundings(Deployment(instance, queues), code, DueMover([]))


def start_run(instance, transport, code=None, places=1, status=STATUS.STARTED, slots=2):
    """A run in Dagster, and the slots that it holds in the queue."""
    tags = {names.PIPELINE_TAG: "orders", names.SLOTS_TAG: str(slots)} | ({names.CODE_TAG: code} if code else {})
    job = dg.job(name="orders_pipeline")(lambda: None)
    run = instance.create_run_for_job(job, run_id=str(uuid.uuid4()), status=status, tags=tags)
    if places:
        transport.slots.take(transport.resolve("orders"), names.owner(run.run_id), places, 64, 300)
    return run


def ending(transport):
    return {names.run_of(one.owner): one.ending for one in transport.slots.list()}


def receivers(queues, instance, code):
    world = surroundings(queues, instance, code)
    world.paused()
    return world.runs(pipelines.declare(max_concurrency=4)).slots


def test_a_run_of_other_code_is_asked_to_end_and_others_are_not(queues, instance, look, code):
    old = start_run(instance, queues, "old")
    new, by_hand = start_run(instance, queues, code.fingerprint), start_run(instance, queues)
    queues.slots.take(queues.resolve("orders"), "run of another Dagster", 1, 64, 300)
    look()
    assert ending(queues) == {
        old.run_id: "other code is deployed",
        new.run_id: None,
        by_hand.run_id: None,
        "of another Dagster": None,
    }


def test_a_code_server_whose_own_files_changed_ends_no_run(queues, instance, look, prices):
    """A run that was started after the change has newer code than the server."""
    start_run(instance, queues, "newer")
    prices.write_text("TAX = 21\n")
    look()
    assert list(ending(queues).values()) == [None]


def test_a_tick_ends_runs_of_other_code_while_nothing_waits(sqlite, instance, monkeypatch):
    queues = sqlite.transport()
    queues.install("orders", plain_queues=["billing", "error"])
    monkeypatch.setenv("QUEUE_PIPELINE_WATCH_CODE", "1")
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0.1")
    old = start_run(instance, queues, "old")
    assert skip_reason(ticked(sqlite, instance)) == "orders: nothing waits"
    assert ending(queues) == {old.run_id: "other code is deployed"}


def test_a_preview_ends_nothing(sqlite, instance, monkeypatch):
    queues = sqlite.transport()
    queues.install("orders", plain_queues=["billing", "error"])
    monkeypatch.setenv("QUEUE_PIPELINE_WATCH_CODE", "1")
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0.1")
    start_run(instance, queues, "old")
    ticked(sqlite, instance, preview=True)
    assert list(ending(queues).values()) == [None]


def test_a_run_that_ends_counts_with_the_batches_that_it_finishes_only(queues, instance, code):
    run = start_run(instance, queues, "old", places=1, slots=3)
    assert receivers(queues, instance, code) == 3
    queues.slots.end(queues.resolve("orders"), names.owner(run.run_id), "the code changed: shop.prices")
    assert receivers(queues, instance, code) == 1


def test_a_new_run_is_requested_while_one_of_old_code_finishes_its_last_batch(backend, queues, instance, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")
    queues.send("orders", [new_message("1")])
    run = start_run(instance, queues, places=1)
    assert skip_reason(ticked(backend, instance)) == "orders: 1 message waits, 2 slots in use"
    queues.slots.end(queues.resolve("orders"), names.owner(run.run_id), "the code changed: shop.prices")
    (request,) = ticked(backend, instance).run_requests
    assert request.tags[names.SLOTS_TAG] == "1", "the other of the two places"


def test_failures_of_former_code_are_forgotten(queues, instance, code, prices):
    code.loaded_at = LONG_AGO
    os.utime(prices, (LONG_AGO, LONG_AGO))

    def failed():
        return surroundings(queues, instance, code).runs(pipelines.declare()).failed_in_a_row

    begin = time.time()
    for _ in range(3):
        instance.report_run_failed(start_run(instance, queues, places=0))
    assert failed() == 3
    assert code.changed_at() < begin
    later = time.time() + 1
    os.utime(prices, (later, later))
    assert failed() == 0


def test_a_run_that_a_deployment_ends_is_no_failure(queues, instance, code):
    """It was created before the new server loaded its code, and is reported as failed after that."""

    def failed():
        return surroundings(queues, instance, code).runs(pipelines.declare()).failed_in_a_row

    interrupted = start_run(instance, queues, places=0)
    code.loaded_at = time.time()
    instance.report_run_failed(interrupted)
    assert failed() == 0
    instance.report_run_failed(start_run(instance, queues, places=0))
    assert failed() == 1


def test_runs_are_tagged_with_the_code_of_the_server_that_defined_them(sqlite, monkeypatch):
    def tags():
        defined = dg.Definitions.merge(
            build_definitions([pipelines.declare()]), dg.Definitions(resources=pipelines.resources(sqlite))
        )
        return defined.resolve_job_def("orders_pipeline").tags

    assert names.CODE_TAG not in tags()
    monkeypatch.setenv("QUEUE_PIPELINE_WATCH_CODE", "1")
    assert tags()[names.CODE_TAG] == project_code([pipelines.declare()], {}).fingerprint


def materialize(backend, instance, code, spark=None, **options):
    asset = pipeline_asset(pipelines.declare(**options), code, names.Names())
    return dg.materialize([asset], resources=pipelines.resources(backend, spark), instance=instance)


def test_a_run_whose_code_changed_while_it_started_takes_nothing(backend, queues, instance, code, prices):
    queues.send("orders", [new_message("1")])
    prices.write_text("TAX = 21\n")
    result = materialize(backend, instance, code)
    assert [event.step_key for event in result.all_events if event.is_step_skipped] == ["orders.process_orders"]
    logged = " ".join(record.user_message for record in instance.all_logs(result.run_id))
    assert f"the code changed while this run started: {prices.stem}; the next run has the new one" in logged
    assert (queues.peek("orders"), queues.claims.list(), queues.slots.list()) == (1, [], [])


def test_a_run_that_may_have_loaded_old_code_does_its_first_batch_and_ends(postgresql, instance, code, warm):
    """A project that writes a module of its own at every start must still get its work done."""
    queues = postgresql.transport()
    queues.install("orders", plain_queues=["billing", "error"])
    queues.send("orders", [new_message(str(number)) for number in range(3)])
    code.uncertain = "shop.generated"
    result = materialize(postgresql, instance, code, warm, batch_messages=1, max_concurrency=1, linger_seconds=600)
    (event,) = result.get_asset_materialization_events()
    reason = event.materialization.metadata["run_ended_because"].value
    assert reason == "the code changed: shop.generated, while this run loaded it"
    assert (queues.peek("orders"), queues.peek("billing")) == (2, 1)
