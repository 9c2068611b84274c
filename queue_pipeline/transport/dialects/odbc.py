"""Opening ODBC connections: which driver, and what its connection string needs."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyodbc

from queue_pipeline.transport.database_url import DatabaseUrl, odbc_pairs, odbc_string
from queue_pipeline.transport.errors import DriverMissingError

# Connections are pooled by the transport itself, which knows when one is broken; a second pool underneath
# would hand broken ones back.
pyodbc.pooling = False

LOGIN_TIMEOUT_SECONDS = 15
_DISTRIBUTIONS = {
    "debian_ubuntu": ("debian", "ubuntu"),
    "rhel": ("rhel", "fedora", "centos"),
    "suse": ("suse", "opensuse", "sles"),
    "alpine": ("alpine",),
}


def open_odbc(connection_string: str) -> Any:
    """A connection that starts transactions by itself and commits only when told."""
    return pyodbc.connect(connection_string, autocommit=False, timeout=LOGIN_TIMEOUT_SECONDS)


def connection_string(url: DatabaseUrl, pairs: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    """The ODBC string of a setting; the setting's own options win over `defaults`."""
    if url.odbc is not None:
        given = url.odbc.get_secret_value()
        present = {key.lower() for key, _ in odbc_pairs(given)}
        missing = {key: value for key, value in defaults.items() if key.lower() not in present}
        return ";".join(part for part in (given.rstrip("; "), odbc_string(missing)) if part)
    # The driver that was asked for is already among the pairs, found and checked.
    options = {key: value for key, value in url.options.items() if key.lower() != "driver"}
    chosen = {key.lower() for key in options}
    merged = {key: value for key, value in {**pairs, **defaults}.items() if key.lower() not in chosen}
    return odbc_string({**merged, **options})


def find_driver(wanted: str | None, known: Sequence[str], *, database: str, install: str) -> str:
    """The driver to use: the one asked for, else the first known one that is installed."""
    installed = pyodbc.drivers()
    if wanted is not None:
        if wanted in installed or Path(wanted).is_file():
            return wanted
        raise DriverMissingError(
            f"ODBC driver {wanted!r} is not installed; installed are: {', '.join(installed) or 'none'}"
        )
    for name in known:
        if name in installed:
            return name
    raise DriverMissingError(f"no ODBC driver for {database} is installed; {install}")


def packaged_sqlserver_driver() -> str | None:
    """Microsoft's driver as shipped by the Python package mssql-python-odbc, if that is installed."""
    spec = importlib.util.find_spec("mssql_python_odbc")
    if spec is None or spec.origin is None:
        return None
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    names = f"{system.get('ID', '')} {system.get('ID_LIKE', '')}".split()
    found = Path(spec.origin).parent.rglob("libmsodbcsql*.so*")
    return fitting_driver([str(path) for path in found], names, platform.machine())


def fitting_driver(paths: Sequence[str], systems: Sequence[str], machine: str) -> str | None:
    """The one of several builds that was made for this system, by its names (own first), and for this machine."""
    machines = {"amd64": "x86_64", "aarch64": "arm64"}
    wanted = machines.get(machine.lower(), machine.lower())
    fitting = sorted(path for path in paths if wanted in Path(path).parts)
    for system in systems:
        for path in fitting:
            if system in _DISTRIBUTIONS.get(Path(path).parents[2].name, ()):
                return path
    return fitting[0] if fitting else None
