"""The one setting that names a database.

`sqlite:///path`, `postgresql://user:password@host:port/db?option=value` (through psycopg; through ODBC as
`postgresql+pyodbc://…`), `mssql://user:password@host:port/db?option=value`, or `odbc:<a whole ODBC connection string>`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast, get_args
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from queue_pipeline.transport.errors import ConfigurationError

ENVIRONMENT_VARIABLE = "QUEUE_PIPELINE_DATABASE"
FORMS = (
    "sqlite:///path, postgresql://user:password@host:port/db, mssql://user:password@host:port/db "
    "or odbc:<connection string>"
)

_SECRET_OPTIONS = ("pwd", "password")
# Those of further keys, such as sslpassword.
_SECRET_NAME = re.compile("pwd|password|secret", re.IGNORECASE)

Scheme = Literal["sqlite", "postgresql", "postgresql+pyodbc", "mssql", "odbc"]


class DatabaseUrl(BaseModel):
    """Where the queues live. Printing it never shows the password."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scheme: Scheme
    path: str | None = Field(default=None, description="the SQLite file")
    host: str | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    user: str | None = None
    password: SecretStr | None = None
    database: str | None = None
    options: dict[str, str] = Field(default_factory=dict, repr=False, description="options for the driver")
    odbc: SecretStr | None = Field(default=None, description="a whole ODBC connection string")

    def __str__(self) -> str:
        """The setting with its secrets left out."""
        if self.scheme == "sqlite":
            return f"sqlite:///{self.path}"
        if self.scheme == "odbc":
            return "odbc:***"
        user = f"{quote(self.user, safe='')}{':***' if self.password else ''}@" if self.user else ""
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        port = f":{self.port}" if self.port else ""
        return f"{self.scheme}://{user}{host}{port}/{self.database or ''}"

    @property
    def driver(self) -> str | None:
        """The ODBC driver that the setting asks for."""
        return next((value for name, value in self.options.items() if name.lower() == "driver"), None)

    def secrets(self) -> tuple[str, ...]:
        """Texts that must never reach a log or an error."""
        found = [self.password.get_secret_value()] if self.password else []
        found += [value for name, value in self.options.items() if _SECRET_NAME.search(name)]
        if self.odbc:
            pairs = odbc_pairs(self.odbc.get_secret_value())
            found += [value for key, value in pairs if key.lower() in _SECRET_OPTIONS]
        return tuple(secret for secret in found if secret)


def parse_database_url(text: str) -> DatabaseUrl:
    """Read a database setting; a mistake is named without repeating the password."""
    scheme, separator, rest = text.partition(":")
    if not separator or scheme not in get_args(Scheme):
        known = f"unknown database scheme {scheme!r}" if separator else "the database setting has no scheme"
        raise ConfigurationError(f"{known}; use {FORMS}")
    if scheme == "odbc":
        if not odbc_pairs(rest):
            raise ConfigurationError(
                "odbc: needs a connection string, such as odbc:DRIVER={PostgreSQL Unicode};SERVER=…"
            )
        return DatabaseUrl(scheme="odbc", odbc=SecretStr(rest))
    if scheme == "sqlite":
        return _parse_sqlite(rest)
    return _parse_server(text, cast("Scheme", scheme))


def default_database_url(environment: Mapping[str, str] | None = None) -> DatabaseUrl:
    """What the environment names, else a SQLite file under the Dagster home, else under `.queue_pipeline/`."""
    environment = os.environ if environment is None else environment
    if named := environment.get(ENVIRONMENT_VARIABLE):
        return parse_database_url(named)
    home = environment.get("DAGSTER_HOME")
    folder = Path(home) / "queue_pipeline" if home else Path(".queue_pipeline")
    return DatabaseUrl(scheme="sqlite", path=str(folder / "queues.db"))


def odbc_pairs(connection_string: str) -> list[tuple[str, str]]:
    """The key/value pairs of an ODBC connection string, braces removed."""
    pairs: list[tuple[str, str]] = []
    position = 0
    while position < len(connection_string):
        equals = connection_string.find("=", position)
        if equals < 0:
            break
        key = connection_string[position:equals].strip(" ;")
        start = equals + 1
        if connection_string.startswith("{", start):
            value, position = _braced(connection_string, start)
        else:
            end = connection_string.find(";", start)
            position = len(connection_string) if end < 0 else end + 1
            value = connection_string[start : end if end >= 0 else None]
        pairs.append((key, value))
    return pairs


def odbc_string(pairs: Mapping[str, str]) -> str:
    """An ODBC connection string in which every value survives, whatever it contains."""
    return ";".join(f"{key}={_brace(value)}" for key, value in pairs.items())


def _brace(value: str) -> str:
    plain = value.replace(" ", "").replace(".", "").replace("-", "").replace("_", "").replace("/", "").isalnum()
    return value if plain or value == "" else "{" + value.replace("}", "}}") + "}"


def _braced(text: str, start: int) -> tuple[str, int]:
    position, value = start + 1, ""
    while position < len(text):
        if text[position] == "}":
            if text.startswith("}}", position):
                value, position = value + "}", position + 2
                continue
            end = text.find(";", position)
            return value, len(text) if end < 0 else end + 1
        value, position = value + text[position], position + 1
    raise ConfigurationError("the ODBC connection string opens a brace that it never closes")


def _parse_sqlite(rest: str) -> DatabaseUrl:
    if not rest.startswith("///") or len(rest) == 3:
        raise ConfigurationError(
            "a SQLite database is named by its file: sqlite:///relative/path.db or sqlite:////absolute/path.db"
        )
    return DatabaseUrl(scheme="sqlite", path=unquote(rest[3:]))


def _parse_server(text: str, scheme: Scheme) -> DatabaseUrl:
    example = f"{scheme}://user:password@host:port/db"
    try:
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        # A password among the options is a password all the same.
        named = {key: options.pop(key) for key in list(options) if key.lower() in _SECRET_OPTIONS}
        secret = next(iter(named.values()), None) or (unquote(parts.password) if parts.password else None)
        url = DatabaseUrl(
            scheme=scheme,
            host=parts.hostname,
            port=parts.port,
            user=unquote(parts.username) if parts.username else None,
            password=SecretStr(secret) if secret else None,
            database=unquote(parts.path.lstrip("/")) or None,
            options=options,
        )
    except (ValueError, ValidationError):
        raise ConfigurationError(
            f"the {scheme} setting cannot be read; write it as {example}, "
            "with special characters of the password percent-encoded"
        ) from None
    if not url.host:
        raise ConfigurationError(f"the {scheme} setting names no host; write it as {example}")
    if not url.database:
        raise ConfigurationError(f"the {scheme} setting names no database; write it as {example}")
    return url
