"""A run that is terminated: its process ends, whatever its threads do, and it lets go of what it held."""

import signal

import pytest

from queue_pipeline.orchestration.run_process import is_of_a_run
from queue_pipeline.transport import new_message
from queue_pipeline_tests.support.dagster.edited_shop import DEFINITIONS, PACKAGE, EditedShop
from queue_pipeline_tests.support.waiting import eventually

PATIENCE = 120.0
HANGS = """\
    from pathlib import Path
    Path("hangs").touch()
    while True:
        pass
"""


@pytest.fixture
def queues(sqlite):
    transport = sqlite.transport()
    transport.install("orders", plain_queues=["billing", "error"])
    transport.send("orders", [new_message("AT"), new_message("NZ")])
    return transport


@pytest.fixture
def shop(sqlite, spark, spark_settings, tmp_path):
    """A project on a database of its own, beside the warm Spark of the suite."""
    shop = EditedShop(tmp_path / "project", {**spark_settings, "QUEUE_PIPELINE_DATABASE": sqlite.url})
    shop.write()
    return shop


def start(shop, home):
    """A run whose transform never returns; it has begun to hang."""
    before, call, after = DEFINITIONS.partition("    country =")
    (shop.folder / PACKAGE / "definitions.py").write_text(f"{before}{HANGS}{call}{after}")
    process = shop.start_run(home)
    eventually((home / "hangs").exists, seconds=PATIENCE)
    return process


def test_a_terminated_run_whose_transform_never_returns_ends_and_releases_its_messages(shop, queues, tmp_path):
    process = start(shop, tmp_path / "home")
    try:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) != 0
    finally:
        process.kill()
        process.wait()
    assert [status.owner for status in queues.claims.list()] == [None]
    assert queues.slots.list() == []
    assert (queues.peek("billing"), queues.peek("error")) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "of_a_run"),
    [
        (["/bin/dagster", "api", "execute_run", "{}"], True),
        (["/site/dagster/__main__.py", "api", "execute_run"], True),
        (["dagster", "job", "execute", "-j", "orders"], True),
        (["dagster", "dev"], False),
        (["dagster-daemon", "run"], False),
        (["/bin/pytest", "api", "execute_run"], False),
        (["notebook.py"], False),
    ],
)
def test_only_the_process_of_a_run_is_ended(arguments, of_a_run):
    assert is_of_a_run(arguments) is of_a_run
