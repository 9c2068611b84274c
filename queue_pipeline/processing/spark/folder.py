"""The private folder of a Spark on this machine: one per project and setting.

It holds parts of messages (shuffles, spills) and the token of a warm server.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from queue_pipeline.processing.spark.settings import interpreter, spark_defaults
from queue_pipeline.transport.database.setting import home_folder
from queue_pipeline.transport.private_files import make_private_folder, user_folder, write_private_file

DISCOVERY_VARIABLE = "SPARK_LOCAL_CONNECT_DISCOVERY"
LOCAL_VARIABLE = "SPARK_LOCAL_DIRS"
OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"
"""Java's own temporary files: checkpoints of streams, what clients upload."""
DISCOVERY = "server.json"
"""The file by which Spark finds a warm server."""
ABOUT = "about.json"
LOCAL = "local"
_LOCAL_PROPERTY = "spark.local.dir"


def spark_folder(config: Mapping[str, str]) -> Path:
    """The folder of this project's Spark with these properties; another Python is another project."""
    identity = json.dumps([_project(), interpreter(), sorted(config.items())])
    return user_folder() / f"spark-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"


@contextmanager
def private_folders(config: Mapping[str, str]) -> Iterator[None]:
    """Let a Spark that is started inside the block write to its private folder, except where the user chose others."""
    chosen: dict[str, str] = {}
    if not config.get("spark.remote", "").startswith("sc://"):
        folder = spark_folder(config)
        if not _chooses_local(config):
            chosen |= temporary_files_in(folder / LOCAL)
        if "spark.remote" in config and not os.environ.get(DISCOVERY_VARIABLE):
            make_private_folder(folder)
            write_private_file(folder / ABOUT, json.dumps({"project": _project()}))
            chosen[DISCOVERY_VARIABLE] = str(folder / DISCOVERY)
    before = {name: os.environ.get(name) for name in chosen}
    os.environ.update(chosen)
    try:
        yield
    finally:
        # A process that is started later may have another setting.
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def temporary_files_in(folder: Path) -> dict[str, str]:
    """Make a private folder; returns the variables by which a Spark writes its temporary files and Java's there."""
    make_private_folder(folder)
    options = f'{os.environ.get(OPTIONS_VARIABLE, "")} "-Djava.io.tmpdir={folder}"'
    return {LOCAL_VARIABLE: str(folder), OPTIONS_VARIABLE: options.strip()}


def _project() -> str:
    return str(home_folder(os.environ).absolute())


def _chooses_local(config: Mapping[str, str]) -> bool:
    return (
        _LOCAL_PROPERTY in config
        or bool(os.environ.get(LOCAL_VARIABLE))
        or _LOCAL_PROPERTY in spark_defaults(os.environ)
    )
