"""Resolves addresses to tables: per-queue overrides first, then the address, then the defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses.address import QueueAddress, check_name
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.layouts.nginn.endpoint import NGINN, is_endpoint, parse_endpoint
from queue_pipeline.transport.layouts.nginn.settings import VARIABLE, NGinnSettings
from queue_pipeline.transport.messages import headers as wire

NSERVICEBUS = "nservicebus"
"""The layout of the NServiceBus SQL transport, which is the folder of its statements under sql/<dialect>/."""
DELAYED_SUFFIX = "Delayed"
CLAIMED_SUFFIX = "Claimed"
CLAIMS_TABLE = "QueueClaims"
OUTBOX_TABLE = "QueueOutbox"
PAUSES_TABLE = "QueuePauses"
FAILURES_TABLE = "QueueFailures"
SLOTS_TABLE = "QueueSlots"
SUBSCRIPTIONS_TABLE = "SubscriptionRouting"
SUBSCRIPTIONS_VARIABLE = "QUEUE_PIPELINE_SUBSCRIPTIONS_TABLE"


def layout_of(address: object) -> str:
    """The layout of the queue that an address names: sql://alias/Queue is one of NGinn's."""
    return NGINN if is_endpoint(address) else NSERVICEBUS


def instance_address(endpoint: str, discriminator: str | None = None) -> QueueAddress:
    """The queue `<endpoint>.<discriminator>` of one instance; by default with this machine's name."""
    name = wire.machine_name() if discriminator is None else discriminator
    for what, text in (("endpoint", endpoint), ("discriminator", name)):
        if not text.strip():
            raise AddressError(f"the {what} of an instance queue is empty; give it a name")
        check_name(text)
    if name.lower() in (DELAYED_SUFFIX.lower(), CLAIMED_SUFFIX.lower()):
        raise AddressError(
            f"{endpoint}.{name} is a table that belongs to the queue {endpoint}; choose another discriminator"
        )
    return QueueAddress(f"{endpoint}.{name}")


@dataclass(frozen=True, slots=True)
class QueueTable:
    """A queue's table: its parts, its quoted name, and the address that peers know it by."""

    table: str
    schema: str | None
    catalog: str | None
    qualified: str = field(compare=False)
    canonical: str = field(compare=False)
    layout: str = NSERVICEBUS
    """The shape of the table, which is the folder of its statements under sql/<dialect>/."""

    def __str__(self) -> str:
        return self.canonical


@dataclass(frozen=True, slots=True)
class ClaimTables:
    """The tables that a claim on a queue touches."""

    queue: QueueTable
    claimed: QueueTable
    claims: QueueTable


@dataclass(frozen=True)
class AddressBook:
    """Knows the defaults and overrides under which an address becomes a table."""

    dialect: Dialect
    schema: str | None = None
    catalog: str | None = None
    queue_schemas: Mapping[str, str] = field(default_factory=dict)
    queue_catalogs: Mapping[str, str] = field(default_factory=dict)
    nginn: NGinnSettings = field(default_factory=NGinnSettings)
    subscriptions_table: str | None = None

    def resolve(self, queue: str | QueueAddress | QueueTable) -> QueueTable:
        """The table that an address means here."""
        if isinstance(queue, QueueTable):
            return queue
        if isinstance(queue, str) and is_endpoint(queue):
            return self._endpoint(queue)
        address = self.dialect.parse(queue) if isinstance(queue, str) else queue
        return self._table(
            address.table,
            self.queue_schemas.get(address.table) or address.schema,
            self.queue_catalogs.get(address.table) or address.catalog,
        )

    def is_local(self, endpoint: str, queue: QueueTable) -> bool:
        """Whether an endpoint that a message names is this NGinn queue; aliases aside, letters count as one case."""
        if endpoint.lower() == queue.canonical.lower():
            return True
        try:
            alias, table = parse_endpoint(endpoint)
        except AddressError:
            return False
        return alias in self.nginn.aliases and table.lower() == queue.table.lower()

    def _endpoint(self, text: str) -> QueueTable:
        """The table of an NGinn endpoint; its alias has to be known to mean this database."""
        alias, table = parse_endpoint(text)
        if alias not in self.nginn.aliases:
            known = ", ".join(self.nginn.aliases) or "none"
            raise AddressError(
                f"{text}: the alias {alias!r} is not known to mean this database (known: {known}); if it does, add it "
                f"to `aliases` in the settings of NGinn queues ({VARIABLE})"
            )
        found = self._table(table, self.queue_schemas.get(table), self.queue_catalogs.get(table))
        return replace(found, layout=NGINN, canonical=text)

    @property
    def default_schema(self) -> str | None:
        """The schema of addresses that name none."""
        return self.schema or self.dialect.default_schema

    def own(self, table: str) -> QueueTable:
        """A table of the transport's own, in the default schema."""
        return self._table(table, None, None)

    @property
    def subscriptions(self) -> QueueTable:
        """The table of subscriptions, which all endpoints have to share: as configured, else in the default schema."""
        return self.resolve(self.subscriptions_table) if self.subscriptions_table else self.own(SUBSCRIPTIONS_TABLE)

    def shared_tables(self, layout: str) -> Mapping[str, str]:
        """The tables that the queues of a layout share, and have beside those of the transport, by kind."""
        if layout != NGINN:
            return {}
        shared = {"subscriptions": self.nginn.subscriptions_table}
        return {**shared, "sequences": self.nginn.sequences_table} if self.nginn.sequences else shared

    def sibling(self, queue: QueueTable, suffix: str) -> QueueTable:
        """The table that belongs to a queue, such as `orders.Delayed`."""
        return self._table(f"{queue.table}.{suffix}", queue.schema, queue.catalog)

    def claim_tables(self, queue: QueueTable) -> ClaimTables:
        """The tables that a claim on a queue touches."""
        return ClaimTables(queue, self.sibling(queue, CLAIMED_SUFFIX), self.own(CLAIMS_TABLE))

    def check_length(self, queue: QueueTable) -> None:
        """Refuse a name that the database would cut or reject, before anything is created."""
        limit = self.dialect.longest_queue_name
        size = self.dialect.name_length(queue.table)
        if limit is not None and size > limit:
            unit = self.dialect.name_unit
            raise AddressError(
                f"queue {queue.canonical}: its name has {size} {unit}, and {self.dialect.name} leaves room for {limit} "
                f"beside the suffix .{DELAYED_SUFFIX}; choose a shorter name"
            )

    def _table(self, table: str, schema: str | None, catalog: str | None) -> QueueTable:
        self.dialect.check_table(table)
        address = QueueAddress(
            table,
            schema or self.default_schema,
            (catalog or self.catalog) if self.dialect.has_catalogs else None,
        )
        for part in (address.schema, address.catalog):
            check_name(part or "")
        return QueueTable(
            address.table,
            address.schema,
            address.catalog,
            self.dialect.qualify(address),
            self.dialect.format(address),
        )
