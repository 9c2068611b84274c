"""Consumers as processes that are started once, stay warm, and drain the queue together on command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from types import TracebackType
from typing import Any, Self

URL_VARIABLE = "QUEUE_PIPELINE_BENCH_URL"
READY = "ready"
_ERROR_CHARACTERS = 2_000


class Crew:
    """Some processes of one kind of consumer; gone at the end, or when the process that started them dies."""

    def __init__(self, module: str, name: str, url: str, size: int) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the processes write to it
        command = ["setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", __package__, module, name]
        self._name = name
        self._processes = [
            subprocess.Popen(
                command,
                env=os.environ | {URL_VARIABLE: url},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                text=True,
                # Ctrl-C reaches them only through us.
                start_new_session=True,
            )
            for _ in range(size)
        ]

    def __enter__(self) -> Self:
        try:
            for process in self._processes:
                self._answer(process)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tell(self, do: str, *, size: int = 1, **options: Any) -> list[Any]:
        """Let `size` of them do it at the same time; their answers, when the last is done."""
        chosen = self._processes[:size]
        if len(chosen) < size:
            raise ValueError(f"{size} of {len(self._processes)} processes of {self._name}")
        order = json.dumps({"do": do, **options})
        for process in chosen:
            assert process.stdin is not None
            process.stdin.write(order + "\n")
            process.stdin.flush()
        return [json.loads(self._answer(process)) for process in chosen]

    def drain(self, *, size: int = 1, **options: Any) -> int:
        """Let them empty the queue; the number of messages in all."""
        return sum(self.tell("drain", size=size, **options))

    def close(self) -> None:
        """End all of them, whatever they are at."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.communicate()
        self._errors.close()

    def _answer(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            self._errors.seek(0)
            errors = self._errors.read().decode(errors="replace").strip()[-_ERROR_CHARACTERS:]
            raise RuntimeError(f"a process of {self._name} ended with {process.wait()}: {errors}")
        return line
