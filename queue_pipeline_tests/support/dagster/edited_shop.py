"""A project in a folder of its own, that a person edits while its runs are at work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from queue_pipeline_tests.support.command_line import environment

PACKAGE = "edited_shop"
JOB = "orders_pipeline"
COUNTRIES = "SERVED = [{served}]\n"
DEFINITIONS = '''\
"""Orders are accepted from countries that are served."""

import dagster as dg
from pyspark.sql import functions as F

from edited_shop.countries import SERVED
from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.orchestration.resources import QueueTransportResource
from queue_pipeline.processing.declaration.outcomes import each, fail, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.spark.settings import spark_config


def accept(messages):
    """Refuse what cannot be delivered."""
    country = F.col("body").cast("string")
    served = country.isin(SERVED)
    refused = fail(F.concat(F.lit("no deliveries to "), country), error_type="CountryNotServed", when=~served)
    return messages.select("origin", each(send("billing", body=country, when=served), refused))


orders = QueuePipeline(
    name="orders",
    input_queue="orders",
    output_queues=["billing"],
    transform=accept,
    linger_seconds=600,
    peek_delay=0.2,
)
defs = dg.Definitions.merge(
    build_definitions([orders]),
    dg.Definitions(
        resources={
            "transport": QueueTransportResource(database=dg.EnvVar("QUEUE_PIPELINE_DATABASE")),
            "spark": SparkResource(spark_config=spark_config()),
        }
    ),
)
'''


@dataclass(frozen=True)
class EditedShop:
    """The project `edited_shop`: its module `countries` says which orders are refused."""

    folder: Path
    settings: Mapping[str, str]

    module = f"{PACKAGE}.definitions"

    def write(self) -> None:
        """Create the project; it serves Austria only."""
        package = self.folder / PACKAGE
        package.mkdir(parents=True)
        (package / "__init__.py").write_text('"""A shop."""\n')
        (package / "definitions.py").write_text(DEFINITIONS)
        self.serve("AT")

    def serve(self, *countries: str) -> None:
        """Edit the project."""
        served = ", ".join(map(repr, countries))
        (self.folder / PACKAGE / "countries.py").write_text(COUNTRIES.format(served=served))

    @property
    def environment(self) -> Mapping[str, str]:
        """What its processes are started with."""
        return environment(**{**self.settings, "PYTHONPATH": str(self.folder)})

    def start_run(self, home: Path) -> subprocess.Popen[str]:
        """Execute its job, in a process of its own; what it prints is in `run.log` in that folder."""
        home.mkdir(exist_ok=True)
        command = [str(Path(sys.executable).with_name("dagster")), "job", "execute", "-m", self.module, "-j", JOB]
        with (home / "run.log").open("a") as log:
            return subprocess.Popen(
                command,
                cwd=home,
                env={**self.environment, "DAGSTER_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
