"""The deployed project: a package that can be changed while it runs, a Dagster home, and the environment of both."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from queue_pipeline.orchestration.definitions import AUTOSTART_VARIABLE
from queue_pipeline.orchestration.sensors import TICK_VARIABLE
from queue_pipeline.processing.spark.folder import DISCOVERY_VARIABLE
from queue_pipeline.processing.spark.settings import ENVIRONMENT_VARIABLE as SPARK_VARIABLE
from queue_pipeline.processing.spark.settings import PROPERTIES_VARIABLE as SPARK_PROPERTIES_VARIABLE
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE as DATABASE_VARIABLE
from queue_pipeline.transport.private_files import make_private_folder

LOCATION = "chaos"
HOST = "127.0.0.1"
_PACKAGE = "chaos_shop"
_CHECKOUT = Path(__file__).resolve().parents[3]
_DEFINITIONS = '''\
"""The shop under attack."""

import dagster as dg

from chaos_shop.release import RELEASE
from queue_pipeline import queue_definitions
from tools.chaos.dagster.pipelines import pipelines

defs = queue_definitions(pipelines(RELEASE), database=dg.EnvVar("QUEUE_PIPELINE_DATABASE"))
'''
_DAGSTER_YAML = """\
telemetry: {enabled: false}
nux: {enabled: false}
run_coordinator:
  module: dagster.core.run_coordinator
  class: QueuedRunCoordinator
  config: {max_concurrent_runs: 4, dequeue_interval_seconds: 1}
sensors: {use_threads: true, num_workers: 4}
schedules: {use_threads: true, num_workers: 2}
run_monitoring:
  {enabled: true, start_timeout_seconds: 300, max_runtime_seconds: 7200, free_slots_after_run_end_seconds: 60}
run_retries: {enabled: false}
"""


@dataclass(frozen=True)
class Project:
    """A folder with the package, Dagster's home and Spark's files."""

    folder: Path
    database: str
    code_port: int
    web_port: int

    @property
    def home(self) -> Path:
        """Dagster's own files."""
        return self.folder / "dagster"

    @property
    def temporary(self) -> Path:
        """Temporary files of its processes."""
        return self.folder / "tmp"

    @property
    def discovery(self) -> Path:
        """The file about the Spark server that the runs start."""
        return self.folder / "spark" / "connect.json"

    @property
    def web_address(self) -> str:
        """Where the webserver answers."""
        return f"http://{HOST}:{self.web_port}"

    @property
    def commands(self) -> Mapping[str, Sequence[str]]:
        """The services by name, in the order in which they have to be started."""
        programs, workspace = Path(sys.executable).parent, str(self.home / "workspace.yaml")
        definitions = ["-m", f"{_PACKAGE}.definitions", "--location-name", LOCATION]
        code_server, webserver = (
            [str(programs / "dagster"), "code-server", "start"],
            str(programs / "dagster-webserver"),
        )
        return {
            CODE_SERVER: [*code_server, *definitions, "-h", HOST, "-p", str(self.code_port)],
            DAEMON: [str(programs / "dagster-daemon"), "run", "-w", workspace],
            WEBSERVER: [webserver, "-w", workspace, "-h", HOST, "-p", str(self.web_port)],
        }

    @property
    def storages(self) -> list[Path]:
        """The SQLite files that Dagster's processes share."""
        return [self.home / name for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")]

    def write(self) -> None:
        """Create it, at its first release."""
        make_private_folder(self.discovery.parent)
        make_private_folder(self.home)
        make_private_folder(self.temporary)
        (self.home / "dagster.yaml").write_text(_DAGSTER_YAML)
        server = f"{{host: {HOST}, port: {self.code_port}, location_name: {LOCATION}}}"
        (self.home / "workspace.yaml").write_text(f"load_from: [{{grpc_server: {server}}}]\n")
        package = self.folder / _PACKAGE
        package.mkdir()
        (package / "__init__.py").write_text('"""A shop."""\n')
        (package / "definitions.py").write_text(_DEFINITIONS)
        self.deploy(1)

    def deploy(self, release: int) -> None:
        """Deploy new code: a file changes, all at once."""
        new = self.folder / "release.py"
        new.write_text(f"RELEASE = {release}\n")
        new.replace(self.folder / _PACKAGE / "release.py")

    def environment(self) -> dict[str, str]:
        """What its processes see: nothing that is configured for other Dagsters, Sparks or queues."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "JAVA_HOME") if name in os.environ}
        return {
            **kept,
            # Killed processes leave files behind, which end with the folder.
            "TMPDIR": str(self.temporary),
            DATABASE_VARIABLE: self.database,
            SPARK_VARIABLE: "warm:local[2]",
            SPARK_PROPERTIES_VARIABLE: "spark.driver.memory=1g",
            DISCOVERY_VARIABLE: str(self.discovery),
            AUTOSTART_VARIABLE: "1",
            # Shorter than by default, so that a probe soon sees that ticks have ceased.
            TICK_VARIABLE: "10",
            "DAGSTER_HOME": str(self.home),
            "PYTHONPATH": f"{self.folder}{os.pathsep}{_CHECKOUT}",
            "PYTHONWARNINGS": "ignore",
            "PYTHONUNBUFFERED": "1",
        }


CODE_SERVER, DAEMON, WEBSERVER = "code server", "daemon", "webserver"
