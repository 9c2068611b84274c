"""docs/own-project.md as a new user types it: the wheel, a project of one's own, and messages that flow.

The virtual environment is new and holds the wheel only; what the wheel depends on is read from the environment of the
tests, which saves an installation of minutes. The project's files are those that `create-dagster project` writes.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from queue_pipeline import QueueTransport, new_message

ROOT = Path(__file__).resolve().parents[2]
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
DG = "from dagster_dg_cli.cli import main; main()"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Project:
    """A project of Dagster's, and the commands that are typed in it."""

    def __init__(self, folder, python):
        self.folder, self._python = folder, python
        self.database = f"sqlite:///{folder}/queues.db"

    def run(self, *arguments):
        places = [str(self._python.parent), *os.environ["PATH"].split(os.pathsep)]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(places),
            "VIRTUAL_ENV": str(self._python.parents[1]),
            "PYTHONPATH": str(self.folder / "src"),
            "PYTHONWARNINGS": "ignore",
            "DAGSTER_HOME": str(self.folder / "home"),
            "SHOP_QUEUES": self.database,
            "COLUMNS": "200",
        }
        ran = subprocess.run(
            [self._python, *arguments], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600
        )
        assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
        return ran.stdout + ran.stderr

    def dg(self, *arguments):
        return self.run("-c", DG, *arguments)


@pytest.fixture
def project(tmp_path, spark_settings):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [
        python,
        "-m",
        "pip",
        "-q",
        "--disable-pip-version-check",
        "install",
        "--no-deps",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True, timeout=300)
    (packages,) = (tmp_path / "venv" / "lib").glob("*/site-packages")
    (packages / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    folder = tmp_path / "acme"
    for name in ("src/acme/defs", "tests", "home"):
        (folder / name).mkdir(parents=True)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (folder / "src" / "acme" / "definitions.py").write_text(DEFINITIONS)
    for package in ("src/acme", "src/acme/defs", "tests"):
        (folder / package / "__init__.py").touch()
    return Project(folder, python)


def test_a_project_of_its_own_installs_scaffolds_tests_and_runs_a_pipeline(project):
    where = project.run("-c", "import queue_pipeline; print(queue_pipeline.__file__)")
    assert str(project.folder.parent / "venv") in where, "the wheel, not this working tree"
    scaffold = ("scaffold", "defs", "queue_pipeline.QueuePipelines", "shop", "--database", "SHOP_QUEUES")
    project.dg(*scaffold)
    assert "1 passed" in project.run("-m", "pytest", "-q", "tests")
    project.run("-m", "queue_pipeline.cli", "--database", project.database, "install", "orders", "invoices")
    assert "loaded successfully" in project.dg("check", "defs")
    assert "shop_orders_pipeline" in project.dg("list", "defs")
    with QueueTransport(project.database) as transport:
        transport.send("orders", [new_message('{"OrderId": "A-1", "Total": 100}'), new_message("{}")])
        assert "RUN_SUCCESS" in project.dg("launch", "--job", "shop_orders_pipeline")
        assert [shown.body for shown in transport.show("invoices")] == [b'{"OrderId":"A-1","Total":120.00}']
        assert (transport.peek("orders"), transport.peek("error")) == (0, 1)
