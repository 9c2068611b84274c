"""The component `queue_pipeline.QueuePipelines`: the pipelines of one database, declared in a defs.yaml."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import Field

from queue_pipeline.components.scaffolder import QueuePipelinesScaffolder
from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration.definitions import build_definitions, pipelines_of, resources_of
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.pipeline_asset import pipeline_spec
from queue_pipeline.processing.declaration.pipeline import QueuePipeline

_REFERENCE = re.compile(r"\.?[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")


class PipelineDeclaration(dg.Model, dg.Resolvable):
    """One pipeline: a queue, a PySpark function, and the queues that it sends to."""

    name: str = Field(description="lower-case letters, digits and _; names the asset and the job <name>_pipeline")
    input_queue: str
    transform: str = Field(
        description="the function: module.name, or .module.name for a module beside this defs.yaml",
        examples=[".transform.price_orders"],
    )
    body_schema: str | None = Field(
        default=None,
        description="what a body must look like: Spark DDL, or a reference to a pydantic model or StructType",
        examples=["id string not null, total decimal(12,2)", ".transform.Order"],
    )
    output_queues: Sequence[str | Mapping[str, Any]] = Field(
        default=(), description="names, or mappings with queue, message_type, description and further fields of Output"
    )
    description: str | None = None
    owners: Sequence[str] = ()
    options: Mapping[str, Any] = Field(
        default={}, description="any other field of QueuePipeline, for example transaction_mode or max_concurrency"
    )


@dg.scaffold_with(QueuePipelinesScaffolder)
class QueuePipelines(dg.Component, dg.Model, dg.Resolvable):
    """Pipelines that take messages from the queues of one database, process them with PySpark and send results.

    Pipelines stand here, or as `QueuePipeline` objects in Python modules beside this file. Everything that Dagster
    sees of them begins with the prefix.
    """

    database: str | None = Field(
        default=None,
        description="the name of an environment variable that holds the URL of the database, or a URL without a "
        "password; by default QUEUE_PIPELINE_DATABASE",
        examples=["SHOP_QUEUES", "sqlite:///queues.db"],
    )
    spark: str | None = Field(
        default=None,
        description="where Spark runs; by default QUEUE_PIPELINE_SPARK, else a local Spark that stays warm",
        examples=["local[2]", "spark://host:7077", "sc://host:15002"],
    )
    prefix: str = Field(default="", description="begins the name of every asset, job, sensor, schedule and resource")
    pipelines: Sequence[PipelineDeclaration] = ()

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Everything that `queue_definitions` makes."""
        database, names = self.database, Names(self.prefix)
        if database is not None and _VARIABLE.fullmatch(database):
            database = dg.EnvVar(database)
        return build_definitions(
            [*(declare(one, context) for one in self.pipelines), *pipelines_beside(context)],
            names,
            get_asset_spec=self.get_asset_spec,
            execute=self.execute,
            resources=resources_of(database, self.spark, names),
        )

    def get_asset_spec(self, pipeline: QueuePipeline) -> dg.AssetSpec:
        """What Dagster shows of a pipeline's asset; override it to change all but its key and its dependencies."""
        return pipeline_spec(pipeline, Names(self.prefix))

    def execute(
        self, context: dg.OpExecutionContext, pipeline: QueuePipeline, outputs: Iterator[dg.Output[None]]
    ) -> Iterator[dg.Output[None]]:
        """Process batches until the run ends, which happens while `outputs` are iterated; override it to wrap that."""
        yield from outputs


def declare(declaration: PipelineDeclaration, context: dg.ComponentLoadContext) -> QueuePipeline:
    """The pipeline that stands in YAML; mistakes name the pipeline and the field."""
    values = declaration.model_dump(exclude={"options", "transform", "body_schema"}, exclude_defaults=True)
    where = f"pipeline {declaration.name!r}"
    if both := sorted({*declaration.options} & {*PipelineDeclaration.model_fields}):
        raise ConfigurationError(f"{where}: {both[0]} stands among its options; write it beside them")
    schema = declaration.body_schema
    if schema is not None and _REFERENCE.fullmatch(schema):
        values["body_schema"] = load(schema, context, f"{where}, body_schema")
    elif schema is not None:
        values["body_schema"] = schema
    transform = load(declaration.transform, context, f"{where}, transform")
    return QueuePipeline(**values, **declaration.options, transform=transform)


def load(reference: str, context: dg.ComponentLoadContext, what: str) -> Any:
    """The Python object of a reference; `.module.name` is looked for beside the defs.yaml."""
    if not _REFERENCE.fullmatch(reference):
        raise ConfigurationError(f"{what} is {reference!r}; give module.name, or .module.name for a module beside it")
    module_name, _, name = reference.rpartition(".")
    if module_name.startswith("."):
        module_name = f"{context.defs_relative_module_name(context.path)}{module_name}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise ConfigurationError(f"{what} is {reference!r}, but there is no module {module_name}") from None
    if not hasattr(module, name):
        raise ConfigurationError(f"{what} is {reference!r}, but the module {module_name} has no {name}")
    return getattr(module, name)


def pipelines_beside(context: dg.ComponentLoadContext) -> list[QueuePipeline]:
    """The pipelines that Python modules beside the defs.yaml declare, by name."""
    folder = context.path if context.path.is_dir() else context.path.parent
    paths = sorted(path for path in folder.glob("*.py") if _is_of_pipelines(path))
    return pipelines_of(context.load_defs_relative_python_module(path) for path in paths)


def _is_of_pipelines(path: Path) -> bool:
    return not path.name.startswith("test_") and path.name not in ("conftest.py", "component.py")
