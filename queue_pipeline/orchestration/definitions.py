"""Everything that Dagster needs, made from a list of pipelines."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any

import dagster as dg

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration.checks import index_checks, pipeline_checks
from queue_pipeline.orchestration.external_assets import event_specs, queue_specs
from queue_pipeline.orchestration.failed_message_jobs import failed_message_jobs
from queue_pipeline.orchestration.maintenance import AUDIT_JOB, maintenance_jobs, maintenance_schedules
from queue_pipeline.orchestration.names import CODE_TAG, PIPELINE_TAG, Names
from queue_pipeline.orchestration.pipeline_asset import Execute, GetAssetSpec, pipeline_asset
from queue_pipeline.orchestration.resources import QueueTransportResource, SparkResource
from queue_pipeline.orchestration.sensors import peek_sensor
from queue_pipeline.orchestration.storage.old_runs import remove_job
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.transport.database.setting import database_url, secrets

AUTOSTART_VARIABLE = "QUEUE_PIPELINE_AUTOSTART"
WATCH_VARIABLE = "QUEUE_PIPELINE_WATCH_CODE"


def queue_definitions(
    pipelines: Sequence[QueuePipeline],
    *,
    database: str | dg.EnvVar | QueueTransportResource | None = None,
    spark: str | SparkResource | None = None,
    prefix: str = "",
    autostart: bool | None = None,
) -> dg.Definitions:
    """All that Dagster needs to run pipelines on one database: assets, checks, jobs, schedules, a sensor, resources.

    `database` is a URL, or an `EnvVar` that holds one; without it, `QUEUE_PIPELINE_DATABASE`, else a SQLite file.
    `spark` is a setting such as `local[2]`; without it, `QUEUE_PIPELINE_SPARK`. `prefix` begins the name of everything
    here, which keeps a second database, and any other definitions, apart in one code location. Sensors and schedules
    wait to be switched on in the UI unless `autostart` (or `QUEUE_PIPELINE_AUTOSTART=1`) says otherwise: looking at a
    production database must not start to consume its queues.
    """
    names = Names(prefix)
    return build_definitions(pipelines, names, autostart=autostart, resources=resources_of(database, spark, names))


def resources_of(
    database: str | dg.EnvVar | QueueTransportResource | None, spark: str | SparkResource | None, names: Names
) -> dict[str, Any]:
    """The two resources that the definitions need, by their keys."""
    return {names.transport: _transport(database), names.spark: _spark(spark)}


def find_pipelines(package: ModuleType) -> list[QueuePipeline]:
    """Every pipeline that a module of a package declares, by name; the modules are imported."""
    modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return pipelines_of(importlib.import_module(module.name) for module in modules)


def pipelines_of(modules: Iterable[ModuleType]) -> list[QueuePipeline]:
    """Every pipeline that a module declares, by name; one that is imported from another module counts once."""
    found: dict[str, tuple[QueuePipeline, str]] = {}
    for module in modules:
        for value in vars(module).values():
            if not isinstance(value, QueuePipeline):
                continue
            known, where = found.setdefault(value.name, (value, module.__name__))
            if known is not value:
                raise ConfigurationError(
                    f"two pipelines are called {value.name!r}, in {where} and in {module.__name__}; rename one"
                )
    return [found[name][0] for name in sorted(found)]


def build_definitions(
    pipelines: Sequence[QueuePipeline],
    names: Names | None = None,
    *,
    autostart: bool | None = None,
    get_asset_spec: GetAssetSpec | None = None,
    execute: Execute | None = None,
    resources: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """Definitions, with `resources` or without. `get_asset_spec` and `execute` change the asset of a pipeline."""
    names = names or Names()
    running = is_on(os.environ, AUTOSTART_VARIABLE, otherwise=False) if autostart is None else autostart
    sensor_status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED
    schedule_status = dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED
    queues = queue_specs(pipelines, names)
    audit = dg.define_asset_job(
        names.named(AUDIT_JOB),
        selection=dg.AssetSelection.checks_for_assets(*(spec.key for spec in queues)),
        executor_def=dg.in_process_executor,
        description="Checks the indexes of every queue.",
    )
    beside = [*maintenance_jobs(pipelines, names), *failed_message_jobs(pipelines, names)]
    job_names = [audit.name, *(job.name for job in beside), *(names.job(pipeline) for pipeline in pipelines)]
    keys = [spec.key for spec in queues] + [names.pipeline_key(pipeline) for pipeline in pipelines]
    beside.append(remove_job(job_names, keys, names))
    _check_names(pipelines, names, {audit.name, *(name for job in beside for name in (job.name, *job.graph.node_dict))})
    code = project_code(pipelines, os.environ)
    assets = [pipeline_asset(pipeline, code, names, get_asset_spec, execute) for pipeline in pipelines]
    jobs = [_pipeline_job(pipeline, code, names) for pipeline in pipelines]
    # Without an executor, which would be that of everything else in the code location: each job has its own.
    return dg.Definitions(
        assets=[*assets, *queues, *event_specs(pipelines, names)],
        asset_checks=[*index_checks(pipelines, names), *pipeline_checks(pipelines, names)],
        jobs=[*jobs, audit, *beside],
        sensors=[peek_sensor(pipelines, jobs, sensor_status, code, names)],
        schedules=maintenance_schedules(schedule_status, names),
        resources=resources,
    )


def project_code(pipelines: Sequence[QueuePipeline], environment: Mapping[str, str]) -> SourceCode | None:
    """The code of the pipelines as this process has loaded it; None if runs are to keep theirs until they end."""
    if not is_on(environment, WATCH_VARIABLE, otherwise=True):
        return None
    # A partial is of functools, and a schema that is no class is of pyspark.
    declared = [getattr(each.transform, "func", each.transform) for each in pipelines]
    declared += [each.body_schema for each in pipelines if isinstance(each.body_schema, type)]
    # Where they are installed like any other package, they are not found by their place.
    return SourceCode({value.__module__.partition(".")[0] for value in declared})


def is_on(environment: Mapping[str, str], variable: str, *, otherwise: bool) -> bool:
    """Whether a variable is 1 or 0; `otherwise` if it is not set."""
    given = environment.get(variable, "").strip().lower()
    if given == "":
        return otherwise
    if given in ("0", "false", "no"):
        return False
    if given in ("1", "true", "yes"):
        return True
    raise ConfigurationError(f"{variable} is {given!r}; give 1 or 0")


def _transport(database: str | dg.EnvVar | QueueTransportResource | None) -> QueueTransportResource:
    if isinstance(database, QueueTransportResource):
        return database
    if isinstance(database, str) and not isinstance(database, dg.EnvVar) and secrets(database_url(database)):
        raise ConfigurationError(
            "the database setting holds a password, which Dagster would show in its UI; put the setting into an "
            'environment variable and give its name: database=dg.EnvVar("SHOP_QUEUES")'
        )
    return QueueTransportResource(database=database)


def _spark(spark: str | SparkResource | None) -> SparkResource:
    return spark if isinstance(spark, SparkResource) else SparkResource(spark_config=spark_config(spark))


def _pipeline_job(pipeline: QueuePipeline, code: SourceCode | None, names: Names) -> Any:
    return dg.define_asset_job(
        names.job(pipeline),
        # A run reports its checks itself, at its end and also when it failed, without a step for each.
        selection=dg.AssetSelection.assets(names.pipeline_key(pipeline)).without_checks(),
        # Every further process costs two seconds, and a JVM: measured three times slower to start with Spark.
        executor_def=dg.in_process_executor,
        description=f"Processes what waits in {pipeline.input_queue}. It needs no config: the launchpad opens with the "
        "present settings of Spark and of the database, and a run may change them.",
        tags={PIPELINE_TAG: names.pipeline_tag(pipeline), **({CODE_TAG: code.fingerprint} if code else {})},
    )


def _check_names(pipelines: Sequence[QueuePipeline], names: Names, defined: set[str]) -> None:
    """Refuse names that Dagster would refuse with other words, or not at all. `defined`: jobs and ops."""
    taken: dict[str, str] = {}
    for pipeline in pipelines:
        if pipeline.name in taken:
            raise ConfigurationError(f"two pipelines are called {pipeline.name!r}; rename one")
        if both := sorted(defined & names.of_pipeline(pipeline)):
            raise ConfigurationError(
                f"pipeline {pipeline.name!r}: Dagster knows something else by the name {both[0]!r} already; rename it"
            )
        defined |= names.of_pipeline(pipeline)
        taken[pipeline.name] = pipeline.input_queue
        if list(taken.values()).count(pipeline.input_queue) > 1:
            raise ConfigurationError(
                f"two pipelines take from the queue {pipeline.input_queue!r}; each would get a part of its messages"
            )
