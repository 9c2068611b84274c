"""Failures: every error becomes one line on stderr, without secrets, and an exit code."""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback

import click

from queue_pipeline.cli.session import Session
from queue_pipeline.errors import QueuePipelineError

PROGRAM = "queue-pipeline"

BUG = 70
INPUT_OUTPUT = 74
INTERRUPTED = 130
BROKEN_PIPE = 141

EXIT_CODES = """\b
Exit codes:
   0  done
   1  health or audit-indexes found something, failed messages could not go back, or the database reported a failure
   2  the command, an option, a setting or a message is invalid
   3  a queue, a claim or a failed message does not exist
   4  the database cannot be reached, or asks to try again
   5  the login was refused, or a right is missing
   6  the claim is now held by another owner
   7  no reply came in time
  70  a defect of this program: please report it
  74  reading or writing a file failed
 130  interrupted
 141  the reader of the output went away"""

_SHORT_SECRET = 4
_GLOBAL_OPTIONS = ("--database", "--schema", "--catalog", "--error-queue")
# The placeholder of our own advice is left alone; a password that reads so is still known as a secret.
_URL_PASSWORD = re.compile(r"(://[^\s/:@'\"]*):(?!password@)[^\s'\"]*@")
_ODBC_PASSWORD = re.compile(r"\b(pwd|password)\s*=\s*(\{(?:[^}]|\}\})*\}?|[^;\s'\"]*)", re.IGNORECASE)


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """Text without the given secrets, and without what has the form of a password in a database setting."""
    for secret in secrets:
        # A password of a letter or two is replaced only as a whole word: else no text could be read.
        edges = (r"(?<!\w)", r"(?!\w)") if len(secret) < _SHORT_SECRET else ("", "")
        text = re.sub(re.escape(secret).join(edges), "***", text)
    return _ODBC_PASSWORD.sub(r"\1=***", _URL_PASSWORD.sub(r"\1:***@", text))


def report(error: BaseException, session: Session) -> int:
    """Print what failed; returns the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if session.debug and not isinstance(error, click.ClickException):
        trace = "".join(traceback.format_exception(error))
        click.echo(redact(trace, session.secrets()).rstrip(), err=True)
    message, code = explain(error)
    say("error", message, session.secrets())
    return code


def explain(error: BaseException) -> tuple[str, int]:
    """The sentence for the user, and the exit code."""
    if isinstance(error, click.UsageError):
        return _usage(error), error.exit_code
    if isinstance(error, click.ClickException):
        return error.format_message(), error.exit_code
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, QueuePipelineError):
        return f"{error}{notes}", error.exit_code
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "interrupted; what was not yet committed is undone", INTERRUPTED
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}{notes}", INPUT_OUTPUT
    kind = type(error).__name__
    return f"{kind}: {error}{notes}; this is a bug: run with --debug and report what it prints", BUG


def say(level: str, message: str, secrets: tuple[str, ...] = ()) -> None:
    """One line on stderr."""
    line = " ".join(redact(message, secrets).split())
    click.echo(f"{PROGRAM}: {level}: {line}", err=True)


def settle_stdout() -> None:
    """Discard what stdout could not take: the interpreter would report an error at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


class StderrLog(logging.Handler):
    """Warnings of the transport in the form of the command line's own."""

    def __init__(self, session: Session) -> None:
        super().__init__(logging.WARNING)
        self._session = session

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record, unless it is about an error that will be reported itself."""
        if isinstance(record.args, tuple) and any(isinstance(part, QueuePipelineError) for part in record.args):
            return
        # Always a warning: the command goes on, and only what ends it is its error.
        say("warning", record.getMessage(), self._session.secrets())


def _usage(error: click.UsageError) -> str:
    message = error.format_message().rstrip(".")
    path = error.ctx.command_path if error.ctx else PROGRAM
    if isinstance(error, click.NoSuchOption) and error.option_name in _GLOBAL_OPTIONS:
        return f"{error.option_name} stands before the command: {PROGRAM} {error.option_name} VALUE COMMAND"
    return f"{message[:1].lower()}{message[1:]}; see: {path} --help"
