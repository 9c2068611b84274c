"""The tutorial does what it says: its files are written, its commands are run, and they print what it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline_tests.support.pages import DOCS, steps


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_commands_of_the_tutorial_print_what_it_shows(tmp_path: Path) -> None:
    # A Spark in the process of each run: nothing is left behind, and no server of another test is met.
    environment = os.environ | {"QUEUE_PIPELINE_SPARK": "local[1]", "PYTHONPATH": str(DOCS.parent)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    for name in ("DAGSTER_HOME", "QUEUE_PIPELINE_DATABASE"):
        environment.pop(name, None)
    printed, shown = "", 0
    for file, language, text in steps("tutorial.md"):
        if file:
            (tmp_path / file).write_text(text)
        elif language == "text":
            shown += 1
            assert [line for line in text.splitlines() if line not in printed] == [], printed
        else:
            done = subprocess.run(
                ["bash", "-euc", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
            printed = done.stdout
    assert shown == 3
