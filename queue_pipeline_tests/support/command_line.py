"""The command line as tests run it: in this process, or as a program of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from queue_pipeline.cli import main
from queue_pipeline_tests.support.databases.backends import Backend


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output, which has to be one JSON document of a command that went well and said nothing else."""
        assert self.code == 0, self.err
        assert self.err == ""
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line of a command that failed."""
        assert self.code != 0
        (line,) = self.err.splitlines()
        assert line.startswith("queue-pipeline: error: ")
        return line.removeprefix("queue-pipeline: error: ")


def run(*arguments: object, stdin: bytes = b"", program: Callable[[list[str]], int] = main) -> Ran:
    """Run a command line in this process."""
    out, err, given = (io.TextIOWrapper(io.BytesIO(data), encoding="utf-8") for data in (b"", b"", stdin))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", given),
    ):
        code = program([str(argument) for argument in arguments])
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return Ran(code, *texts)


@dataclass(frozen=True)
class CommandLine:
    """Commands on one database, in the schema of one test."""

    backend: Backend

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Ran:
        """Run a command."""
        return run(*self.options(), *arguments, stdin=stdin)

    def pasted(self, words: Sequence[str]) -> Ran:
        """Run a command that a page or another command shows; the environment has the setting of the database."""
        return run(*(self.backend.url if word == "$QUEUE_PIPELINE_DATABASE" else word for word in words))

    def options(self) -> list[str]:
        """What stands before every command."""
        schema = ["--schema", self.backend.schema] if self.backend.schema else []
        return ["--database", self.backend.url, *schema]


def environment(**variables: str) -> Mapping[str, str]:
    """An environment in which nothing is configured but what is named here."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH") if name in os.environ}
    return {**kept, "PYTHONUNBUFFERED": "", **variables}


def program() -> list[str]:
    """The installed console script."""
    return [str(Path(sys.executable).with_name("queue-pipeline"))]


def start(folder: Path, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line as a process of its own, in a folder and an environment with nothing configured."""
    command = program() + [str(argument) for argument in arguments]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": environment(), **options}
    return subprocess.run(command, cwd=folder, text=True, timeout=120, **options)


def problems(ran: Ran) -> dict[str, str]:
    """What `health --json` calls problems, by check; the exit code has to say the same."""
    document = json.loads(ran.out)
    found = {one["check"]: one["description"] for one in document["problems"]}
    assert (ran.code, document["healthy"]) == ((1, False) if found else (0, True)), ran.err
    return found
