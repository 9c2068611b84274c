"""The session: what was typed before the command, and the transport that every command gets from it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from queue_pipeline.errors import ConfigurationError, QueueNotFoundError
from queue_pipeline.transport.addresses.address import QueueAddress, double_quote, parse_postgresql
from queue_pipeline.transport.database.setting import database_url, default_database_url, secrets
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings, default_nginn_settings, parse_nginn_settings
from queue_pipeline.transport.transport import QueueTransport

if TYPE_CHECKING:
    from sqlalchemy import URL

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_ERROR_QUEUE = "error"


@dataclass
class Session:
    """The global options. It exists before anything is parsed, so that an early error knows its form."""

    database: str | None = None
    schema: str | None = None
    catalog: str | None = None
    error_queue: str = DEFAULT_ERROR_QUEUE
    nginn: str | None = None
    subscriptions_table: str | None = None
    json: bool = False
    debug: bool = False

    def url(self) -> URL:
        """The database that was named, by option or environment, else the default."""
        return default_database_url() if self.database is None else database_url(self.database)

    def nginn_settings(self) -> NGinnSettings:
        """The settings of NGinn queues, by option or environment."""
        return default_nginn_settings() if self.nginn is None else parse_nginn_settings(self.nginn)

    def secrets(self) -> tuple[str, ...]:
        """Texts that must never be printed; none are known of a setting that cannot be read."""
        try:
            return secrets(self.url())
        except ConfigurationError:
            return ()

    @contextlib.contextmanager
    def transport(self) -> Iterator[QueueTransport]:
        """A transport for one command, closed at its end."""
        with QueueTransport(
            self.url(),
            schema=self.schema,
            catalog=self.catalog,
            error_queue=self.error_queue,
            nginn=self.nginn_settings(),
            subscriptions_table=self.subscriptions_table,
        ) as transport:
            try:
                yield transport
            except QueueNotFoundError as error:
                if transport.database.dialect.dots_end_schemas:
                    add_quoting_hint(error, parse_postgresql(error.queue), transport.book.default_schema)
                raise


def add_quoting_hint(error: Exception, address: QueueAddress, default_schema: str | None) -> None:
    """Say how a table with a dot in its name is written, where the dot was read as the end of a schema."""
    if address.schema and address.schema != default_schema:
        quoted = shlex.quote(double_quote(f"{address.schema}.{address.table}"))
        error.add_note(f"the part before the dot was read as a schema; if the dot belongs to the name, write {quoted}")


def shared_options(command: F) -> F:
    """`--json` and `--debug`, which are understood before and after the command's name."""

    def remember(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            setattr(context.ensure_object(Session), str(parameter.name), True)

    command = click.option(
        "--debug", is_flag=True, expose_value=False, callback=remember, help="Show the traceback of an error."
    )(command)
    return click.option(
        "--json", is_flag=True, expose_value=False, callback=remember, help="Print one JSON document on stdout."
    )(command)


def with_session(command: F) -> F:
    """The shared options, and the session as the first argument."""
    return shared_options(click.make_pass_decorator(Session)(command))  # type: ignore[return-value]
