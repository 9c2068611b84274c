"""Commands on a real terminal: bars on stderr where work may take long, and live figures that leave nothing behind."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import environment, program, start
from queue_pipeline_tests.support.terminal import Terminal, plain

pytestmark = pytest.mark.heavy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert start(tmp_path, "install", "orders").returncode == 0
    assert start(tmp_path, "send", "orders", "--body", "{}", "--count", 3000).returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("send orders --body {} --count 3000", "sending"),
        ("send orders --jsonl lines.jsonl", "checking"),
        ("receive orders --max 3000", "receiving"),
        ("show orders --csv", "reading"),
        ("purge orders", "purging"),
        ("install orders billing", "installing"),
        ("errors retry --all", "retrying"),
        ("move-due orders", "moving"),
    ],
)
def test_a_terminal_sees_how_far_a_command_is(folder: Path, words: str, label: str) -> None:
    (folder / "lines.jsonl").write_text('{"body": "x"}\n' * 3)
    ran, shown = on_terminal(folder, words)
    assert ran == 0
    assert label in shown
    assert "\x1b[?25h" in shown, "the cursor is shown again"


def test_json_has_no_bar_and_neither_has_a_file(folder: Path) -> None:
    words = "send orders --body {} --count 3000"
    assert on_terminal(folder, f"{words} --json") == (0, "")
    silent = start(folder, *words.split())
    assert (silent.returncode, silent.stderr) == (0, "")
    assert "sending" not in silent.stdout


def on_terminal(folder: Path, words: str) -> tuple[int, str]:
    """The exit code of a command whose errors go to a terminal, and what the terminal got."""
    controlling, terminal = pty.openpty()
    ran = start(folder, *words.split(), stderr=terminal, env=environment(TERM="xterm-256color"))
    os.close(terminal)
    written = b""
    with open(controlling, "rb", buffering=0) as screen:
        try:
            while part := screen.read(65_536):
                written += part
        except OSError:
            pass  # the other end is closed
    return ran.returncode, written.decode()


def test_live_figures_fit_a_narrow_terminal_and_ctrl_c_leaves_it_as_it_was(folder: Path) -> None:
    terminal = Terminal([*program(), "status", "--watch", "0.2"], folder, environment(), columns=80)
    first = terminal.read("Ctrl-C ends it")
    for word in ("waiting", "in/s", "out/s", "oldest", "in work", "failed", "3,000"):
        assert word in first
    assert start(folder, "receive", "orders", "--max", 1000).returncode == 0
    assert max(map(len, plain(terminal.read("2,000")))) <= 80
    terminal.resize(60)
    terminal.read("Ctrl-C ends it")
    assert max(map(len, plain(terminal.read("Ctrl-C ends it")))) <= 60
    assert terminal.press_ctrl_c() == 0
    live, _, after = terminal.screen.rpartition("\x1b[?1049l")
    assert live.startswith("\x1b[?1049h"), "a screen of its own, which is left at the end"
    assert terminal.screen.rindex("\x1b[?25h") > terminal.screen.rindex("\x1b[?25l"), "the cursor is shown again"
    assert "2,000" in after, "the last figures stay to be read"
    assert "Traceback" not in terminal.screen


def test_live_figures_count_what_failed_in_a_queue(folder: Path) -> None:
    failed = '{"body": "x", "headers": {"NServiceBus.FailedQ": "orders"}}\n' * 7
    assert start(folder, "send", "error", "--jsonl", "-", input=failed).returncode == 0
    terminal = Terminal([*program(), "status", "--watch", "0.2"], folder, environment(), columns=80)
    rows = [line.split() for line in plain(terminal.read("Ctrl-C ends it"))]
    assert next(row for row in rows if row[:1] == ["orders"])[-2:] == ["7", "0"]
    assert terminal.press_ctrl_c() == 0
