"""An asset of a project's own that follows a pipeline, as docs/own-project.md shows it."""

import dagster as dg
import pytest

from queue_pipeline import QueueTransport, new_message, queue_definitions
from queue_pipeline_tests.support.dagster import pipelines
from queue_pipeline_tests.support.pages import ROOT, blocks

# Dagster's own, of what evaluates conditions.
pytestmark = pytest.mark.filterwarnings("ignore:Parameter `include_sources`:dagster.BetaWarning")
PIPELINE, REVENUE, EAGER = dg.AssetKey(["shop", "orders"]), dg.AssetKey("revenue"), dg.AssetKey("eager")


@pytest.fixture
def queues(tmp_path):
    with QueueTransport(f"sqlite:///{tmp_path}/queues.db") as transport:
        transport.install("orders", plain_queues=["billing", "error"])
        yield transport


@pytest.fixture
def location(tmp_path, warm, queues):
    """The asset of the page beside a pipeline."""
    recipe: dict = {}
    (file,) = [block for block in blocks(ROOT / "docs/own-project.md") if block.value == "src/acme/defs/revenue.py"]
    exec(file.text, recipe)
    eager = dg.asset(name="eager", deps=[PIPELINE], automation_condition=dg.AutomationCondition.eager())(lambda: None)
    ours = queue_definitions(
        [pipelines.declare()], database=f"sqlite:///{tmp_path}/queues.db", spark=warm, prefix="shop"
    )
    return dg.Definitions.merge(ours, dg.Definitions(assets=[recipe["revenue"], eager]))


class Automation:
    """What Dagster's daemon requests, evaluation by evaluation."""

    def __init__(self, location, instance):
        self._location, self._instance, self._cursor = location, instance, None

    def requested(self, key=REVENUE):
        found = dg.evaluate_automation_conditions(self._location, self._instance, cursor=self._cursor)
        self._cursor = found.cursor
        assert not found.get_num_requested(PIPELINE), "the sensor of the package starts pipelines"
        return found.get_num_requested(key)


def run(location, instance):
    assert location.resolve_job_def("shop_orders_pipeline").execute_in_process(instance=instance).success


def test_a_run_that_processed_messages_makes_dagster_request_the_asset_once(location, instance, queues):
    automation = Automation(location, instance)
    assert automation.requested() == 0
    queues.send("orders", new_message("1"))
    assert automation.requested() == 0, "nothing was processed yet"
    run(location, instance)
    assert automation.requested() == 1
    assert automation.requested() == 0, "once for each run"
    run(location, instance)
    assert automation.requested() == 0, "the queue was empty"


@pytest.mark.parametrize(("asset", "requests"), [(REVENUE, 1), (EAGER, 0)])
def test_the_next_run_of_the_pipeline_does_not_delay_it(location, instance, queues, asset, requests):
    automation = Automation(location, instance)
    automation.requested(asset)
    queues.send("orders", new_message("1"))
    run(location, instance)
    # The next run, at work.
    job = location.resolve_job_def("shop_orders_pipeline")
    instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
    assert automation.requested(asset) == requests
