"""Where the demo keeps everything: one folder that can be thrown away, and one demo in it at a time."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.spark import warm_server as warm_spark
from queue_pipeline.processing.spark.folder import DISCOVERY_VARIABLE
from queue_pipeline.processing.spark.settings import DEFAULT
from queue_pipeline.processing.spark.settings import ENVIRONMENT_VARIABLE as SPARK_VARIABLE
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE as DATABASE_VARIABLE
from queue_pipeline.transport.private_files import make_private_folder
from tools.processes import occupied

KEEP_VARIABLE, KEEP_DAYS = "QUEUE_PIPELINE_KEEP_DAYS", "7"
DAGSTER_YAML = """\
# Written by scripts/demo. docs/operations.md says what each of these is for.
telemetry: {enabled: false}
nux: {enabled: false}
run_coordinator:
  module: dagster.core.run_coordinator
  class: DefaultRunCoordinator
sensors: {use_threads: true, num_workers: 4}
run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60}
retention:
  sensor: {purge_after_days: {skipped: 1, success: 7, failure: 7}}
  schedule: {purge_after_days: {skipped: 1, success: 7, failure: 7}}
"""


class DemoError(QueuePipelineError):
    """The demo cannot go on."""


@dataclass(frozen=True, slots=True)
class Workplace:
    """The demo's folder, and the environment of what it starts."""

    folder: Path

    @property
    def database(self) -> str:
        """The embedded queues."""
        return f"sqlite:///{self.folder / 'queues.db'}"

    @property
    def discovery(self) -> Path:
        """The file about the demo's own Spark server."""
        return self.folder / "spark" / "connect.json"

    @property
    def dagster_home(self) -> Path:
        """Dagster's own files."""
        return self.folder / "dagster"

    @property
    def has_storage(self) -> bool:
        """Whether Dagster was started here before."""
        return (self.dagster_home / "history" / "runs.db").is_file()

    def log(self, name: str) -> Path:
        """What a program says that the demo starts."""
        return self.folder / f"{name}.log"

    def prepare(self) -> None:
        """Make what has to be there."""
        make_private_folder(self.dagster_home)
        make_private_folder(self.discovery.parent)
        (self.dagster_home / "dagster.yaml").write_text(DAGSTER_YAML)

    def clear(self) -> None:
        """Throw away what earlier demos left, and nothing that is not theirs."""
        for name in ("dagster", "spark"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for pattern in ("queues.db*", "*.log"):
            for path in self.folder.glob(pattern):
                path.unlink()

    def end_spark(self) -> None:
        """End the demo's own server, also one that an earlier demo kept, and forget about it."""
        if warm_spark.find(self.discovery) is not None:
            warm_spark.end(self.discovery)
        self.discovery.unlink(missing_ok=True)

    def occupied(self) -> AbstractContextManager[None]:
        """Keep a second demo out: it would share queues and runs with this one, and end its processes."""
        advice = "end it with Ctrl-C there, or name another --folder"
        return occupied(self.folder, DemoError(f"a demo is running in {self.folder} already; {advice}"))

    def owns_spark(self, environment: Mapping[str, str]) -> bool:
        """Whether Spark is a server of the demo's own; one that the environment names is used and left alone."""
        return DISCOVERY_VARIABLE not in environment and keeps_warm(environment)

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """What the demo's programs see: its own database, Dagster and Spark, and no warnings about Dagster's plans."""
        made = {
            **given,
            DATABASE_VARIABLE: self.database,
            "DAGSTER_HOME": str(self.dagster_home),
            "QUEUE_PIPELINE_AUTOSTART": "1",
            "PYTHONWARNINGS": "ignore",
            "PYTHONUNBUFFERED": "1",
        }
        made.setdefault(DISCOVERY_VARIABLE, str(self.discovery))
        made.setdefault(KEEP_VARIABLE, KEEP_DAYS)
        return made


def keeps_warm(environment: Mapping[str, str]) -> bool:
    """Whether the setting is one that keeps a local server."""
    return (environment.get(SPARK_VARIABLE) or DEFAULT).startswith("warm:")


def project_folder() -> Path:
    """The checkout, whose workspace.yaml Dagster loads."""
    folder = Path(__file__).resolve().parents[2]
    if not (folder / "workspace.yaml").is_file():
        raise DemoError("the demo runs from a checkout of the project: scripts/demo")
    return folder
