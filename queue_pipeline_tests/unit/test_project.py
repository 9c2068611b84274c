import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from queue_pipeline_tests.support.databases.backends import INTEGRATION, PSYCOPG_ONLY, PYODBC_TOO

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = sorted(PROJECT["project"]["optional-dependencies"])


def relative_files(folder: str, pattern: str = "*") -> set[str]:
    files = (path for path in (ROOT / folder).rglob(pattern) if path.is_file())
    return {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}


def declared_requirements() -> list[Requirement]:
    project = PROJECT["project"]
    groups = [PROJECT["build-system"]["requires"], project["dependencies"]]
    groups += project["optional-dependencies"].values()
    return [Requirement(text) for group in groups for text in group]


def pins() -> dict[str, Version]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {canonicalize_name(name): Version(version) for name, version in (line.split("==") for line in lines)}


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


def test_the_wheel_holds_every_module_of_the_package_and_no_tests(wheel_files: set[str]) -> None:
    assert relative_files("queue_pipeline", "*.py") <= wheel_files
    assert {name.split("/")[0] for name in wheel_files} == {"queue_pipeline"}


def test_the_source_distribution_holds_what_a_build_and_a_test_run_need(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "constraints.txt", "LICENSE", "scripts/test"}
    for folder in ("queue_pipeline", "sql", "queue_pipeline_tests"):
        needed |= relative_files(folder)
    assert needed <= names


def test_constraints_are_names_and_versions_only() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*", line), line


@pytest.mark.parametrize("requirement", declared_requirements(), ids=str)
def test_every_declared_dependency_is_pinned_to_a_version_that_it_allows(requirement: Requirement) -> None:
    pinned = pins()
    assert canonicalize_name(requirement.name) in pinned
    assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])


def test_every_dependency_of_a_dependency_is_pinned() -> None:
    def required_by(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
        for text in metadata.requires(name) or ():
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                yield canonicalize_name(requirement.name), frozenset(requirement.extras)

    reached: set[tuple[str, frozenset[str]]] = set()
    ahead = set(required_by("queue_pipeline", frozenset(EXTRAS)))
    while ahead:
        reached.add(step := ahead.pop())
        try:
            ahead |= set(required_by(*step)) - reached
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed here
    assert {name for name, _ in reached} - set(pins()) == set()


def test_no_file_names_a_package_registry_or_a_path_of_one_machine() -> None:
    # Assembled from parts, so that this file passes its own test.
    hosts = ["pypi" + ".org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian"]
    folders = ["wo" + "rk", "fa" + "rm", "ro" + "ot", r"ho" + r"me/\w+", "Us" + r"ers/\w+"]
    hosts_or_paths = re.compile(
        "|".join(map(re.escape, hosts)) + r"|(?<![\w.{}])/(?:" + "|".join(folders) + r")(?:/|\b)"
    )
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip("needs a git checkout to know which files are the project's")
    names = [name for name in listing.stdout.split("\0") if (ROOT / name).is_file()]
    assert "pyproject.toml" in names
    found = []
    for name in names:
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # not a text
        for number, line in enumerate(text.splitlines(), 1):
            if hosts_or_paths.search(line):
                found.append(f"{name}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize("name", sorted(relative_files("queue_pipeline", "*.py")))
def test_every_public_module_says_what_it_is_for(name: str) -> None:
    if any(part.startswith("_") and part != "__init__.py" for part in Path(name).parts):
        return
    assert ast.get_docstring(ast.parse((ROOT / name).read_text())), f"{name} has no docstring"


@pytest.mark.parametrize("name", sorted({".ci/run"} | relative_files("scripts")))
def test_every_script_can_be_executed(name: str) -> None:
    assert (ROOT / name).stat().st_mode & 0o111


@pytest.mark.parametrize("module", [*PSYCOPG_ONLY, *PYODBC_TOO])
def test_a_module_that_is_to_run_over_a_driver_of_its_own_is_there(module: str) -> None:
    """One that was moved would run over the usual driver only, and nothing would show it."""
    assert (ROOT / f"{INTEGRATION}.{module}".replace(".", "/")).with_suffix(".py").exists()
