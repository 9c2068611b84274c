"""What makes a transport, as a value that other processes can make the same one of; its secrets are never printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from queue_pipeline.transport.database.setting import shown
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings

if TYPE_CHECKING:
    from sqlalchemy import URL


@dataclass(frozen=True)
class TransportSettings:
    """The settings of a transport; pickled, it carries the password, printed it does not."""

    database: URL
    schema: str | None = None
    catalog: str | None = None
    queue_schemas: Mapping[str, str] = field(default_factory=dict)
    queue_catalogs: Mapping[str, str] = field(default_factory=dict)
    error_queue: str = "error"
    endpoint: str | None = None
    subscriptions_table: str | None = None
    nginn: NGinnSettings = field(default_factory=NGinnSettings)

    def __repr__(self) -> str:
        return f"TransportSettings({shown(self.database)})"
