"""What a person sees in the browser: lineage, plots, the sensor's ticks and a run.

`scripts/screenshots` keeps the pictures in docs/images/, from where the README shows them.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from queue_pipeline.orchestration.names import PEEK_SENSOR
from queue_pipeline_tests.acceptance.shop import Shop, runs_of_orders, settle
from queue_pipeline_tests.support.dagster.browser import browser_page, find_chromium
from queue_pipeline_tests.support.dagster.dagster_processes import LOCATION, Dagster
from queue_pipeline_tests.support.waiting import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

SCREENSHOTS_VARIABLE = "QUEUE_PIPELINE_SCREENSHOTS"
IMAGES = Path(__file__).parents[2] / "docs" / "images"
LARGEST_IMAGE = 300_000
ENOUGH_FOR_A_PLOT = 4
SECONDS_OF_TRAFFIC = 240.0
"""For the pictures: a run that works for minutes, and reports each."""

pytestmark = [
    pytest.mark.slow,
    # The first test starts the deployment and makes the history; a machine that is busy otherwise takes its time.
    pytest.mark.timeout(600 + SECONDS_OF_TRAFFIC),
    pytest.mark.skipif(
        find_chromium() is None, reason="needs Chromium, which scripts/bootstrap installs (apt-get install chromium)"
    ),
]


@pytest.fixture(scope="module")
def history(shop: Shop, dagster: Dagster) -> None:
    """Enough runs for a plot with a line, and the result of the index audit."""
    settle(shop, dagster)
    audit = dagster.launch("audit_indexes")
    for number in range(max(1, ENOUGH_FOR_A_PLOT - len(dagster.materializations("orders")))):
        shop.place((900, 1500, 400, 1200)[number], bad=9 + 4 * number)
        shop.wait_until_idle()
        settle(shop, dagster)
    if os.environ.get(SCREENSHOTS_VARIABLE) == "1":
        end = time.monotonic() + SECONDS_OF_TRAFFIC
        while time.monotonic() < end:
            shop.place(random.randint(50, 400), bad=random.choice((0, 0, 3)))
        shop.wait_until_idle()
    eventually(lambda: dagster.run(audit).status == "SUCCESS", seconds=60)


@pytest.fixture(scope="module")
def page(history: None) -> Iterator[Page]:
    with browser_page() as page:
        yield page


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return IMAGES if os.environ.get(SCREENSHOTS_VARIABLE) == "1" else tmp_path


def test_lineage_leads_from_queue_to_pipeline_to_queues(page: Page, dagster: Dagster, pictures: Path) -> None:
    page.goto(f"{dagster.url}/asset-groups")
    # The side bar names the assets too; the graph is an SVG.
    graph = page.locator("svg")
    names = ("orders_queue", "orders", "billing_queue", "shipping_queue", "error_queue")
    queue, pipeline, billing, shipping, error = (graph.get_by_text(name, exact=True) for name in names)
    for node in (queue, pipeline, billing, shipping, error):
        node.wait_for()
        assert node.count() == 1
    assert left(queue) < left(pipeline) < left(billing)
    assert left(billing) == pytest.approx(left(shipping), abs=5)
    page.get_by_text("1 / 1 Passed").first.wait_for()
    take_picture(page, pictures / "lineage.png")


def test_figures_of_the_runs_are_plotted(page: Page, dagster: Dagster, pictures: Path) -> None:
    page.goto(f"{dagster.url}/assets/orders?view=overview")
    # The description has the word, too.
    page.locator("span:text-is('Plots')").click()
    page.locator("canvas").nth(9).wait_for(state="attached")
    figures = ("handled_messages_per_s", "latency_p95_s", "messages_in", "messages_out", "messages_to_error_queue")
    places = [place(page.get_by_text(figure, exact=True).first) for figure in figures]
    assert places == sorted(places), "what matters comes first"
    heading = page.get_by_text("handled_messages_per_s", exact=True).first
    heading.evaluate("heading => heading.scrollIntoView({block: 'start'})")
    take_picture(page, pictures / "asset-plots.png")


def test_ticks_of_the_sensor_show_what_it_saw(page: Page, shop: Shop, dagster: Dagster, pictures: Path) -> None:
    # The page has the latest ticks only, and a run that waits for messages would take these.
    settle(shop, dagster)
    shop.place(1)
    shop.wait_until_idle()
    page.goto(f"{dagster.url}/locations/{LOCATION}/sensors/{PEEK_SENSOR}")
    page.get_by_text("Peeks at the queues of all pipelines and starts runs when messages wait").wait_for()
    page.get_by_text("orders_pipeline").first.wait_for()
    page.get_by_text("1 run requested").first.wait_for()
    take_picture(page, pictures / "sensor-ticks.png")
    page.locator("button:text-is('0 runs requested')").last.click()
    page.get_by_text("Skip reason:").wait_for()
    page.get_by_text("orders: nothing waits").wait_for()


def test_a_run_shows_its_steps_and_what_it_did(page: Page, dagster: Dagster, pictures: Path) -> None:
    run = next(run for run in runs_of_orders(dagster) if run.status == "SUCCESS")
    page.goto(f"{dagster.url}/runs/{run.id}")
    page.get_by_text("Launched by").wait_for()
    page.get_by_text('Finished execution of run for "orders_pipeline".').first.wait_for()
    page.get_by_text("Materialized value orders.").first.wait_for()
    page.get_by_text("Succeeded (2)").wait_for(state="attached")
    # By time, a step of milliseconds has no room for its name.
    page.get_by_role("img", name="gantt_flat").click()
    for step in ("orders.dequeue_orders", "orders.process_orders"):
        page.get_by_text(step, exact=True).first.wait_for()
    take_picture(page, pictures / "run.png")


def test_no_check_is_shown_as_passed_that_never_ran(page: Page, dagster: Dagster) -> None:
    for queue in ("orders", "billing", "shipping", "error"):
        page.goto(f"{dagster.url}/assets/queues/{queue}_queue?view=checks&checkDetail=indexes")
        page.get_by_text(f"{queue} has all indexes and columns that it needs").first.wait_for()


def test_checks_report_what_failed_and_how_it_is_retried(page: Page, dagster: Dagster, pictures: Path) -> None:
    page.goto(f"{dagster.url}/assets/orders?view=checks&checkDetail=error_queue_empty")
    page.get_by_text("in error; fix the cause, then run: ").first.wait_for()
    page.get_by_text('queue-pipeline --database "$QUEUE_PIPELINE_DATABASE" errors retry --from orders').first.wait_for()
    for other in ("oldest_message", "nothing_expired"):
        page.get_by_text(other, exact=True).first.wait_for()
    page.get_by_text("CountryNotServed: no deliveries to US").first.wait_for()
    take_picture(page, pictures / "checks.png")


def place(node: Locator) -> tuple[float, float]:
    """From the top, then from the left, as a person reads."""
    box = node.bounding_box()
    assert box is not None
    return box["y"], box["x"]


def test_an_asset_says_what_it_is_and_how_to_look_at_it(page: Page, dagster: Dagster) -> None:
    page.goto(f"{dagster.url}/assets/orders?view=overview")
    page.get_by_text("messages that fail go to").first.wait_for()
    page.get_by_text("queue-pipeline status orders --watch").first.wait_for()
    page.goto(f"{dagster.url}/assets/queues/billing_queue?view=overview")
    page.get_by_text("an output of orders").first.wait_for()


def test_the_launchpad_of_a_job_opens_with_every_field_and_explains_them(
    page: Page, dagster: Dagster, pictures: Path
) -> None:
    page.goto(f"{dagster.url}/locations/{LOCATION}/jobs/retry_errors")
    page.get_by_text("exception: CountryNotServed").first.wait_for()
    page.goto(f"{dagster.url}/locations/{LOCATION}/jobs/retry_errors/playground")
    editor = page.locator(".CodeMirror")
    editor.get_by_text("exception").wait_for()
    fields = editor.inner_text()
    for field in ("all: false", "error_queue: ''", "failed_queue: ''", "ids: []", "message_type: ''", "to: ''"):
        assert field in fields
    assert "resources" not in fields
    editor.get_by_text("exception").click()
    page.get_by_text("/* For example Shop.OrderPlaced. */").wait_for()
    page.get_by_text("No errors").wait_for()
    take_picture(page, pictures / "launchpad.png")


def left(node: Locator) -> float:
    box = node.bounding_box()
    assert box is not None
    return box["x"]


def take_picture(page: Page, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Where nothing pops up.
    page.mouse.move(0, 0)
    page.screenshot(path=path, animations="disabled")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert 10_000 < path.stat().st_size < LARGEST_IMAGE
