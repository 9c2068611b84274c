"""Which ODBC driver a setting uses: the one it names, else the best that is installed."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import URL

from queue_pipeline.errors import DriverMissingError

SQLSERVER_DRIVERS = ("ODBC Driver 18 for SQL Server", "ODBC Driver 17 for SQL Server", "FreeTDS")
POSTGRESQL_DRIVERS = ("PostgreSQL Unicode", "PostgreSQL Unicode(x64)", "PostgreSQL")
_INSTALL = {
    "mssql": "install it with: pip install 'queue_pipeline[sqlserver]', or install Debian's tdsodbc",
    "postgresql": "install Debian's odbc-postgresql, or use psycopg by a setting that begins with postgresql://",
}
_DISTRIBUTIONS = {
    "debian_ubuntu": ("debian", "ubuntu"),
    "rhel": ("rhel", "fedora", "centos"),
    "suse": ("suse", "opensuse", "sles"),
    "alpine": ("alpine",),
}


def with_driver(url: URL) -> URL:
    """The setting with the ODBC driver that it needs; others, and whole ODBC strings, as they are."""
    if not url.drivername.endswith("+pyodbc"):
        return url
    import pyodbc

    # SQLAlchemy's pool knows when a connection is broken; a second pool underneath would hand broken ones back.
    pyodbc.pooling = False
    if "odbc_connect" in url.query or "dsn" in url.query:
        return url
    backend = url.get_backend_name()
    known = SQLSERVER_DRIVERS if backend == "mssql" else POSTGRESQL_DRIVERS
    wanted = next((str(value) for name, value in url.query.items() if name.lower() == "driver"), None)
    packaged = packaged_sqlserver_driver() if backend == "mssql" and wanted is None else None
    driver = packaged or find_driver(wanted, known, pyodbc.drivers(), _INSTALL[backend])
    url = url.difference_update_query([name for name in url.query if name.lower() == "driver"])
    if driver == "FreeTDS" and "port" not in url.query:
        url = url.update_query_dict({"port": str(url.port or 1433), "TDS_Version": "7.4"})
    return url.update_query_dict({"driver": driver})


def find_driver(wanted: str | None, known: Sequence[str], installed: Sequence[str], install: str) -> str:
    """The driver to use: the one asked for, else the first known one that is installed."""
    if wanted is not None:
        if wanted in installed or Path(wanted).is_file():
            return wanted
        raise DriverMissingError(
            f"ODBC driver {wanted!r} is not installed; installed are: {', '.join(installed) or 'none'}"
        )
    for name in known:
        if name in installed:
            return name
    raise DriverMissingError(f"none of the ODBC drivers {', '.join(known)} is installed; {install}")


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
