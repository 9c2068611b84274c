import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def relative_files(folder: str, pattern: str = "*") -> set[str]:
    files = (path for path in (ROOT / folder).rglob(pattern) if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("distributions")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    built = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return target


@pytest.fixture(scope="module")
def wheel_files(distributions: Path) -> set[str]:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_every_statement_inside_the_package(wheel_files: set[str]) -> None:
    statements = relative_files("sql", "*.sql")
    assert statements, "sql/ is empty"
    assert {f"queue_pipeline/{name}" for name in statements} <= wheel_files


def test_the_wheel_holds_every_module_of_the_library_and_neither_tests_nor_the_example(wheel_files: set[str]) -> None:
    example = {*relative_files("queue_pipeline/defs"), "queue_pipeline/definitions.py"}
    assert relative_files("queue_pipeline", "*.py") - example <= wheel_files
    assert not example & wheel_files
    # Spark looks for data sources in top-level modules.
    assert {name.split("/")[0] for name in wheel_files} == {"queue_pipeline", "pyspark_sql_queue.py"}


def test_the_source_distribution_holds_what_a_build_and_a_test_run_need(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "constraints.txt", "LICENSE", "scripts/test"}
    for folder in ("queue_pipeline", "sql", "queue_pipeline_tests"):
        needed |= relative_files(folder)
    assert needed <= names
