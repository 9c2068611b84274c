"""The wheel in a virtual environment of its own, as a project that uses it has it.

The environment holds the wheel only. What the wheel depends on is read from the environment of the tests, which saves
an installation of minutes.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("dagster", "dagster-webserver", "dg", "pytest")
"""What users type beside `queue-pipeline`, which the wheel brings."""


def install_wheel(folder: Path) -> Path:
    """Build the wheel and install it; the folder of the programs."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    programs = folder / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", str(programs / "python")]
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True, timeout=300
    )
    (packages,) = (folder / "venv" / "lib").glob("*/site-packages")
    (packages / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    for program in entry_points(group="console_scripts"):
        if program.name in PROGRAMS:
            # Processes that multiprocessing spawns import this file.
            call = f"from {program.module} import {program.attr}\nif __name__ == '__main__':\n    {program.attr}()\n"
            (programs / program.name).write_text(f"#!{programs / 'python'}\n{call}")
            (programs / program.name).chmod(0o755)
    return programs
