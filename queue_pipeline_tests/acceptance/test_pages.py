"""The commands of README.md and docs/ are run as a reader pastes them, and print what the pages show."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from queue_pipeline_tests.support.pages import PAGES, ROOT, has_commands, run_page

EVERY_TIME = ROOT / "docs/error-queue.md"
"""The page that is run every time: it needs no Spark."""


def pages() -> list[object]:
    found = [page for page in PAGES if has_commands(page) and not page.is_relative_to(ROOT / "examples")]
    marks = {True: (), False: (pytest.mark.slow,)}
    return [pytest.param(page, id=page.stem, marks=marks[page == EVERY_TIME]) for page in found]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", pages())
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path, spark_settings: dict[str, str]) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run_page(page, tmp_path, {**spark_settings, "PATH": path, "PYTHONPATH": str(ROOT)})
