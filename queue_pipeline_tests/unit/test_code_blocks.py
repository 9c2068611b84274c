"""Every code block of README.md, docs/ and examples/: commands are run or say why not, and all else can be read."""

from __future__ import annotations

import ast
import configparser
import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import sqlglot
import yaml  # type: ignore[import-untyped]
from sqlglot import exp

from queue_pipeline import QueuePipelines, queue_definitions
from queue_pipeline.defs.orders import orders
from queue_pipeline_tests.support.pages import COMMANDS, PAGES, ROOT, RUN, Block, blocks

LANGUAGES = {*COMMANDS, "python", "yaml", "json", "ini", "sql", "tsql", "text"}
USERS_MODULES = {"acme", "shop"}
"""Modules of the reader's own project."""
OTHER_MARKS = {"prints", "file"}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks_in(*languages: str) -> list[object]:
    return [pytest.param(one, id=one.name) for page in PAGES for one in blocks(page) if one.language in languages]


def programs(block: Block) -> set[str]:
    """The programs that a block starts, without those that only prepare."""
    lines = re.sub(r"\\\n", " ", block.commands).splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    names = {next((word for word in line if not re.match(r"\w+=|[*/\d]+$", word)), "") for line in words}
    return names - {"", "cd", "export", "mkdir", "pip"}


def wrong_with(block: Block) -> Iterator[str]:
    """What is missing for a claim that a block of commands works."""
    if block.mark in RUN:
        return
    if block.mark == "not run":
        if not block.value:
            yield "does not say why it is not run"
    elif block.mark == "run by":
        files = [ROOT / name for name in block.value.split(", ")]
        missing = [path for path in files if not path.is_file()]
        texts = "" if missing else "".join(path.read_text() for path in files)
        if missing:
            yield f"there is no {missing[0]}"
        elif block.place not in texts:
            yield from (f"{block.value} does not run {name}" for name in programs(block) if name not in texts)
    else:
        yield "is neither run nor marked; support/pages.py has the marks"


@every_page
def test_every_block_of_commands_is_run_or_says_why_not(page: Path) -> None:
    wrong = [
        f"{block.name}: {problem}"
        for block in blocks(page)
        if block.language in COMMANDS
        for problem in wrong_with(block)
    ]
    assert wrong == []


@every_page
def test_other_blocks_have_a_language_and_a_mark_that_is_known(page: Path) -> None:
    wrong = [
        f"{block.name}: {block.language}, {block.mark}"
        for block in blocks(page)
        if block.language not in LANGUAGES
        or (block.language not in COMMANDS and block.mark and block.mark not in OTHER_MARKS)
    ]
    assert wrong == []


def test_a_block_that_is_not_marked_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    marks = ("", "<!-- run -->", "<!-- not run -->", "<!-- run by: tools/none.py -->", "<!-- run by: scripts/demo -->")
    page.write_text("```bash\nls\n```\n\n" + "".join(f"Text.\n\n{mark}\n\n    hexdump\n\n" for mark in marks))
    found = [(block.line, [*wrong_with(block)]) for block in blocks(page)]
    assert [line for line, _ in found] == [2, 9, 15, 21, 27, 33]
    assert [len(wrong) for _, wrong in found] == [1, 1, 0, 1, 1, 1]


@pytest.mark.parametrize("block", blocks_in("python"))
def test_python_compiles_and_what_it_imports_is_there(block: Block) -> None:
    for node in ast.walk(ast.parse(block.text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] not in USERS_MODULES:
            module = importlib.import_module(node.module)
            assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == [], node.module


@pytest.mark.parametrize("block", blocks_in("json"))
def test_json_can_be_read(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks_in("ini"))
def test_units_can_be_read(block: Block) -> None:
    configparser.ConfigParser(strict=False, interpolation=None).read_string(block.text)


@pytest.mark.parametrize("block", blocks_in("yaml"))
def test_yaml_is_valid_for_the_code_that_reads_it(block: Block, tmp_path: Path) -> None:
    document = yaml.safe_load(block.text)
    if document.get("type") == "queue_pipeline.QueuePipelines":
        QueuePipelines.model().model_validate(document["attributes"])
    elif "ops" in document:
        (name,) = document["ops"]
        made = queue_definitions([orders], autostart=False).get_repository_def().get_all_jobs()
        (job,) = [job for job in made if name in {node.name for node in job.all_node_defs}]
        dg.validate_run_config(job, document)
    elif "telemetry" in document:
        # The storage on PostgreSQL needs dagster-postgres, which is not installed here.
        document.pop("storage", None)
        (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(document))
        with dg.DagsterInstance.from_config(str(tmp_path)):
            pass
    else:
        assert {"services", "apiVersion"} & {*document}, "read by test_deploy_examples.py"


@pytest.mark.parametrize("block", blocks_in("tsql"))
def test_t_sql_can_be_parsed(block: Block) -> None:
    statements = sqlglot.parse(block.text, "tsql")
    assert statements
    assert [one for one in statements if isinstance(one, exp.Command)] == []
