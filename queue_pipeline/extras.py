"""Optional dependencies: which extra brings a package that is not installed."""

from __future__ import annotations

from importlib.util import find_spec

from queue_pipeline.transport.errors import QueuePipelineError

EXTRAS = {
    "dagster": "dagster",
    "dagster_pyspark": "dagster",
    "dagster_spark": "dagster",
    "pyspark": "spark",
    "pandas": "pandas",
    "psycopg": "postgresql",
    "pyodbc": "sqlserver",
}
"""The extra by the package that it brings."""


class MissingExtraError(QueuePipelineError, ImportError):
    """A package of an extra is not installed."""

    exit_code = 2


def missing_extra(error: ImportError, what: str) -> MissingExtraError | None:
    """The error that says what to install; None if no extra brings what is missing."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return MissingExtraError(
        f"{what} needs {package}, which is not installed; install it with: "
        f"pip install 'queue_pipeline[{EXTRAS[package]}]'",
        name=error.name,
    )


def has(*packages: str) -> bool:
    """Whether packages are installed; nothing is imported."""
    return all(find_spec(package) is not None for package in packages)
