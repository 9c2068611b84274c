"""The entry point that the scripts with long-running children share: its errors, its exit codes, its signals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

import click

from queue_pipeline.errors import QueuePipelineError

INTERRUPTED = 130
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(command: click.Command, script: str, arguments: Sequence[str] | None, failed: int = 1) -> int:
    """Run the command of a script; returns the exit code, `failed` after an error that has a sentence."""
    # Set here because a shell starts background jobs of a script with SIGINT ignored.
    before = {number: signal.signal(number, _interrupt) for number in SIGNALS}
    try:
        code = command.main(arguments, prog_name=f"scripts/{script}", standalone_mode=False)
    except click.ClickException as error:
        print(f"{script}: {error.format_message()}; see scripts/{script} --help", file=sys.stderr)
        return error.exit_code
    except QueuePipelineError as error:
        print(f"{script}: {error}", file=sys.stderr)
        return failed
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if isinstance(code, int) else 0


def ignore_signals() -> None:
    """From here on the clean-up runs to its end."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(*_: object) -> None:
    ignore_signals()
    raise KeyboardInterrupt
