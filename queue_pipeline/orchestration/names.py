"""The names under which queues and pipelines appear in Dagster, in one place so that a person can guess them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dagster as dg

from queue_pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    # Not loaded for a name: it brings Spark, which a health check must not wait for.
    from queue_pipeline.processing.declaration.pipeline import QueuePipeline

PEEK_SENSOR = "peek_queues"
PIPELINE_TAG = "queue_pipeline/pipeline"
SLOTS_TAG = "queue_pipeline/slots"
CODE_TAG = "queue_pipeline/code"
"""Which code the code server had loaded when it defined the job of a run."""
LONGEST_PREFIX = 30
_PREFIX = re.compile(r"[a-z][a-z0-9_]*")
_RUN = "run "
_GROUP = "queue_pipelines"
"""One for queues and pipelines: Dagster folds groups, and two of them would hide which queue leads where."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of one set of pipelines. A prefix keeps them apart from those of another set in one code location."""

    prefix: str = ""

    def __post_init__(self) -> None:
        if self.prefix and (not _PREFIX.fullmatch(self.prefix) or len(self.prefix) > LONGEST_PREFIX):
            raise ConfigurationError(
                f"the prefix {self.prefix!r} cannot be part of Dagster's names; use lower-case letters, digits and _, "
                f"beginning with a letter, at most {LONGEST_PREFIX} characters"
            )

    def named(self, name: str) -> str:
        """A job, op, schedule, sensor, resource, group or tag by its plain name: `purge_expired` is
        `shop_purge_expired` with the prefix `shop`.
        """
        return f"{self.prefix}_{name}" if self.prefix else name

    def key(self, *parts: str) -> dg.AssetKey:
        """An asset; the prefix is its first part."""
        return dg.AssetKey([self.prefix, *parts] if self.prefix else list(parts))

    @property
    def transport(self) -> str:
        """The key of the resource that reaches the database."""
        return self.named("transport")

    @property
    def spark(self) -> str:
        """The key of the resource that starts Spark."""
        return self.named("spark")

    @property
    def group(self) -> str:
        """The group of all assets."""
        return self.named(_GROUP)

    @property
    def peek_sensor(self) -> str:
        """The sensor that starts runs."""
        return self.named(PEEK_SENSOR)

    def queue_key(self, queue: str) -> dg.AssetKey:
        """The asset of a queue: `queues/orders_queue`, and `queues/dbo/orders_queue` where the address names a schema.

        The UI labels a node with the last part of its key: a queue must not read like the pipeline that it feeds.
        """
        *folders, name = _parts(queue)
        return self.key("queues", *folders, f"{name}_queue")

    def event_key(self, event: str) -> dg.AssetKey:
        """The asset of an event type: `events/Shop/OrderAccepted`."""
        return self.key("events", *_parts(event))

    def pipeline_key(self, pipeline: QueuePipeline) -> dg.AssetKey:
        """The asset of a pipeline."""
        return self.key(pipeline.name)

    def pipeline_tag(self, pipeline: QueuePipeline) -> str:
        """The value of the tag by which runs of a pipeline are found."""
        return self.named(pipeline.name)

    def job(self, pipeline: QueuePipeline) -> str:
        """The job that runs a pipeline."""
        return self.named(f"{pipeline.name}_pipeline")

    def dequeue_op(self, pipeline: QueuePipeline) -> str:
        """The step that claims."""
        return self.named(f"dequeue_{pipeline.name}")

    def process_op(self, pipeline: QueuePipeline) -> str:
        """The step that processes."""
        return self.named(f"process_{pipeline.name}")

    def of_pipeline(self, pipeline: QueuePipeline) -> set[str]:
        """What Dagster knows of a pipeline by name; jobs, graphs and ops share one space."""
        graph = self.pipeline_key(pipeline).to_python_identifier()
        return {graph, self.job(pipeline), self.dequeue_op(pipeline), self.process_op(pipeline)}

    @staticmethod
    def of_sensor(sensor: str) -> Names | None:
        """The names that a peek sensor belongs to; None if it is another sensor."""
        if sensor == PEEK_SENSOR:
            return Names()
        prefix = sensor.removesuffix(f"_{PEEK_SENSOR}")
        return Names(prefix) if prefix != sensor and _PREFIX.fullmatch(prefix) else None


def owner(run_id: str) -> str:
    """Under which name a run holds its claims and its slots."""
    return f"{_RUN}{run_id}"


def run_of(owner: str) -> str | None:
    """The run that holds something under this name, if it is that of a run."""
    return owner.removeprefix(_RUN) if owner.startswith(_RUN) else None


def _parts(name: str) -> list[str]:
    # A name without a single letter that Dagster allows still needs a key of its own.
    return [part for part in re.split(r"[^A-Za-z0-9_\-]+", name) if part] or [name.encode().hex()]
