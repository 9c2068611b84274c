"""The parts of a transport, made on first use: the one place where layouts, claims and the verbs are put together."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from queue_pipeline.transport.addresses.queues import NSERVICEBUS, AddressBook
from queue_pipeline.transport.claims.claim_reader import ClaimReader
from queue_pipeline.transport.claims.claim_table import ClaimTable
from queue_pipeline.transport.claims.claims import Claims
from queue_pipeline.transport.claims.completion import Completer
from queue_pipeline.transport.claims.failure_counts import FailureCounts
from queue_pipeline.transport.claims.outbox import Outbox
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import absolute
from queue_pipeline.transport.failed.failed_messages import FailedMessages
from queue_pipeline.transport.inspection.browse import Browser
from queue_pipeline.transport.layouts.layout import Layouts
from queue_pipeline.transport.layouts.nginn.endpoint import NGINN
from queue_pipeline.transport.layouts.nginn.layout import nginn_layout
from queue_pipeline.transport.layouts.nginn.queue import NGinnQueues
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings, default_nginn_settings
from queue_pipeline.transport.layouts.nginn.stored_rows import NGinnRows
from queue_pipeline.transport.layouts.nservicebus.layout import nservicebus_layout
from queue_pipeline.transport.layouts.nservicebus.rows import NServiceBusRows
from queue_pipeline.transport.layouts.nservicebus.subscriptions import Subscriptions
from queue_pipeline.transport.operations.pauses import Pauses
from queue_pipeline.transport.operations.slots import Slots
from queue_pipeline.transport.operations.user_tables import UserTables
from queue_pipeline.transport.send import Sender
from queue_pipeline.transport.settings import TransportSettings

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine


class TransportParts:
    """One object for each thing that can be done to queues, on one database."""

    def __init__(
        self,
        database: str | URL | Engine | None = None,
        *,
        schema: str | None = None,
        catalog: str | None = None,
        queue_schemas: Mapping[str, str] | None = None,
        queue_catalogs: Mapping[str, str] | None = None,
        error_queue: str = "error",
        endpoint: str | None = None,
        subscriptions_table: str | None = None,
        nginn: NGinnSettings | None = None,
    ) -> None:
        """`schema` and `catalog` are defaults for addresses; `queue_schemas` and `queue_catalogs` override them.

        `endpoint` is the queue whose `.Delayed` table takes delayed sends. `subscriptions_table` is the address of the
        table of subscriptions. `nginn` are the settings of NGinn queues, by default those of the environment.
        """
        self.database = Database(database)
        self.error_queue = error_queue
        self._settings = TransportSettings(
            self.database.url,
            schema,
            catalog,
            dict(queue_schemas or {}),
            dict(queue_catalogs or {}),
            error_queue,
            endpoint,
            subscriptions_table,
            nginn or default_nginn_settings(),
        )

    @classmethod
    def of(cls, settings: TransportSettings) -> Self:
        """The transport that another process described."""
        return cls(**vars(settings))

    @property
    def settings(self) -> TransportSettings | None:
        """What another process needs to make the same transport; None for an engine of the caller's own."""
        if not self.database.is_own:
            return None
        return replace(self._settings, database=absolute(self.database.url))

    @functools.cached_property
    def book(self) -> AddressBook:
        """Resolves addresses under this transport's defaults."""
        settings = self._settings
        return AddressBook(
            self.database.dialect,
            settings.schema,
            settings.catalog or self.database.catalog,
            settings.queue_schemas,
            settings.queue_catalogs,
            settings.nginn,
            settings.subscriptions_table,
        )

    @functools.cached_property
    def _rows(self) -> tuple[NServiceBusRows, NGinnRows]:
        settings = self._settings
        nginn_rows = NGinnRows(self.database.dialect, settings.nginn)
        return NServiceBusRows(self.database, self.book, settings.endpoint), nginn_rows

    @functools.cached_property
    def sender(self) -> Sender:
        """Sends in transactions of the caller's."""
        return Sender(self.database, self.book, dict(zip((NSERVICEBUS, NGINN), self._rows, strict=True)))

    @functools.cached_property
    def layouts(self) -> Layouts:
        """What differs between NServiceBus's tables and NGinn's."""
        database, book, (rows, nginn_rows) = self.database, self.book, self._rows
        nservicebus = nservicebus_layout(
            database, book, rows, self.sender, self.subscriptions, self.failed, self.error_queue
        )
        nginn = nginn_layout(database, book, nginn_rows, self.nginn, self.subscriptions)
        return Layouts({NSERVICEBUS: nservicebus, NGINN: nginn})

    @functools.cached_property
    def nginn(self) -> NGinnQueues:
        """What only NGinn queues have: figures by subqueue, failed messages, subscriptions."""
        return NGinnQueues(self.database, self.book, self.sender)

    @functools.cached_property
    def claims(self) -> Claims:
        """Claims, adopts, renews, completes, releases, splits and lists."""
        store = ClaimTable(self.database, self.book)
        completer = Completer(self.database, store, self.layouts, self.sender, self.outbox)
        return Claims(self.database, self.book, store, self.layouts, self.failures, completer)

    @functools.cached_property
    def outbox(self) -> Outbox:
        """Results that are staged until their claim is completed."""
        return Outbox(self.database, self.book, self.sender)

    @functools.cached_property
    def failures(self) -> FailureCounts:
        """Counts failed attempts in a row, by queue."""
        return FailureCounts(self.database, self.book)

    @functools.cached_property
    def claim_reader(self) -> ClaimReader:
        """Reads claims as Arrow record batches."""
        return ClaimReader(self.database, ClaimTable(self.database, self.book), self.layouts)

    @functools.cached_property
    def failed(self) -> FailedMessages:
        """What lies in error queues: lists, retries and discards it."""
        return FailedMessages(self.database, self.book, self.sender, self._rows[0])

    @functools.cached_property
    def browser(self) -> Browser:
        """Reads messages in pages and leaves them where they are."""
        return Browser(self.database, self.book, self.layouts)

    @functools.cached_property
    def pauses(self) -> Pauses:
        """What operators have paused."""
        return Pauses(self.database, self.book)

    @functools.cached_property
    def slots(self) -> Slots:
        """Who is at work on which queue: the slots for batches, over all machines."""
        return Slots(self.database, self.book)

    @functools.cached_property
    def subscriptions(self) -> Subscriptions:
        """Who wants which events."""
        return Subscriptions(self.database, self.book)

    @functools.cached_property
    def user_tables(self) -> UserTables:
        """Writes rows to the user's own tables, in a transaction such as that of a completion."""
        return UserTables(self.database, self.book)
