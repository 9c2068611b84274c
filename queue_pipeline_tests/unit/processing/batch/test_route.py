"""Which way batches take: a pure decision, and Spark is asked for its master only if that decides it."""

import pytest

from queue_pipeline.processing.batch.route import is_local, travels_by_executors
from queue_pipeline.processing.declaration.pipeline import QueuePipeline


def declare(**options):
    return QueuePipeline(name="orders", input_queue="orders", transform=lambda messages: messages, **options)


def decided(master, *, can_travel=True, shares=True, **options):
    return travels_by_executors(declare(**options), lambda: master, can_travel=can_travel, shares=shares)


def not_asked():
    raise AssertionError("Spark was asked")


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2]", "local[2,3]"])
def test_a_local_master_has_batches_go_through_the_driver(master):
    assert is_local(master)
    assert not decided(master)


@pytest.mark.parametrize(
    "master", ["spark://a:7077,b:7077", "yarn", "k8s://https://host:443", "local-cluster[2,1,512]"]
)
def test_a_cluster_has_its_executors_read_batches(master):
    assert not is_local(master)
    assert decided(master)


@pytest.mark.parametrize("master", [None, ""])
def test_a_server_that_names_no_master_is_not_taken_for_a_cluster(master):
    assert not decided(master)


def test_a_database_of_one_writer_and_connections_that_cannot_travel_stay_with_the_driver():
    for options in ({"shares": False}, {"can_travel": False}):
        given = {"can_travel": True, "shares": True, **options}
        assert not travels_by_executors(declare(), not_asked, **given)


@pytest.mark.parametrize(("route", "way"), [("local", False), ("executors", True)])
def test_what_the_pipeline_says_needs_no_master(route, way):
    assert travels_by_executors(declare(route=route), not_asked, can_travel=False, shares=False) is way


def test_an_unreliable_batch_is_gone_before_executors_could_read_it():
    declared = declare(transaction_mode="unreliable")
    assert not travels_by_executors(declared, not_asked, can_travel=True, shares=True)
