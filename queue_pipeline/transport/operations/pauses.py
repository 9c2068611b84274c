"""Pauses: what an operator has stopped, kept in the database so that every process of every machine sees it."""

from __future__ import annotations

from dataclasses import dataclass

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.queues import PAUSES_TABLE, AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.texts import storable

LONGEST_NAME = 200
LONGEST_REASON = 1_000


@dataclass(frozen=True, slots=True)
class Pause:
    """Something that stands still: since when on the database's clock, who stopped it and why."""

    name: str
    since_seconds: float
    by: str
    reason: str


class Pauses:
    """Pause, resume and list; what a name stands for is up to the caller."""

    def __init__(self, database: Database, book: AddressBook) -> None:
        self._database = database
        self._book = book

    def pause(self, name: str, by: str, reason: str = "") -> bool:
        """Pause something; False when it is paused already, whose reason then stays as it was first given."""
        check_pause(name, by, reason)
        values = {"name": name, "by": storable(by), "reason": storable(reason)}
        command = self._statement("pause_add")
        return self._database.count(command, **values) == 1

    def resume(self, name: str) -> bool:
        """Resume something; False when it was not paused."""
        command = self._statement("pause_remove")
        return self._database.count(command, name=name) == 1

    def list(self) -> dict[str, Pause]:
        """Everything that is paused, by name."""
        command = self._statement("pause_list")
        rows = self._database.rows(command)
        return {name: Pause(name, milliseconds / 1000, by, reason) for name, milliseconds, by, reason in rows}

    def _statement(self, name: str) -> Command:
        return self._database.dialect.statement(f"operations.{name}", pauses=self._book.own(PAUSES_TABLE))


def check_pause(name: str, by: str, reason: str) -> None:
    """Refuse what the table could not hold."""
    if not 0 < len(name) <= LONGEST_NAME or name != storable(name):
        raise ConfigurationError(f"a pause of {name!r}: give a name of 1 to {LONGEST_NAME} characters of Unicode")
    if not 0 < len(by) <= LONGEST_NAME:
        raise ConfigurationError(f"pause of {name}: say in 1 to {LONGEST_NAME} characters who pauses it")
    if len(reason) > LONGEST_REASON:
        raise ConfigurationError(
            f"pause of {name}: a reason of {len(reason)} characters; say it in at most {LONGEST_REASON}"
        )
