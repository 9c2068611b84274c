"""Processes that leave nothing behind, in whatever session they run and whatever ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from queue_pipeline_tests.support.waiting import eventually
from tools import processes
from tools.processes import Processes, tail

# A child that a parent leaves behind in a session of its own, and that does not mind being asked to end.
STUBBORN = """
import signal, subprocess, sys, time
if len(sys.argv) > 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(600)
subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True)
time.sleep(600)
"""


@pytest.fixture
def stubborn(tmp_path: Path) -> list[str]:
    script = tmp_path / "stubborn.py"
    script.write_text(STUBBORN)
    return [sys.executable, str(script)]


def test_descendants_are_ended_even_in_another_session(
    tmp_path: Path, stubborn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "STERN_SECONDS", 1.0)
    ours = Processes(tmp_path, os.environ)
    started = ours.start(stubborn, tmp_path / "log")
    eventually(lambda: len(ours.alive()) == 2)
    assert ours.end() == []
    assert ours.alive() == []
    assert started.returncode == -signal.SIGINT


def test_processes_that_are_to_stay_and_those_of_others_are_not_ended(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours = Processes(tmp_path, os.environ)
    kept = ours.start(sleeper, tmp_path / "log", marked=False)
    with subprocess.Popen(sleeper) as stranger:
        try:
            assert ours.alive() == []
            began = time.monotonic()
            assert ours.end() == []
            assert time.monotonic() - began < processes.POLITE_SECONDS
            assert stranger.poll() is None
        finally:
            stranger.kill()
    assert kept.poll() is not None


def test_processes_with_a_known_mark_can_be_ended_from_another_process(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    ours = Processes(tmp_path, os.environ)
    started = ours.start(sleeper, tmp_path / "log")
    later = Processes(tmp_path, {}, mark=ours.mark)
    eventually(lambda: later.alive() == [started.pid])
    assert Processes(tmp_path, {}).alive() == []
    assert later.end() == []
    assert started.wait(10) == -signal.SIGTERM


def test_the_end_of_a_log_is_shown(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\n".join(map(str, range(100))))
    assert tail(tmp_path / "log", 2) == "98\n99"
    assert tail(tmp_path / "missing") == ""
