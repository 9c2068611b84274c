"""What Dagster loads, by name: a module of the defs folder that vanishes takes its objects with it silently."""

import functools
import sys
import types

import dagster as dg
import pytest
from pyspark.sql import types as T

from queue_pipeline.definitions import defs
from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration.definitions import (
    build_definitions,
    find_pipelines,
    is_on,
    project_code,
)
from queue_pipeline.orchestration.external_assets import event_specs, queue_specs
from queue_pipeline.orchestration.names import Names
from queue_pipeline.processing.declaration.pipeline import Output, QueuePipeline
from queue_pipeline.transport import Event

# Dagster's own: it copies sensors with a parameter that it calls beta.


@pytest.fixture(scope="module")
def loaded():
    return defs()


def declare(name="orders", queue=None, **options):
    return QueuePipeline(name=name, input_queue=queue or name, transform=lambda messages: messages, **options)


def complete(definitions):
    """Definitions with resources, without which Dagster resolves nothing."""
    nothing = dg.ResourceDefinition.none_resource()
    return dg.Definitions.merge(definitions, dg.Definitions(resources={"transport": nothing, "spark": nothing}))


def package(monkeypatch, tmp_path, **modules):
    """A defs folder with these modules in it."""
    folder = tmp_path / "some_defs"
    folder.mkdir()
    (folder / "__init__.py").touch()
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    made = types.ModuleType("some_defs")
    made.__path__ = [str(folder)]
    monkeypatch.setitem(sys.modules, "some_defs", made)
    for name in modules:
        # Forgotten at the end, too: set first, so that there is something to undo.
        monkeypatch.setitem(sys.modules, f"some_defs.{name}", made)
        del sys.modules[f"some_defs.{name}"]
    return made


PIPELINE = """
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
{variable} = QueuePipeline(name="{name}", input_queue="{queue}", transform=lambda messages: messages)
"""


def test_exactly_these_definitions_are_loaded(loaded):
    repository = loaded.get_repository_def()
    graph = repository.asset_graph
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == {
        "orders",
        "queues/orders_queue",
        "queues/billing_queue",
        "queues/shipping_queue",
        "queues/error_queue",
    }
    assert {key.to_user_string() for key in graph.asset_check_keys} == {
        *(f"queues/{queue}_queue:indexes" for queue in ("orders", "billing", "shipping", "error")),
        *(f"orders:{check}" for check in ("error_queue_empty", "oldest_message", "nothing_expired")),
    }
    assert {job.name for job in repository.get_all_jobs() if not job.name.startswith("__ASSET_JOB")} == {
        "orders_pipeline",
        "audit_indexes",
        "purge_expired",
        "remove_old_runs",
        "move_due",
        "observe_queues",
        "retry_errors",
        "discard_errors",
        "subscribe_pipelines",
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {
        "peek_queues",
    }
    assert {schedule.name: schedule.cron_schedule for schedule in repository.schedule_defs} == {
        "purge_expired_schedule": "17 * * * *",
        "audit_indexes_schedule": "23 4 * * *",
        "remove_old_runs_schedule": "41 3 * * *",
    }
    assert set(repository.get_top_level_resources()) == {"transport", "spark"}


def test_the_definitions_are_valid(loaded):
    dg.Definitions.validate_loadable(loaded)


def test_lineage_goes_from_the_input_through_the_pipeline_to_every_queue_that_it_sends_to(loaded):
    graph = loaded.get_repository_def().asset_graph
    orders = graph.get(dg.AssetKey("orders"))
    assert orders.parent_keys == {dg.AssetKey(["queues", "orders_queue"])}
    assert orders.child_keys == {dg.AssetKey(["queues", f"{name}_queue"]) for name in ("billing", "shipping", "error")}
    assert graph.get(dg.AssetKey(["queues", "orders_queue"])).is_external


def test_the_pipeline_is_a_graph_of_two_ops_whose_names_can_be_guessed(loaded):
    job = loaded.resolve_job_def("orders_pipeline")
    assert set(job.graph.node_dict) == {"orders"}
    assert set(job.graph.node_dict["orders"].definition.node_dict) == {"dequeue_orders", "process_orders"}
    assert job.executor_def.name == "in_process"


def test_the_page_of_a_pipeline_says_what_was_declared(loaded):
    node = loaded.get_repository_def().asset_graph.get(dg.AssetKey("orders"))
    assert node.metadata["transaction_mode"] == "transaction_scope"
    assert node.metadata["output_queues"] == "billing, shipping"
    assert "**From** orders **to** billing, shipping; messages that fail go to error." in node.description
    assert "queue-pipeline errors list --from orders" in node.description
    assert node.kinds == {"pyspark", "sql"}
    described = loaded.get_repository_def().asset_graph.get(dg.AssetKey(["queues", "billing_queue"]))
    assert described.description.startswith("Invoices to be written. The queue billing: an output of orders.")


def test_no_definition_shows_where_the_database_is(monkeypatch):
    monkeypatch.setenv("QUEUE_PIPELINE_DATABASE", "postgresql://user:hush@db.example/shop")
    repository = defs().get_repository_def()
    resource = repository.get_top_level_resources()["transport"]
    assert "hush" not in repr(resource)
    assert "hush" not in str(resource.config_schema.default_value if resource.config_schema.default_provided else "")


@pytest.mark.parametrize(("given", "starts"), [("", False), ("0", False), ("no", False), ("1", True), ("True", True)])
def test_sensors_and_schedules_run_from_the_start_only_on_request(monkeypatch, given, starts):
    monkeypatch.setenv("QUEUE_PIPELINE_AUTOSTART", given)
    monkeypatch.setenv("QUEUE_PIPELINE_KEEP_DAYS", "30")
    definitions = build_definitions([declare()])
    sensor = dg.DefaultSensorStatus.RUNNING if starts else dg.DefaultSensorStatus.STOPPED
    schedule = dg.DefaultScheduleStatus.RUNNING if starts else dg.DefaultScheduleStatus.STOPPED
    assert {each.default_status for each in definitions.sensors} == {sensor}
    assert {each.default_status for each in definitions.schedules} == {schedule}


def test_a_setting_that_is_neither_yes_nor_no_is_refused():
    with pytest.raises(ConfigurationError, match="QUEUE_PIPELINE_AUTOSTART is 'maybe'; give 1 or 0"):
        is_on({"QUEUE_PIPELINE_AUTOSTART": "maybe"}, "QUEUE_PIPELINE_AUTOSTART", otherwise=False)
    assert is_on({}, "QUEUE_PIPELINE_AUTOSTART", otherwise=False) is False


def test_a_module_with_a_pipeline_is_all_that_a_new_pipeline_needs(monkeypatch, tmp_path):
    found = find_pipelines(
        package(
            monkeypatch,
            tmp_path,
            zebra=PIPELINE.format(variable="z", name="zebra", queue="zebra"),
            ant=PIPELINE.format(variable="a", name="ant", queue="ant"),
            nothing="x = 1",
        )
    )
    assert [pipeline.name for pipeline in found] == ["ant", "zebra"]
    jobs = {job.name for job in complete(build_definitions(found)).resolve_all_job_defs()}
    assert {"ant_pipeline", "zebra_pipeline"} <= jobs


def test_a_pipeline_that_another_module_imports_is_found_once(monkeypatch, tmp_path):
    found = find_pipelines(
        package(
            monkeypatch,
            tmp_path,
            first=PIPELINE.format(variable="a", name="ant", queue="ant"),
            second="from some_defs.first import a",
        )
    )
    assert [pipeline.name for pipeline in found] == ["ant"]


def test_two_pipelines_of_one_name_are_refused_with_both_places(monkeypatch, tmp_path):
    folder = package(
        monkeypatch,
        tmp_path,
        first=PIPELINE.format(variable="a", name="ant", queue="ant"),
        second=PIPELINE.format(variable="b", name="ant", queue="bee"),
    )
    with pytest.raises(ConfigurationError, match=r"'ant', in some_defs.first and in some_defs.second; rename one"):
        find_pipelines(folder)
    with pytest.raises(ConfigurationError, match="two pipelines are called 'ant'"):
        build_definitions([declare("ant", "ant"), declare("ant", "bee")])


def test_two_pipelines_on_one_queue_are_refused():
    with pytest.raises(ConfigurationError, match="two pipelines take from the queue 'orders'"):
        build_definitions([declare("first", "orders"), declare("second", "orders")])


def test_two_addresses_that_would_be_one_asset_are_refused():
    with pytest.raises(ConfigurationError, match=r"'shop orders' and 'shop.orders' would both be the asset queues/"):
        queue_specs([declare("first", "shop.orders"), declare("second", "shop orders")], Names())


def test_a_chain_of_pipelines_is_one_line_of_queues_and_pipelines():
    billing = Output(queue="billing", description="Invoices.")
    definitions = build_definitions(
        [declare("orders", output_queues=[billing]), declare("billing_run", "billing", output_queues=["paid"])]
    )
    dg.Definitions.validate_loadable(complete(definitions))
    graph = complete(definitions).resolve_asset_graph()

    def children(key):
        return {child.to_user_string() for child in graph.get(dg.AssetKey(key)).child_keys}

    assert children(["queues", "orders_queue"]) == {"orders"}
    assert children("orders") == {"queues/billing_queue", "queues/error_queue"}
    assert children(["queues", "billing_queue"]) == {"billing_run"}
    assert children("billing_run") == {"queues/paid_queue", "queues/error_queue"}
    assert graph.get(dg.AssetKey(["queues", "billing_queue"])).description.startswith("Invoices. ")


@pytest.mark.parametrize("name", ["purge", "move_due", "audit_indexes", "orders_pipeline", "process_orders"])
def test_a_name_that_dagster_reserves_is_refused(name):
    with pytest.raises(ConfigurationError, match=f"'{name}'.* already; rename it"):
        build_definitions([declare("orders"), declare(name)])


@pytest.mark.parametrize("name", ["indexes", "queues", "queue", "transport", "spark", "order"])
def test_a_pipeline_may_have_any_other_name(name):
    dg.Definitions.validate_loadable(complete(build_definitions([declare("orders"), declare(name)])))


def test_without_pipelines_there_is_still_something_to_load():
    definitions = complete(build_definitions([]))
    assert {job.name for job in definitions.resolve_all_job_defs()} >= {"purge_expired"}


def test_events_are_assets_that_depend_on_their_publishers():
    made = [
        declare("orders", publishes=[Event("Shop.OrderAccepted, Shop", ("Shop.IOrderEvent",), description="It is.")]),
        declare("imports", publishes=["Shop.OrderAccepted", "Shop.Imported"], subscribes_to=["Shop.OrderAccepted"]),
    ]
    specs = {spec.key.to_user_string(): spec for spec in event_specs(made, Names())}
    assert set(specs) == {"events/Shop/OrderAccepted", "events/Shop/Imported"}
    accepted = specs["events/Shop/OrderAccepted"]
    assert {dep.asset_key.to_user_string() for dep in accepted.deps} == {"orders", "imports"}
    assert accepted.description == "It is."
    graph = complete(build_definitions(made, autostart=False)).get_repository_def().asset_graph
    assert dg.AssetKey(["events", "Shop", "Imported"]) in graph.get_all_asset_keys()


def test_events_that_would_be_one_asset_are_refused():
    with pytest.raises(ConfigurationError, match="would both be the asset events/Shop/A"):
        event_specs([declare(publishes=["Shop.A", "Shop+A"])], Names())


def test_the_code_of_a_project_is_watched_unless_that_is_switched_off():
    assert project_code([declare()], {"QUEUE_PIPELINE_WATCH_CODE": "0"}) is None
    with pytest.raises(ConfigurationError, match="QUEUE_PIPELINE_WATCH_CODE is 'maybe'; give 1 or 0"):
        project_code([declare()], {"QUEUE_PIPELINE_WATCH_CODE": "maybe"})
    assert project_code([declare()], {}) is not None


def test_schemas_and_partials_do_not_make_spark_or_python_a_part_of_the_project():
    schema = T.StructType([T.StructField("total", T.LongType())])
    partial = functools.partial(lambda rate, messages: messages, 20)
    pipeline = QueuePipeline(name="orders", input_queue="orders", transform=partial, body_schema=schema)
    code = project_code([pipeline], {})
    watched = {module.partition(".")[0] for module in code._files}
    assert "queue_pipeline_tests" in watched
    assert not {"pyspark", "functools"} & watched
