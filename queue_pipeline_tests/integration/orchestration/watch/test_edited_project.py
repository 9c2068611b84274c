"""Fix, then retry: a run that is alive leaves the messages to a run with the new code."""

from contextlib import contextmanager

import pytest

from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.dagster.edited_shop import EditedShop
from queue_pipeline_tests.support.waiting import eventually

PATIENCE = 120.0


@pytest.fixture
def shop(sqlite, spark, spark_settings, tmp_path):
    """The project on a database of its own, beside the warm Spark of the suite."""
    shop = EditedShop(tmp_path / "project", {**spark_settings, "QUEUE_PIPELINE_DATABASE": sqlite.url})
    shop.write()
    return shop


@pytest.fixture
def queues(sqlite):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


@contextmanager
def run(shop, home):
    process = shop.start_run(home)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.timeout(400)
def test_a_living_run_leaves_what_is_retried_after_a_fix_to_a_run_with_the_new_code(shop, queues, sqlite, tmp_path):
    cli, home = CommandLine(sqlite), tmp_path / "home"
    queues.send("orders", [new_message("NZ"), new_message("AT")])
    with run(shop, home) as old:
        eventually(lambda: queues.peek("error") and queues.peek("billing"), seconds=PATIENCE)
        shop.serve("AT", "NZ")
        assert cli("errors", "retry", "--exception", "CountryNotServed").code == 0
        assert old.wait(PATIENCE) == 0
    assert (queues.peek("orders"), queues.peek("error")) == (1, 0)
    log = (home / "run.log").read_text()
    assert "done: the code changed: edited_shop.countries; 2 messages in 1 batch" in log
    with run(shop, home):
        eventually(lambda: queues.peek("billing") == 2, seconds=PATIENCE)
        assert (queues.peek("orders"), queues.peek("error")) == (0, 0)
