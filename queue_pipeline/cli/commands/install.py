"""`install` and `script`: the tables of queues, created, or printed for a person who may create them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from queue_pipeline.cli.output import answer_table, write, write_json
from queue_pipeline.cli.parameters import Text, options, queues_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.transport.addresses.queues import AddressBook, QueueTable, instance_address
from queue_pipeline.transport.database.dialects.lookup import DIALECTS, dialect_of
from queue_pipeline.transport.operations import install as ddl
from queue_pipeline.transport.operations.install import InstallOptions

table_options = options(
    click.option("--heap", is_flag=True, help="SQL Server: a heap, as NServiceBus creates since 6.0.1."),
    click.option("--body-string", is_flag=True, help="Add a column that shows the body as text."),
    click.option("--grant-to", type=Text(), metavar="ACCOUNT", help="Let this account send, receive and claim."),
    click.option(
        "--instance",
        "instances",
        type=Text(),
        multiple=True,
        metavar="NAME",
        help="Create the instance queue QUEUE.NAME instead of QUEUE; repeatable.",
    ),
    click.option("--plain", is_flag=True, help="No .Delayed and no .Claimed table: for audit queues."),
)
"""What to create, the same for both commands."""


@click.command()
@queues_argument
@table_options
@with_session
def install(session: Session, queues: tuple[str, ...], plain: bool, instances: tuple[str, ...], **given: Any) -> None:
    """Create queues and the error queue.

    Each queue comes with its .Delayed and .Claimed tables, and the schema with those that claims share. A queue that
    is named sql://alias/Queue gets the table of NGinn.MessageBus.
    Existing tables are left unchanged. Only this command needs an account that may create tables.
    """
    with session.transport() as transport, progress(session, "installing"):
        full, bare = _split(transport.book, queues, instances, session.error_queue, plain)
        installed = transport.install(*full, options=InstallOptions(**given), plain_queues=bare)
    rows = [(done.table, "created" if done.created else "already there") for done in installed]
    answer_table(session, {"tables": [asdict(done) for done in installed]}, ("table", "state"), rows)


@click.command()
@queues_argument
@table_options
@click.option("--dialect", type=click.Choice(sorted(DIALECTS)), help="Default: that of the database setting.")
@with_session
def script(
    session: Session,
    queues: tuple[str, ...],
    plain: bool,
    instances: tuple[str, ...],
    dialect: str | None,
    **given: Any,
) -> None:
    """Print the DDL of `install` for a DBA.

    The script has the real names. It needs no database connection.
    """
    url = session.url()
    named = dialect_of(url)
    chosen = DIALECTS[dialect] if dialect else named
    # The database inside a whole ODBC string is not parsed: the script then names no catalog.
    catalog = session.catalog or (url.database if named.has_catalogs and chosen.has_catalogs else None) or None
    nginn, subscriptions_table = session.nginn_settings(), session.subscriptions_table
    book = AddressBook(chosen, session.schema, catalog, nginn=nginn, subscriptions_table=subscriptions_table)
    full, bare = _split(book, queues, instances, session.error_queue, plain)
    text = ddl.script(chosen, ddl.steps(book, full, bare, InstallOptions(**given)))
    if session.json:
        write_json({"dialect": chosen.name, "script": text})
    else:
        write(text)


def _split(
    book: AddressBook, queues: Sequence[str], instances: Sequence[str], error_queue: str, plain: bool
) -> tuple[list[QueueTable], list[QueueTable]]:
    """Full queues and bare ones, each once; the error queue is bare unless it is asked for by name."""
    # With instances, what was typed are names of endpoints, and not addresses: a dot in them ends no schema.
    wanted = [instance_address(name, instance) for name in queues for instance in instances] if instances else queues
    named = list(dict.fromkeys(book.resolve(queue) for queue in wanted))
    error = book.resolve(error_queue)
    if plain:
        return [], list(dict.fromkeys([*named, error]))
    return named, [] if error in named else [error]
