"""docs/own-project.md as a new user types it: the wheel, a project of one's own, and messages that flow.

The project's files are those that `create-dagster project` writes.
"""

import os
import subprocess

import pytest

from queue_pipeline import QueueTransport, new_message
from queue_pipeline_tests.support.pages import ROOT, blocks
from queue_pipeline_tests.support.waiting import eventually
from tools.graphql import ask
from tools.postgres_cluster import free_port
from tools.processes import Processes, tail

PAGE = ROOT / "docs/own-project.md"
PYPROJECT = """
[project]
name = "acme"
version = "0.1.0"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "acme"
registry_modules = ["acme.components.*"]
"""
DEFINITIONS = """
from pathlib import Path

from dagster import definitions, load_from_defs_folder


@definitions
def defs():
    return load_from_defs_folder(path_within_project=Path(__file__).parent)
"""
SWITCH_ON = """
mutation ($name: String!) {
  startSensor(sensorSelector: {
    repositoryLocationName: "acme", repositoryName: "__repository__", sensorName: $name
  }) { __typename }
}
"""
MATERIALIZATIONS = """
{ assetOrError(assetKey: {path: ["revenue"]}) { ... on Asset { assetMaterializations { timestamp } } } }
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


class Project:
    """A project of Dagster's, and the commands that are typed in it."""

    def __init__(self, folder, python, spark):
        self.folder = folder
        self.database = f"sqlite:///{folder}/queues.db"
        self.environment = {
            **os.environ,
            **spark,
            "PATH": os.pathsep.join([str(python.parent), *os.environ["PATH"].split(os.pathsep)]),
            "VIRTUAL_ENV": str(python.parents[1]),
            "PYTHONPATH": str(folder / "src"),
            "PYTHONWARNINGS": "ignore",
            "DAGSTER_HOME": str(folder / ".dagster_home"),
            "SHOP_QUEUES": self.database,
            "COLUMNS": "200",
        }

    def run(self, commands):
        ran = subprocess.run(
            ["bash", "-euc", commands],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == 0, f"{commands}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout + ran.stderr


@pytest.fixture
def project(tmp_path, wheel, wheel_spark):
    folder = tmp_path / "acme"
    for name in ("src/acme/defs", "tests", ".dagster_home"):
        (folder / name).mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / ".dagster_home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (folder / "src" / "acme" / "definitions.py").write_text(DEFINITIONS)
    for package in ("src/acme", "src/acme/defs", "tests"):
        (folder / package / "__init__.py").touch()
    return Project(folder, wheel / "python", wheel_spark)


@pytest.fixture
def address(project):
    """`dg dev`, as the page starts it, until the test is over."""
    port, log = free_port(), project.folder / "dg-dev.log"
    processes = Processes(project.folder, {**project.environment, "QUEUE_PIPELINE_AUTOSTART": "1"})

    def answers():
        try:
            return ask(address, "{ version }", {})
        except OSError:
            return None

    address = f"http://127.0.0.1:{port}"

    def start():
        processes.start(["dg", "dev", "--port", str(port)], log)
        eventually(answers, seconds=120)
        return address

    try:
        yield start
        print(tail(log, 100))
    finally:
        assert processes.end() == []


def test_a_project_of_its_own_installs_scaffolds_tests_and_runs_a_pipeline(project, address, wheel):
    where = project.run("python -c 'import queue_pipeline; print(queue_pipeline.__file__)'")
    assert str(wheel.parent) in where, "the wheel, not this working tree"
    printed = ""
    for block in blocks(PAGE):
        if block.mark == "file":
            (project.folder / block.value).write_text(block.text)
        elif block.mark == "run by":
            printed += project.run(block.text)
    for expected in (
        "queue_pipeline.QueuePipelines",
        "1 passed",
        "loaded successfully",
        "shop_orders_pipeline",
        "RUN_SUCCESS",
        '{"OrderId":"A-1","Total":120.00}',
    ):
        assert expected in printed
    with QueueTransport(project.database) as transport:
        assert (transport.peek("orders"), transport.peek("error")) == (0, 0)
        url = address()
        switched = ask(url, SWITCH_ON, {"name": "default_automation_condition_sensor"})
        assert switched["startSensor"]["__typename"] == "Sensor"
        transport.send("orders", [new_message('{"OrderId": "A-2", "Total": 50}'), new_message("{}")])
        eventually(lambda: transport.peek("error"), seconds=120)
        eventually(lambda: transport.peek("invoices") == 2, seconds=60)
        assert [shown.body for shown in transport.show("invoices")][1:] == [b'{"OrderId":"A-2","Total":60.00}']
    # The asset that follows the pipeline.
    eventually(lambda: ask(url, MATERIALIZATIONS, {})["assetOrError"]["assetMaterializations"], seconds=180)
