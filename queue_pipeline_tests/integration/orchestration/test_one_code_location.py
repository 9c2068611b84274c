"""Two databases, and what a team has of its own under the same names, in one code location."""

import time

import dagster as dg
import pytest

from queue_pipeline import QueuePipelineError, QueueTransport, new_message, queue_definitions
from queue_pipeline_tests.support.dagster import pipelines

SIDES = ("north", "south")


def own_definitions():
    """A team's own jobs under names that ours have, too, with its own executor and its own `spark`."""
    op = dg.OpDefinition(
        name="purge",
        compute_fn=lambda context, _: iter([dg.Output(context.resources.spark)]),
        outs={"result": dg.Out()},
        required_resource_keys={"spark"},
    )
    graph = dg.GraphDefinition(name="purge_expired", node_defs=[op])
    return dg.Definitions(
        jobs=[graph.to_job(), graph.to_job(name="retry_errors")],
        resources={"spark": dg.ResourceDefinition.hardcoded_resource("the team's own"), "transport": "a lorry"},
        executor=dg.multiprocess_executor,
    )


def url(tmp_path, side):
    return f"sqlite:///{tmp_path}/{side}.db"


@pytest.fixture
def location(tmp_path, warm):
    for side in SIDES:
        with QueueTransport(url(tmp_path, side)) as transport:
            transport.install("orders", plain_queues=["billing", "error"])
            transport.send("orders", new_message(f"from {side}"))
    ours = [
        queue_definitions([pipelines.declare()], database=url(tmp_path, side), spark=warm, prefix=side)
        for side in SIDES
    ]
    return dg.Definitions.merge(*ours, own_definitions())


def test_each_database_is_processed_under_its_prefix_and_neither_sees_the_other(location, tmp_path, instance):
    dg.Definitions.validate_loadable(location)
    for side in SIDES:
        result = location.resolve_job_def(f"{side}_orders_pipeline").execute_in_process(instance=instance)
        assert result.success
        (event,) = result.asset_materializations_for_node(f"{side}__orders.{side}_process_orders")
        assert event.asset_key == dg.AssetKey([side, "orders"])
        with QueueTransport(url(tmp_path, side)) as transport:
            assert [shown.body for shown in transport.show("billing")] == [f"from {side}".encode()]
    observed = {key.to_user_string() for key in instance.all_asset_keys()}
    assert {"north/queues/billing_queue", "south/queues/billing_queue"} <= observed


def test_each_sensor_starts_the_runs_of_its_own_pipelines(location, tmp_path, instance, monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_TICK_SECONDS", "0")
    started = {}
    repository = location.get_repository_def()
    for sensor in repository.sensor_defs:
        resources = {key: repository.get_top_level_resources()[key] for key in sensor.required_resource_keys}
        with dg.build_sensor_context(
            instance=instance, definitions=location, sensor_name=sensor.name, resources=resources
        ) as context:
            context._last_tick_completion_time = time.time()
            (request,) = sensor.evaluate_tick(context).run_requests
        started[sensor.name] = (request.job_name, request.tags["queue_pipeline/pipeline"])
    assert started == {
        "north_peek_queues": ("north_orders_pipeline", "north_orders"),
        "south_peek_queues": ("south_orders_pipeline", "south_orders"),
    }


def test_the_jobs_of_the_team_keep_their_names_their_executor_and_their_resources(location, instance):
    for name in ("purge_expired", "retry_errors"):
        job = location.resolve_job_def(name)
        assert job.executor_def.name == "multiprocess"
        result = job.execute_in_process(instance=instance)
        assert result.output_for_node("purge") == "the team's own"
    assert location.resolve_job_def("north_purge_expired").executor_def.name == "in_process"


def test_all_names_except_those_of_the_team_have_a_prefix(location):
    repository = location.get_repository_def()
    named = {
        *(job.name for job in repository.get_all_jobs()),
        *(sensor.name for sensor in repository.sensor_defs),
        *(schedule.name for schedule in repository.schedule_defs),
        *repository.get_top_level_resources(),
        *(key.path[0] for key in repository.asset_graph.get_all_asset_keys()),
        *(node.name for job in repository.get_all_jobs() for node in job.all_node_defs),
        *(repository.asset_graph.get(key).group_name for key in repository.asset_graph.get_all_asset_keys()),
    }
    own = {name for name in named if not name.startswith(SIDES) and not name.startswith("__ASSET_JOB")}
    assert own == {"purge_expired", "retry_errors", "purge", "spark", "transport"}


def test_a_password_in_the_code_is_refused_and_a_variable_is_not():
    with pytest.raises(QueuePipelineError, match=r"EnvVar") as caught:
        queue_definitions([pipelines.declare()], database="postgresql://shop:hush@db.example/shop")
    assert "hush" not in str(caught.value)
    dg.Definitions.validate_loadable(queue_definitions([pipelines.declare()], database=dg.EnvVar("SHOP_QUEUES")))


@pytest.mark.parametrize("prefix", ["Shop", "1st", "shop-north", "a" * 31])
def test_a_prefix_that_dagster_would_refuse_is_named(prefix):
    with pytest.raises(QueuePipelineError, match=f"the prefix '{prefix}' cannot be part of Dagster's names"):
        queue_definitions([pipelines.declare()], prefix=prefix)
