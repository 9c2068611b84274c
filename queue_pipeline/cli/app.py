"""The command `queue-pipeline`: its global options, its subcommands, and its entry point."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator, Sequence

import click

from queue_pipeline import __version__
from queue_pipeline.cli.commands import (
    claims,
    errors,
    health,
    install,
    look,
    maintain,
    nginn,
    pauses,
    receive,
    request,
    send,
    spark,
    status,
    subscriptions,
)
from queue_pipeline.cli.failures import BROKEN_PIPE, EXIT_CODES, PROGRAM, StderrLog, report, settle_stdout
from queue_pipeline.cli.parameters import Text
from queue_pipeline.cli.session import DEFAULT_ERROR_QUEUE, Session, shared_options
from queue_pipeline.transport.addresses.queues import SUBSCRIPTIONS_TABLE, SUBSCRIPTIONS_VARIABLE
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE, FORMS
from queue_pipeline.transport.extras import needed_by
from queue_pipeline.transport.layouts.nginn.settings import VARIABLE


class App(click.Group):
    """A group that ends with 141 and no message when the reader of its output goes away."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command, then flush its output."""
        try:
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result
        except BrokenPipeError:
            raise click.exceptions.Exit(BROKEN_PIPE) from None


@click.group(
    cls=App, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}, epilog=EXIT_CODES
)
@click.option(
    "--database",
    metavar="URL",
    help=f"Where the queues are: {FORMS}. Default: ${ENVIRONMENT_VARIABLE}, else SQLite in .queue_pipeline/.",
)
@click.option("--schema", type=Text(), metavar="NAME", help="Default schema, for queue addresses without one.")
@click.option(
    "--catalog", type=Text(), metavar="NAME", help="SQL Server: default database, for queue addresses without one."
)
@click.option(
    "--error-queue",
    type=Text(),
    metavar="NAME",
    default=DEFAULT_ERROR_QUEUE,
    show_default=True,
    help="The queue of failed messages and of messages with unreadable headers.",
)
@click.option(
    "--nginn",
    metavar="JSON",
    help=f"Settings of NGinn.MessageBus queues, as JSON text or the name of a JSON file. Default: ${VARIABLE}.",
)
@click.option(
    "--subscriptions-table",
    type=Text(),
    metavar="ADDRESS",
    envvar=SUBSCRIPTIONS_VARIABLE,
    help=f"The table of subscriptions, shared by all endpoints. Default: ${SUBSCRIPTIONS_VARIABLE}, else "
    f"{SUBSCRIPTIONS_TABLE} in the default schema.",
)
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
@shared_options
@click.pass_context
def app(context: click.Context, /, **options: str | None) -> None:
    """Work with SQL tables used as message queues."""
    session = context.ensure_object(Session)
    for name, value in options.items():
        setattr(session, name, value)


app.add_command(install.install)
app.add_command(install.script)
app.add_command(send.send)
app.add_command(request.request)
app.add_command(look.peek)
app.add_command(look.show)
app.add_command(status.status)
app.add_command(health.health)
app.add_command(receive.receive)
app.add_command(maintain.purge)
app.add_command(maintain.audit_indexes)
app.add_command(maintain.move_due)
app.add_command(nginn.nginn)
app.add_command(claims.claims)
app.add_command(claims.slots)
app.add_command(errors.errors)
app.add_command(pauses.pause)
app.add_command(pauses.resume)
app.add_command(pauses.pauses)
app.add_command(send.publish)
app.add_command(subscriptions.subscribe)
app.add_command(subscriptions.unsubscribe)
app.add_command(subscriptions.subscriptions)
app.add_command(spark.spark)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default the process's own; returns its exit code."""
    session = Session()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character gets its code; without this the command would fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    with _warnings_on_stderr(session):
        try:
            with needed_by("this command"):
                code = app.main(arguments, prog_name=PROGRAM, standalone_mode=False, obj=session)
        except (Exception, KeyboardInterrupt) as error:
            code = report(error, session)
    settle_stdout()
    return code if isinstance(code, int) else 0


@contextlib.contextmanager
def _warnings_on_stderr(session: Session) -> Iterator[None]:
    logger, handler = logging.getLogger("queue_pipeline"), StderrLog(session)
    logger.addHandler(handler)
    propagates, logger.propagate = logger.propagate, False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
