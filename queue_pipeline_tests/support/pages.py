"""Code blocks of README.md, docs/ and examples/: how they are marked, and how the commands of a page are run.

A comment before a block says what a test does with it:

    <!-- run -->                  its commands are run, those of a page in one shell, in their order
    <!-- run after: COMMANDS -->  the same; these are run before, unseen
    <!-- fails -->                its one command is run, and ends with an error
    <!-- prints -->               lines that the commands before it print
    <!-- file: NAME -->           a file that the commands of the page use
    <!-- run by: TEST -->         another test runs the same commands
    <!-- not run: REASON -->      no test can run it here

In a block that has prompts, `$ `, the other lines are what the commands print.
"""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
]
COMMANDS = ("", "bash", "console", "sh", "shell")
"""Languages of commands; an indented block has none."""
RUN = ("run", "run after", "fails")
_BLOCK = re.compile(
    r"(?:<!-- (?P<mark>(?:(?!-->).)*?)\s-->\n\n)?"
    r"(?:^(?P<indent> *)```(?P<language>\w*)\n(?P<fenced>.*?)^(?P=indent)```$"
    r"|(?<=\n\n)(?P<indented>    (?! *[-*] )[^\n]+\n(?:(?:    [^\n]*)?\n)*))",
    re.S | re.M,
)
_END = "--- end of a block ---"


@dataclass(frozen=True)
class Block:
    """One code block. The language of a fence without one is `text`."""

    page: Path
    line: int
    language: str
    text: str
    mark: str
    """What the comment says, or nothing."""
    value: str
    """What it says behind the colon."""

    @property
    def name(self) -> str:
        """Page and line, for a failed test."""
        return f"{self.place}:{self.line}"

    @property
    def place(self) -> str:
        """The page, as a path of the repository."""
        return os.path.relpath(self.page, ROOT)

    @property
    def commands(self) -> str:
        """What is typed."""
        typed = re.findall(r"^\$ (.*)$", self.text, re.M)
        return "\n".join(typed) if typed else self.text

    @property
    def printed(self) -> list[str]:
        """What is shown below prompts."""
        return [line for line in self.text.splitlines() if not line.startswith("$ ")] if "$ " in self.text[:2] else []


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in their order."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        mark, _, value = (match["mark"] or "").partition(":")
        indented = match["indented"]
        start = match.start("indented") if indented else match.start("fenced")
        code = textwrap.dedent(f"{indented.rstrip()}\n" if indented else match["fenced"])
        language = "" if indented else match["language"] or "text"
        yield Block(page, text.count("\n", 0, start) + 1, language, code, mark.strip(), value.strip())


def has_commands(page: Path) -> bool:
    """Whether there is something to run."""
    return any(block.mark in RUN for block in blocks(page))


def run_page(page: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """Run the commands of a page in a folder, and compare what they print with what the page shows."""
    script, checks = ["set -euo pipefail"], []
    for block in blocks(page):
        if block.mark == "file":
            (folder / block.value).write_text(block.text)
        elif block.mark in RUN:
            script += [f"{{ {block.value}\n}} >&2"] if block.value else []
            script += [f"! {block.commands}" if block.mark == "fails" else block.commands, f"echo '{_END}'"]
            checks.append(block.printed)
        elif block.mark == "prints":
            checks[-1] += block.text.splitlines()
    settings = {
        name: value for name, value in os.environ.items() if not name.startswith(("QUEUE_PIPELINE_", "DAGSTER_"))
    }
    ran = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env={**settings, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    printed = ran.stdout.split(f"{_END}\n")
    assert ran.returncode == 0, f"{page}\n{ran.stdout}\n{ran.stderr}"
    for lines, output in zip(checks, printed, strict=False):
        spaced = " ".join(output.split())
        # The lines under the headings of tables are as long as the tables are wide.
        missing = [line for line in lines if line.strip("─ ") and " ".join(line.split()) not in spaced]
        assert missing == [], f"{page} shows these lines, which are not in the output:\n{output}\n{ran.stderr}"
