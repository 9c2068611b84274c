"""The databases that the transport speaks to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlite import Sqlite
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer

if TYPE_CHECKING:
    from sqlalchemy import URL

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (SqlServer(), PostgreSql(), Sqlite())}
"""By the name of the folder in `sql/`."""
_BACKENDS = {"sqlite": "sqlite", "postgresql": "postgresql", "mssql": "sqlserver"}
"""What SQLAlchemy calls them."""


def dialect_of(url: URL) -> Dialect:
    """The dialect of the database that a setting names."""
    backend = url.get_backend_name()
    if backend not in _BACKENDS:
        raise ConfigurationError(f"{backend} is not known; known are {', '.join(_BACKENDS)}")
    return DIALECTS[_BACKENDS[backend]]
