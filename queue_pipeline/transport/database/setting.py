"""The one setting that names a database: a URL of SQLAlchemy's, checked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from queue_pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from sqlalchemy import URL

ENVIRONMENT_VARIABLE = "QUEUE_PIPELINE_DATABASE"
FORMS = "sqlite:///path, postgresql://user:password@host:port/db or mssql://user:password@host:port/db"

_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "postgresql+pyodbc": "postgresql+pyodbc",
    "mssql": "mssql+pyodbc",
    "mssql+pyodbc": "mssql+pyodbc",
}
"""What a setting may begin with, and the driver that it means."""
_FILE = "a SQLite database is named by its file: sqlite:///relative/path.db or sqlite:////absolute/path.db"
_ODBC = "odbc_connect"
"""The option that holds a whole ODBC connection string."""
_OWN_OPTIONS = frozenset(
    ("autocommit", "prepare_threshold", "cursor_factory", "row_factory", "context", "ansi", "unicode_results")
)
"""What `connect` of the Python drivers takes; every other option goes to libpq or to the ODBC driver."""
_SECRET_NAME = re.compile("pwd|password|secret|token", re.IGNORECASE)
_ODBC_SECRET = re.compile(r"(?:pwd|password)\s*=\s*(?:\{((?:[^}]|\}\})*)\}|([^;]*))", re.IGNORECASE)


def database_url(text: str | URL) -> URL:
    """Read a database setting; a mistake is named without repeating the password."""
    # The command line reads its options without loading SQLAlchemy.
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    scheme = text.drivername if not isinstance(text, str) else text.partition(":")[0] if ":" in text else None
    if scheme not in _DRIVERS:
        known = "the database setting has no scheme" if scheme is None else f"unknown database scheme {scheme!r}"
        raise ConfigurationError(f"{known}; use {FORMS}")
    try:
        url = make_url(text).set(drivername=_DRIVERS[scheme])
    except (ArgumentError, ValueError):
        raise ConfigurationError(_FILE if scheme.startswith("sqlite") else _unreadable(scheme)) from None
    if scheme.startswith("sqlite"):
        _check_file(url)
        return url
    _check_options(url, scheme)
    if _ODBC not in url.query:
        _check_server(url, scheme)
    return url


def default_database_url(environment: Mapping[str, str] | None = None) -> URL:
    """What the environment names, else a SQLite file under the Dagster home, else under `.queue_pipeline/`."""
    from sqlalchemy import URL

    environment = os.environ if environment is None else environment
    if named := environment.get(ENVIRONMENT_VARIABLE):
        return database_url(named)
    return URL.create("sqlite", database=str(home_folder(environment) / "queues.db"))


def home_folder(environment: Mapping[str, str]) -> Path:
    """Where a project keeps its own files: under the Dagster home, else in `.queue_pipeline/` where it runs."""
    home = environment.get("DAGSTER_HOME")
    return Path(home) / "queue_pipeline" if home else Path(".queue_pipeline")


def absolute(url: URL) -> URL:
    """The same database for a process in another folder."""
    if url.get_backend_name() != "sqlite" or url.database is None:
        return url
    return url.set(database=os.path.abspath(url.database))


def shown(url: URL) -> str:
    """The setting for people: without its password, and without options, which may hold secrets, too."""
    return url.set(query={}).render_as_string(hide_password=True)


def secrets(url: URL) -> tuple[str, ...]:
    """Texts that must never reach a log or an error."""
    found = [str(url.password)] if url.password else []
    for name, value in url.query.items():
        values = [value] if isinstance(value, str) else list(value)
        if name == _ODBC:
            found += [braced.replace("}}", "}") or plain for braced, plain in _ODBC_SECRET.findall(values[0])]
        elif _SECRET_NAME.search(name):
            found += values
    return tuple(secret for secret in found if secret)


def _check_file(url: URL) -> None:
    if url.host or not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise ConfigurationError(_FILE)


def _check_server(url: URL, scheme: str) -> None:
    if "@" in (url.host or ""):
        # What stands before it is a part of the password.
        raise ConfigurationError(_unreadable(scheme))
    for part, given in (("host", url.host or url.query.get("host")), ("database", url.database)):
        if not given:
            raise ConfigurationError(f"the {scheme} setting names no {part}; write it as {_example(scheme)}")
    if url.port is not None and not 0 < url.port < 65536:
        raise ConfigurationError(f"the {scheme} setting names port {url.port}; ports are between 1 and 65535")


def _check_options(url: URL, scheme: str) -> None:
    if own := sorted(_OWN_OPTIONS.intersection(url.query)):
        raise ConfigurationError(f"the {scheme} setting has the option {own[0]}, which the transport sets; remove it")
    encoding = url.query.get("client_encoding", "utf8")
    if str(encoding).lower().replace("-", "") != "utf8":
        raise ConfigurationError(
            f"the {scheme} setting has client_encoding={encoding}; messages are UTF-8: leave the option out"
        )


def _example(scheme: str) -> str:
    return f"{scheme}://user:password@host:port/db"


def _unreadable(scheme: str) -> str:
    return (
        f"the {scheme} setting cannot be read; write it as {_example(scheme)}, "
        "with special characters of the password percent-encoded"
    )
