"""What the documentation shows is there: links, commands, settings, and pipelines that can be declared as it says."""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import reduce
from pathlib import Path

import click
import pytest

from queue_pipeline.cli.app import app
from queue_pipeline.defs.orders import orders
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.processing.declaration.pipeline import QueuePipeline

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def without_code(page: Path) -> str:
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """As MkDocs and GitHub make them: words of the heading in lower case, joined by hyphens."""
    headings = re.findall(r"^#+ (.+)$", without_code(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    broken = []
    for target in re.findall(r"\]\((?!https?://)([^)\s]+)\)", without_code(page)):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert broken == []


@every_page
def test_every_command_that_is_shown_exists(page: Path) -> None:
    for line in re.findall(r"queue-pipeline ((?:[a-z][a-z-]*\s?)+)", page.read_text()):
        command: click.Command = app
        for word in line.split():
            if not isinstance(command, click.Group):
                break
            found = command.commands.get(word)
            assert found is not None, f"queue-pipeline {line}"
            command = found


def test_every_field_of_a_pipeline_is_explained() -> None:
    text = (ROOT / "docs/pipelines.md").read_text()
    assert [name for name in QueuePipeline.model_fields if f"`{name}`" not in text] == []


def test_every_job_and_sensor_is_explained() -> None:
    text = (ROOT / "docs/operations.md").read_text()
    made = build_definitions([orders], autostart=False)
    names = {each.name for each in [*(made.jobs or ()), *(made.sensors or ())]}
    assert {name for name in names if f"`{name}`" not in text} == set()


@pytest.mark.parametrize(("name", "job"), [("labels", "write_labels_pipeline"), ("prices", "answer_prices_pipeline")])
def test_the_pipelines_of_the_readme_can_be_declared(tmp_path: Path, name: str, job: str) -> None:
    (block,) = re.findall(
        rf"```python\n(# queue_pipeline/defs/{name}\.py\n.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    module_file = tmp_path / f"{name}.py"
    module_file.write_text(block)
    spec = importlib.util.spec_from_file_location(name, module_file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = build_definitions([orders, getattr(module, name)], autostart=False)
    assert {"orders_pipeline", job} <= {one.name for one in made.jobs or ()}


def way_of_a_message() -> list[tuple[str, str]]:
    text = (ROOT / "docs/architecture.md").read_text()
    return re.findall(r"^\| \d+ [^|]+ \| `([\w/]+\.py)` \| `([\w.]+)` \|$", text, re.M)


def test_the_documented_way_of_a_message_has_fifteen_steps() -> None:
    assert len(way_of_a_message()) == 15


@pytest.mark.parametrize(("file", "name"), way_of_a_message())
def test_every_step_of_the_way_is_in_its_file(file: str, name: str) -> None:
    module = importlib.import_module("queue_pipeline." + file.removesuffix(".py").replace("/", "."))
    found = reduce(getattr, name.split("."), module)
    assert found.__module__ == module.__name__, f"{name} is defined in {found.__module__}"


def test_the_glossary_has_at_most_25_terms_each_of_them_once() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    table = text.partition("## Glossary")[2].partition("\n## ")[0]
    terms = re.findall(r"^\| ([^|]+) \|", table, re.M)[1:]
    terms = [term for term in terms if not term.startswith("-")]
    assert len(terms) == len(set(terms)) and 15 <= len(terms) <= 25


def test_the_folders_of_the_house_are_those_of_the_package() -> None:
    house = (ROOT / "docs/architecture.md").read_text().partition("```\n")[2].partition("```")[0]
    drawn = set(re.findall(r"([a-z_]+)/", house)) - {"sql"}
    package = ROOT / "queue_pipeline"
    there = {path.parent.name for path in package.rglob("*.py")} - {package.name}
    assert {name for name in drawn if name not in there} == set()
    assert {name for name in ("orchestration", "processing", "transport") if name not in drawn} == set()
    for room in ("processing", "transport"):
        assert {path.parent.name for path in (package / room).glob("*/__init__.py")} <= drawn


@pytest.mark.parametrize("page", ["architecture.md", "decisions.md"])
def test_files_that_the_explanations_name_are_there(page: str) -> None:
    named = set(re.findall(r"`([\w/]+\.(?:py|sql))`", (ROOT / "docs" / page).read_text()))
    there = {path.as_posix() for folder in ("queue_pipeline", "sql") for path in (ROOT / folder).rglob("*.*")}
    assert {name for name in named if not any(path.endswith("/" + name) for path in there)} == set()
