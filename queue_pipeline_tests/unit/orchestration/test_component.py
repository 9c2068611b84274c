"""The component and its scaffolder, in a project's defs folder."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster.components.testing import create_defs_folder_sandbox

from queue_pipeline import QueuePipelineError, QueuePipelines

# Dagster's own, whenever it reads a defs.yaml.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.* is currently in beta"),
]

BESIDE = """
from queue_pipeline import QueuePipeline
labels = QueuePipeline(name="labels", input_queue="shipping", transform=lambda messages: messages)
"""


@pytest.fixture
def sandbox():
    with create_defs_folder_sandbox() as sandbox:
        yield sandbox


def built(sandbox, **attributes):
    path = sandbox.scaffold_component(component_cls=QueuePipelines, defs_path="shop")
    if attributes:
        body = {"type": "queue_pipeline.QueuePipelines", "attributes": attributes}
        (path / "defs.yaml").write_text(json.dumps(body))
    return path


def keys(definitions):
    return {key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()}


def test_what_is_scaffolded_loads_as_it_is(sandbox):
    path = built(sandbox)
    with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
        assert isinstance(component, QueuePipelines)
        dg.Definitions.validate_loadable(definitions)
        assert keys(definitions) == {
            "shop/orders",
            *(f"shop/queues/{queue}_queue" for queue in ("orders", "invoices", "error")),
        }
        assert definitions.resolve_job_def("shop_orders_pipeline").executor_def.name == "in_process"


def test_pipelines_that_are_declared_in_python_beside_it_are_found_too(sandbox):
    path = built(sandbox)
    (path / "labels.py").write_text(BESIDE)
    with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
        assert {"shop/orders", "shop/labels"} <= keys(definitions)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"transform": ".transform.prize"}, "has no prize"),
        ({"transform": ".transfrom.price"}, "there is no module"),
        ({"transform": "price"}, "give module.name, or .module.name"),
        ({"transform": ".transform.price", "options": {"max_concurrency": 0}}, "max_concurrency"),
        ({"transform": ".transform.price", "options": {"name": "other"}}, "name stands among its options"),
    ],
)
def test_a_mistake_in_the_yaml_names_the_pipeline_and_what_is_wrong(sandbox, changed, problem):
    path = built(sandbox, pipelines=[{"name": "orders", "input_queue": "orders", **changed}])
    with pytest.raises(Exception) as caught, sandbox.load_component_and_build_defs(defs_path=path):
        pass
    error = caught.value
    while error.__cause__ is not None:
        error = error.__cause__
    assert isinstance(error, QueuePipelineError)
    assert problem in str(error)


DAILY = dg.FreshnessPolicy.time_window(fail_window=timedelta(days=1))


class WithOwners(QueuePipelines):
    """A component of a project's own that changes what Dagster shows."""

    def get_asset_spec(self, pipeline):
        spec = super().get_asset_spec(pipeline)
        return spec.replace_attributes(group_name="sales", key="ignored", freshness_policy=DAILY)


def test_a_subclass_changes_what_dagster_shows_and_keeps_key_and_dependencies(sandbox):
    path = built(sandbox)
    _, attributes = (path / "defs.yaml").read_text().split("\n", 1)
    (path / "defs.yaml").write_text(f"type: {__name__}.WithOwners\n{attributes}")
    with sandbox.load_component_and_build_defs(defs_path=path) as (_, definitions):
        node = definitions.resolve_asset_graph().get(dg.AssetKey(["shop", "orders"]))
        assert node.group_name == "sales"
        assert node.freshness_policy == DAILY
        assert node.parent_keys == {dg.AssetKey(["shop", "queues", "orders_queue"])}


def test_dg_lists_the_component(tmp_path):
    """As in a new process of any project where the package is installed."""
    entry = tmp_path / "queue_pipeline_registry-1.dist-info"
    entry.mkdir()
    (entry / "METADATA").write_text("Metadata-Version: 2.1\nName: queue_pipeline_registry\nVersion: 1\n")
    (entry / "entry_points.txt").write_text("[dagster_dg_cli.registry_modules]\nqueue_pipeline = queue_pipeline\n")
    program = (
        "from dagster.components.core.package_entry import discover_entry_point_package_objects as found;"
        "print([k.to_typename() for k in found() if k.namespace == 'queue_pipeline'])"
    )
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).resolve().parents[3])])
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert ran.stdout.strip() == "['queue_pipeline.QueuePipelines']"
