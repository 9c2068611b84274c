"""Optional dependencies: which extra brings a package that is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from queue_pipeline.errors import QueuePipelineError

EXTRAS = {
    "dagster": "dagster",
    "pyspark": "spark",
    "pandas": "pandas",
    "pyarrow": "arrow",
}
"""The extra by the package that it brings; missing drivers of databases are reported with the setting."""


class MissingExtraError(QueuePipelineError, ImportError):
    """A package of an extra is not installed."""

    exit_code = 2


@contextmanager
def needed_by(what: str, extra: str | None = None) -> Iterator[None]:
    """Imports of optional packages, which `what` needs; a missing one is an error that names its extra.

    `extra` is the one that brings all that `what` needs, where that is more than one package.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except ImportError as error:
        if (package := (error.name or "").partition(".")[0]) not in EXTRAS:
            raise
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed; install it with: "
            f"pip install 'queue_pipeline[{extra or EXTRAS[package]}]'",
            name=error.name,
        ) from error


def has(*packages: str) -> bool:
    """Whether packages are installed; nothing is imported."""
    return all(find_spec(package) is not None for package in packages)
