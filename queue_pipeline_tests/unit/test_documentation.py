"""What the documentation shows is there: links, commands, settings, and pipelines that can be declared as it says."""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import click
import pytest

import queue_pipeline.errors
import queue_pipeline.testing
from queue_pipeline import QueuePipeline, queue_definitions
from queue_pipeline.cli.app import app
from queue_pipeline.defs.orders import orders

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
SCRIPT_CODE = {
    "bench": [ROOT / "queue_pipeline_tests/benchmarks/__main__.py"],
    "cluster": sorted((ROOT / "tools/cluster").glob("*.py")),
}
"""Scripts whose options are declared elsewhere."""
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


def calls(page: Path, program: str) -> Iterator[list[str]]:
    """The words behind a program's name, wherever the page calls it, up to the end of that command."""
    for line in re.findall(rf"(?<![\w/.-]){program} ([^`\n]*)", page.read_text()):
        without_values = re.sub(r"'[^']*'|\"[^\"]*\"", "VALUE", line)
        yield re.split(r"\s(?:#|\||>|&&?|\|\|)(?:\s|$)|\)|[;,:](?:\s|$)", without_values)[0].split()


def wrong_in(words: list[str]) -> Iterator[str]:
    """Commands and options of a call of `queue-pipeline` that do not exist."""
    command: click.Command = app
    waiting = iter(words)
    for word in waiting:
        if word.startswith("-"):
            name = word.partition("=")[0].rstrip(".,:")
            option = next((each for each in command.params if name in each.opts), None)
            if name in ("-h", "--help"):
                continue
            if option is None:
                yield f"{command.name} {name}"
            elif isinstance(option, click.Option) and not option.is_flag and "=" not in word:
                next(waiting, None)
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z|-]*[.,:]?", word):
            children = [command.commands.get(name) for name in word.rstrip(".,:").split("|")]
            if None in children:
                yield f"{command.name} {word}"
            if children[0] is None or len(children) > 1:
                return
            command = children[0]


@every_page
def test_commands_and_options_that_are_shown_exist(page: Path) -> None:
    wrong = [
        f"queue-pipeline {' '.join(words)}: {one}" for words in calls(page, "queue-pipeline") for one in wrong_in(words)
    ]
    assert wrong == []


@every_page
def test_scripts_and_their_options_that_are_shown_exist(page: Path) -> None:
    for match in re.finditer(r"(?<![\w/.])scripts/([\w-]+)([^`\n#]*)", page.read_text()):
        script = ROOT / "scripts" / match[1]
        assert script.is_file(), match[0]
        explained = script.read_text() + "".join(path.read_text() for path in SCRIPT_CODE.get(match[1], ()))
        # scripts/test hands other options to pytest.
        options = [] if match[1] == "test" else re.findall(r"(?<!\S)--[a-z-]+", match[2])
        assert [option for option in options if option not in explained] == [], match[0]


def test_every_field_of_a_pipeline_is_explained() -> None:
    text = (ROOT / "docs/pipelines.md").read_text()
    assert [name for name in QueuePipeline.model_fields if f"`{name}`" not in text] == []


def test_every_job_and_sensor_is_explained() -> None:
    text = (ROOT / "docs/operations.md").read_text()
    made = queue_definitions([orders], autostart=False)
    names = {each.name for each in [*(made.jobs or ()), *(made.sensors or ())]}
    assert {name for name in names if f"`{name}`" not in text} == set()


def python_of(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)


@pytest.mark.parametrize(
    ("page", "begins", "job"),
    [
        ("README.md", "# shop.py", "write_invoices_pipeline"),
        ("docs/clients.md", "# prices.py", "answer_prices_pipeline"),
        ("docs/nginn.md", "# import_orders.py", "import_orders_pipeline"),
    ],
)
def test_pipelines_that_are_shown_can_be_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, begins: str, job: str
) -> None:
    monkeypatch.setenv("QUEUE_PIPELINE_NGINN", '{"aliases": ["ShopDb"]}')
    (block,) = [text for text in python_of(page) if text.startswith(begins)]
    module_file = tmp_path / f"{job}.py"
    module_file.write_text(block)
    spec = importlib.util.spec_from_file_location(job, module_file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declared = [each for each in vars(module).values() if isinstance(each, QueuePipeline)]
    made = queue_definitions(declared, autostart=False)
    assert job in {one.name for one in made.jobs or ()}


def test_readme_and_tutorial_show_the_same_pipeline() -> None:
    in_readme, in_tutorial = (
        next(text for text in python_of(page) if "write_invoices" in text) for page in ("README.md", "docs/tutorial.md")
    )
    assert in_readme.removeprefix("# shop.py\n") == in_tutorial


@every_page
def test_names_that_are_imported_from_the_package_are_public(page: Path) -> None:
    imported = re.findall(r"from (queue_pipeline(?:\.testing|\.errors)?) import ([\w, ]+)", page.read_text())
    wrong = [
        name
        for package, names in imported
        for name in re.split(r",\s*", names.strip())
        if name not in importlib.import_module(package).__all__
    ]
    assert wrong == []


def test_every_public_name_is_on_the_page_of_the_api() -> None:
    text = (ROOT / "docs/api.md").read_text()
    listed = {name for names in re.findall(r"<!-- api[^:]*: ([\w ]+?) -->", text) for name in names.split()}
    assert listed == {*queue_pipeline.__all__, *queue_pipeline.errors.__all__, *queue_pipeline.testing.__all__}


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


def test_the_documented_folders_are_those_of_the_package() -> None:
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


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    named = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.is_relative_to(ROOT / "docs")}
    made = {"index.md", "changelog.md", "contributing.md"}
    assert named == pages | made
