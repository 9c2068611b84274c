"""Which processes share a warm Spark: those of one project, one setting and one Python."""

import sys
from pathlib import Path

import pytest

from queue_pipeline.processing.spark.folder import spark_folder
from queue_pipeline.processing.spark.settings import spark_config


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The folder of programs of a virtual environment, in which Python has two names."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(Path(sys.executable).resolve())
    (folder / "python3").symlink_to("python")
    return folder


def folder_of(executable: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "executable", str(executable))
    return spark_folder(spark_config("warm:local[2]", {}))


def test_commands_of_one_environment_share_spark_whatever_their_python_is_called(python, monkeypatch):
    """`python -m pytest` runs bin/python; `dg` and `queue-pipeline` may run bin/python3."""
    assert folder_of(python / "python", monkeypatch) == folder_of(python / "python3", monkeypatch)


def test_another_environment_has_another_spark(python, monkeypatch):
    before = Path(sys.executable)
    assert folder_of(python / "python", monkeypatch) != folder_of(before, monkeypatch)


def test_workers_are_ours_whatever_the_python_of_the_environment_is_called(python, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(python / "python3"))
    same = spark_config("warm:local[2]", {"PYSPARK_PYTHON": str(python / "python")})
    assert same == spark_config("warm:local[2]", {})
    assert same != spark_config("warm:local[2]", {"PYSPARK_PYTHON": "/somewhere/python3"})
