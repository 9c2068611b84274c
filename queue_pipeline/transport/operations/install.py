"""Install: the tables of a queue, made once by an account that may create tables; run time needs none of this."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from queue_pipeline.errors import AlreadyExistsError, ConfigurationError, QueuePipelineError
from queue_pipeline.transport.addresses.queues import (
    CLAIMS_TABLE,
    DELAYED_SUFFIX,
    FAILURES_TABLE,
    OUTBOX_TABLE,
    PAUSES_TABLE,
    SLOTS_TABLE,
    SUBSCRIPTIONS_TABLE,
    AddressBook,
    QueueTable,
)
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.transaction import Transaction


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """What to create beside the queue, and how."""

    heap: bool = False
    body_string: bool = False
    grant_to: str | None = None


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One table to be there at the end, and the statements that create it."""

    table: QueueTable
    commands: tuple[Command, ...]
    body_string: tuple[Command, Command] | None = None
    """The statement that adds the body as text, and the one that finds whether that was done already."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What an installation found and made."""

    table: str
    created: bool


def steps(
    book: AddressBook, queues: list[QueueTable], plain_queues: list[QueueTable], options: InstallOptions
) -> list[InstallStep]:
    """Everything to create: full queues, plain ones (error, audit: a table and no more), and the shared tables."""
    dialect = book.dialect
    if options.heap and not dialect.has("nservicebus/schema.create_queue_heap"):
        raise ConfigurationError(f"a heap is a choice of SQL Server's; leave --heap out on {dialect.name}")
    if options.grant_to and not dialect.has("schema.grant"):
        raise ConfigurationError(f"{dialect.name} has no accounts; leave --grant-to out")
    made: list[InstallStep] = []
    for queue in [*queues, *plain_queues]:
        book.check_length(queue)
        made.append(_queue_step(dialect, queue, options))
        if queue in plain_queues:
            continue
        delayed, claimed = book.sibling(queue, DELAYED_SUFFIX), book.claim_tables(queue).claimed
        # A layout without a statement for a table has no such table.
        if dialect.has(f"{queue.layout}/schema.create_delayed"):
            due_index = dialect.quote(f"{delayed.table}_Due")
            create = dialect.statement(f"{queue.layout}/schema.create_delayed", delayed=delayed, due_index=due_index)
            made.append(_step(dialect, delayed, create, options))
        claimed_index = dialect.quote(f"{claimed.table}_id")
        create = dialect.statement(
            f"{queue.layout}/schema.create_claimed", claimed=claimed, claimed_index=claimed_index
        )
        made.append(_step(dialect, claimed, create, options))
    for layout in dict.fromkeys(queue.layout for queue in (*queues, *plain_queues)):
        for key, name in book.shared_tables(layout).items():
            names: dict[str, QueueTable | str] = {key: book.own(name), "key_index": dialect.quote(f"PK_{name}")}
            create = dialect.statement(f"{layout}/schema.create_{key}", **names)
            made.append(_step(dialect, book.own(name), create, options))
    if not queues:
        return made
    shared = [
        ("claims", CLAIMS_TABLE),
        ("outbox", OUTBOX_TABLE),
        ("pauses", PAUSES_TABLE),
        ("failures", FAILURES_TABLE),
        ("slots", SLOTS_TABLE),
        ("subscriptions", SUBSCRIPTIONS_TABLE),
    ]
    for key, name in shared:
        table = book.subscriptions if key == "subscriptions" else book.own(name)
        index = dialect.quote(f"{name}_Queue")
        names = {key: table, f"{key}_index": index}
        create = dialect.statement(f"schema.create_{key}", **names)
        made.append(_step(dialect, table, create, options))
    return made


def script(dialect: Dialect, made: list[InstallStep]) -> str:
    """The same DDL as a file that a DBA can read and run."""
    parts = []
    for step in made:
        parts.append(f"-- {step.table.canonical}")
        commands = (*step.commands, step.body_string[0]) if step.body_string else step.commands
        for command in commands:
            parts.append(f"-- {command.section}\n{command.script.rstrip(';')};{dialect.script_separator}")
    return "\n".join(parts).rstrip() + "\n"


def run_steps(database: Database, made: list[InstallStep]) -> Iterator[Installed]:
    """Create what is missing, safely beside other installers, .NET ones included; what exists is left unchanged."""
    for step in made:
        create = functools.partial(_create, database.dialect, step)
        try:
            try:
                created = database.run(create)
            except AlreadyExistsError:
                # An installer that does not take our lock was quicker; what is missing is created now.
                created = database.run(create)
        except QueuePipelineError as error:
            error.add_note(f"while creating {step.table.canonical}")
            raise
        yield Installed(step.table.canonical, created)


def _create(dialect: Dialect, step: InstallStep, transaction: Transaction) -> bool:
    """Create what is missing of one step; returns whether that was the table."""
    lock = dialect.installer_lock(step.table.qualified)
    if lock is not None and transaction.count(dialect.statement("schema.lock", queue=step.table), lock=lock) < 0:
        raise QueuePipelineError(f"another installer holds the lock of {step.table.canonical}; try again")
    created = not transaction.rows(dialect.statement("schema.exists", queue=step.table))
    commands = list(step.commands)
    if step.body_string is not None and (created or not transaction.rows(step.body_string[1])):
        commands.append(step.body_string[0])
    for command in commands:
        for statement in dialect.split_script(command.text):
            transaction.execute(Command(statement, step.table.canonical))
    return created


def _queue_step(dialect: Dialect, queue: QueueTable, options: InstallOptions) -> InstallStep:
    layout = queue.layout
    heap = options.heap and dialect.has(f"{layout}/schema.create_queue_heap")
    indexes = {
        "expires_index": dialect.quote(f"{queue.table}_Expires"),
        "subqueue_index": dialect.quote(f"IDX_{queue.table}_subqueue_retry_time"),
        "key_index": dialect.quote(f"PK_{queue.table}"),
    }
    create = f"{layout}/schema.create_queue{'_heap' if heap else ''}"
    commands = [dialect.statement(create, queue=queue, **indexes)]
    if options.grant_to:
        schema = dialect.quote(queue.schema or "")
        names = {
            "schema": schema,
            "row_version_sequence": f"{schema}.{dialect.quote(f'{queue.table}_seq_seq')}",
            "id_sequence": f"{schema}.{dialect.quote(f'{queue.table}_id_seq')}",
            "account": dialect.quote(options.grant_to),
        }
        commands.append(dialect.statement(f"{layout}/schema.grant", queue=queue, **names))
    body_string = None
    if options.body_string and dialect.has(f"{layout}/schema.add_body_string"):
        body_string = (
            dialect.statement(f"{layout}/schema.add_body_string", queue=queue),
            dialect.statement(f"{layout}/schema.body_string_exists", queue=queue),
        )
    return InstallStep(queue, tuple(commands), body_string)


def _step(dialect: Dialect, table: QueueTable, create: Command, options: InstallOptions) -> InstallStep:
    commands = [create]
    if options.grant_to:
        schema, account = dialect.quote(table.schema or ""), dialect.quote(options.grant_to)
        commands.append(dialect.statement("schema.grant", table=table, schema=schema, account=account))
    return InstallStep(table, tuple(commands))
