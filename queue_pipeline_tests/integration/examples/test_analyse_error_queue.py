"""The example prints what its README shows: two causes found, fixed and retried, and no message left behind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "analyse-error-queue"


@pytest.mark.usefixtures("spark")
def test_the_example_prints_what_its_readme_shows(tmp_path, spark_settings):
    environment = {**os.environ, **spark_settings, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(EXAMPLE / "analyse.py")]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stderr
    (shown,) = re.findall(r"    \$ python analyse\.py\n((?:    .*\n)+)", (EXAMPLE / "README.md").read_text())
    assert [line.strip() for line in ran.stdout.splitlines()] == [line.strip() for line in shown.splitlines()]
    assert ran.stdout.endswith("billed: 12, failed: 0\n")
