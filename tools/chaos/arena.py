"""An arena: the queues and tables of one layout on one database, through which numbered messages flow.

Messages pass two stages, at each of which all kinds of workers compete, and end in `results` or as failed messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import sqlalchemy as sa

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from tools.chaos.plan import Plan

RESULTS, COPIES, ERRORS, OUTGOING = "results", "copies", "error", "outgoing"
EVENT = "Chaos.Happened"
_ALIAS = "chaos"
_NGINN_WAITS = (0.2, 0.2, 0.4, 0.4)


@dataclass(frozen=True)
class Arena:
    """Where it is and how it is reached; small, so that every worker gets a copy."""

    name: str
    urls: tuple[str, ...]
    """Workers draw one: drivers, and a way through the proxy. The first is the direct way."""
    schema: str | None
    is_nginn: bool
    seed: int

    @property
    def stages(self) -> tuple[str, ...]:
        """The queues at which workers compete."""
        return (f"sql://{_ALIAS}/First", f"sql://{_ALIAS}/Second") if self.is_nginn else ("first", "second")

    def next_queue(self, stage: int) -> str:
        """Where a message goes that passed a stage."""
        return (*self.stages, RESULTS)[stage + 1]

    @property
    def with_delays(self) -> tuple[str, ...]:
        """The queues with delayed messages, which movers look at."""
        return (*self.stages, OUTGOING) if self.is_nginn else self.stages

    @property
    def plan(self) -> Plan:
        """The content of its messages."""
        return Plan(self.seed, self.is_nginn)

    def transport(self, url: str | None = None) -> QueueTransport:
        """A transport over one of its ways, by default the direct one."""
        nginn = NGinnSettings(aliases=(_ALIAS,), endpoint=f"sql://{_ALIAS}/Sender", retry_seconds=_NGINN_WAITS)
        endpoint = OUTGOING if self.is_nginn else self.stages[0]
        return QueueTransport(
            url or self.urls[0], schema=self.schema, endpoint=endpoint, error_queue=ERRORS, nginn=nginn
        )

    @cached_property
    def tables(self) -> OwnTables:
        """The tables that are not queues."""
        return OwnTables(self.schema)

    def install(self) -> None:
        """Create the queues, the subscriptions and the tables."""
        with self.transport() as transport:
            if self.schema is not None:
                with transport.database.engine.begin() as connection:
                    connection.execute(sa.schema.CreateSchema(self.schema, if_not_exists=True))
            transport.install(*self.with_delays, plain_queues=[RESULTS, COPIES, ERRORS])
            self.tables.metadata.create_all(transport.database.engine)
            if not self.is_nginn:
                transport.subscriptions.subscribe("Flow", EVENT, self.stages[0])
                transport.subscriptions.subscribe("Copies", EVENT, COPIES)

    def remove(self) -> None:
        """Drop its schema, if it has one."""
        if self.schema is None:
            return
        with self.transport() as transport:
            found = sa.MetaData(self.schema)
            found.reflect(transport.database.engine)
            found.drop_all(transport.database.engine)
            with transport.database.engine.begin() as connection:
                connection.execute(sa.schema.DropSchema(self.schema))


class OwnTables:
    """What was sent, written by the transaction that sends; and the rows that workers write beside their results."""

    def __init__(self, schema: str | None) -> None:
        self.metadata = sa.MetaData(schema)
        self.sent = sa.Table(
            "chaos_sent",
            self.metadata,
            sa.Column("first_number", sa.BigInteger, primary_key=True, autoincrement=False),
            sa.Column("messages", sa.Integer, nullable=False),
            sa.Column("kind", sa.String(20), nullable=False),
        )
        self.effects = sa.Table(
            "chaos_effects",
            self.metadata,
            sa.Column("number", sa.BigInteger, nullable=False),
            sa.Column("stage", sa.Integer, nullable=False),
        )
