"""What the documentation shows is there: links, commands, settings, and pipelines that can be declared as it says."""

from __future__ import annotations

import importlib.util
import re
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


def test_every_job_and_sensor_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
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
