"""Each example is run from the built wheel as its README says, and prints what the README shows."""

import json
import os
import shutil
import sqlite3
import uuid

import pytest

from queue_pipeline import QueueTransport
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.pages import ROOT, run_page

EXAMPLES = sorted(page.parent.name for page in (ROOT / "examples").glob("*/README.md"))
EVERY_TIME = "analyse-error-queue"
"""The example that is run every time."""

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]


@pytest.fixture
def run(tmp_path, wheel, wheel_spark):
    """Run an example in a copy of its folder; returns the copy."""

    def run(name, **variables):
        folder = tmp_path / name
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        shutil.copytree(ROOT / "examples" / name, folder, ignore=ignored)
        environment = {
            **wheel_spark,
            "PATH": os.pathsep.join([str(wheel), os.environ["PATH"]]),
            # In place of `pip install -e .`, which needs a package index.
            "PYTHONPATH": str(folder / "src"),
            **variables,
        }
        run_page(folder / "README.md", folder, environment)
        return folder

    return run


def one_of(transport, queue):
    (shown,) = transport.show(queue, 10)
    return shown


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == EVERY_TIME else pytest.mark.slow) for name in EXAMPLES]
)
def test_an_example_prints_what_its_readme_shows(run, name):
    run(name)


@pytest.mark.slow
def test_one_of_the_two_databases_is_on_postgresql(run, postgres):
    postgres.create_database("berlin")
    run("two-databases", BERLIN_QUEUES=postgres.url("berlin"))
    with QueueTransport(postgres.url("berlin")) as transport:
        assert json.loads(one_of(transport, "invoices").body) == {"id": "A-1", "total": 119}


@pytest.mark.slow
def test_the_headers_are_right_for_nservicebus_and_for_nginn(run, tmp_path):
    url = f"sqlite:///{tmp_path}/queues.db"
    run("nginn-to-nservicebus", QUEUE_PIPELINE_DATABASE=url)
    with QueueTransport(url) as transport:
        headers = one_of(transport, "orders").headers
    with sqlite3.connect(tmp_path / "queues.db") as connection:
        connection.row_factory = sqlite3.Row
        done, failed = connection.execute("SELECT * FROM OldOrders ORDER BY id").fetchall()
        (answer,) = connection.execute("SELECT * FROM OldShop").fetchall()
    assert (done["subqueue"], failed["subqueue"]) == ("X", "F")
    assert uuid.UUID(headers[wire.MESSAGE_ID]) != uuid.UUID(done["unique_id"])
    assert headers[wire.RELATED_TO] == done["unique_id"]
    assert {name: headers[name] for name in (wire.ENCLOSED_MESSAGE_TYPES, wire.CONTENT_TYPE, wire.CORRELATION_ID)} == {
        wire.ENCLOSED_MESSAGE_TYPES: "Shop.OrderPlaced",
        wire.CONTENT_TYPE: "application/json",
        wire.CORRELATION_ID: "call-7",
    }
    assert not [name for name in headers if name.startswith("_NG")]
    assert {name: answer[name] for name in ("subqueue", "from_endpoint", "to_endpoint", "correlation_id", "label")} == {
        "subqueue": "I",
        "from_endpoint": "sql://ShopDb/OldOrders",
        "to_endpoint": "sql://ShopDb/OldShop",
        "correlation_id": "call-7",
        "label": "Old.OrderAccepted",
    }
