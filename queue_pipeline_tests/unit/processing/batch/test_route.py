"""Which backend batches get: a pure decision, and Spark is asked for its master only if that decides it."""

import pytest

from queue_pipeline.processing.batch.backend import is_local, route
from queue_pipeline.processing.declaration.pipeline import QueuePipeline


def declare(**options):
    return QueuePipeline(name="orders", input_queue="orders", transform=lambda messages: messages, **options)


def decided(master, **options):
    return route(declare(**options), lambda: master, is_reachable=True, has_many_writers=True)


def not_asked():
    raise AssertionError("Spark was asked")


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_a_local_master_means_the_local_backend(master):
    assert is_local(master)
    assert decided(master) == "local"


@pytest.mark.parametrize(
    "master", ["spark://a:7077,b:7077", "yarn", "k8s://https://host:443", "local-cluster[2,1,512]"]
)
def test_a_cluster_has_its_executors_read_batches(master):
    assert not is_local(master)
    assert decided(master) == "executors"


@pytest.mark.parametrize("master", [None, ""])
def test_a_server_that_names_no_master_is_not_taken_for_a_cluster(master):
    assert decided(master) == "local"


@pytest.mark.parametrize("missing", ["is_reachable", "has_many_writers"])
def test_a_database_of_one_writer_and_one_that_executors_cannot_open_mean_the_local_backend(missing):
    given = {"is_reachable": True, "has_many_writers": True, missing: False}
    assert route(declare(), not_asked, **given) == "local"


@pytest.mark.parametrize("chosen", ["local", "executors"])
def test_a_route_that_the_pipeline_names_is_used_without_asking_for_the_master(chosen):
    assert route(declare(route=chosen), not_asked, is_reachable=False, has_many_writers=False) == chosen


def test_an_unreliable_batch_is_gone_before_executors_could_read_it():
    declared = declare(transaction_mode="unreliable")
    assert route(declared, not_asked, is_reachable=True, has_many_writers=True) == "local"
