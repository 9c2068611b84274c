"""Everything that Dagster needs, made from a list of pipelines."""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import dagster as dg

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.checks import index_checks
from queue_pipeline.orchestration.failed_message_jobs import FAILED_MESSAGE_NAMES, failed_message_jobs
from queue_pipeline.orchestration.maintenance import (
    AUDIT_JOB,
    MAINTENANCE_NAMES,
    maintenance_jobs,
    maintenance_schedules,
)
from queue_pipeline.orchestration.pipeline_asset import pipeline_asset
from queue_pipeline.orchestration.pipeline_checks import pipeline_checks
from queue_pipeline.orchestration.sensors import peek_sensor
from queue_pipeline.orchestration.storage.old_runs import remove_job
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.transport.errors import ConfigurationError
from queue_pipeline.transport.event import Event

AUTOSTART_VARIABLE = "QUEUE_PIPELINE_AUTOSTART"
WATCH_VARIABLE = "QUEUE_PIPELINE_WATCH_CODE"


def find_pipelines(package: ModuleType) -> list[QueuePipeline]:
    """Every pipeline that a module of a package declares, by name; the modules are imported."""
    found: dict[str, tuple[QueuePipeline, str]] = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if not isinstance(value, QueuePipeline):
                continue
            known, where = found.setdefault(value.name, (value, module.name))
            if known is not value:
                raise ConfigurationError(
                    f"two pipelines are called {value.name!r}, in {where} and in {module.name}; rename one"
                )
    return [found[name][0] for name in sorted(found)]


def build_definitions(pipelines: Sequence[QueuePipeline], *, autostart: bool | None = None) -> dg.Definitions:
    """Assets, jobs, sensors, schedules and checks of the pipelines; resources are the project's own.

    Sensors and schedules wait to be switched on in the UI unless `autostart` (or `QUEUE_PIPELINE_AUTOSTART=1`) says
    otherwise: whoever only looks at a production database must not start to consume its queues.
    """
    running = autostarts(os.environ) if autostart is None else autostart
    sensor_status = dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED
    schedule_status = dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED
    _check_names(pipelines)
    code = project_code(pipelines, os.environ)
    assets = [pipeline_asset(pipeline, code) for pipeline in pipelines]
    queues = queue_specs(pipelines)
    jobs: list[Any] = [_pipeline_job(pipeline, code) for pipeline in pipelines]
    audit = _check_job(AUDIT_JOB, [spec.key for spec in queues], "Checks the indexes of every queue.")
    beside = [audit, *maintenance_jobs(pipelines), *failed_message_jobs(pipelines)]
    keys = [spec.key for spec in queues] + [names.pipeline_key(pipeline) for pipeline in pipelines]
    remove = remove_job([job.name for job in [*jobs, *beside]], keys)
    return dg.Definitions(
        assets=[*assets, *queues, *event_specs(pipelines)],
        asset_checks=[*index_checks(pipelines), *pipeline_checks(pipelines)],
        jobs=[*jobs, *beside, remove],
        sensors=[peek_sensor(pipelines, jobs, sensor_status, code)],
        schedules=maintenance_schedules(schedule_status),
        # Every further process costs two seconds, and a JVM: measured three times slower to start with Spark.
        executor=dg.in_process_executor,
    )


def queue_specs(pipelines: Sequence[QueuePipeline]) -> list[dg.AssetSpec]:
    """Every queue as an external asset that depends on the pipelines that send to it."""
    senders: dict[str, list[QueuePipeline]] = {}
    descriptions: dict[str, str] = {}
    for pipeline in pipelines:
        senders.setdefault(pipeline.input_queue, [])
        for queue in pipeline.queues[1:]:
            senders.setdefault(queue, []).append(pipeline)
        for output in pipeline.output_queues:
            if output.description:
                descriptions[output.queue] = output.description
    specs: dict[dg.AssetKey, dg.AssetSpec] = {}
    for queue, pipelines_into in senders.items():
        key = names.queue_key(queue)
        if key in specs:
            raise ConfigurationError(
                f"the queues {queue!r} and {specs[key].metadata['queue']!r} would both be the asset "
                f"{key.to_user_string()}; write one address the same way everywhere"
            )
        specs[key] = dg.AssetSpec(
            key,
            deps=[names.pipeline_key(pipeline) for pipeline in pipelines_into],
            group_name=names.GROUP,
            description=descriptions.get(queue, f"The queue {queue}."),
            kinds={"queue", "sql"},
            metadata={"queue": queue},
        )
    return list(specs.values())


def event_specs(pipelines: Sequence[QueuePipeline]) -> list[dg.AssetSpec]:
    """Every published event type as an external asset that depends on the pipelines that publish it.

    Which queues it goes to is known to the database only, and may change at any time.
    """
    publishers: dict[dg.AssetKey, tuple[Event, list[QueuePipeline]]] = {}
    for pipeline in pipelines:
        for event in pipeline.publishes:
            known, into = publishers.setdefault(names.event_key(event.name), (event, []))
            if known.name != event.name:
                raise ConfigurationError(
                    f"the events {known.name!r} and {event.name!r} would both be the asset "
                    f"{names.event_key(event.name).to_user_string()}; rename one"
                )
            into.append(pipeline)
    return [
        dg.AssetSpec(
            key,
            deps=[names.pipeline_key(pipeline) for pipeline in into],
            group_name=names.GROUP,
            description=event.description or f"Events of the type {event.name}.",
            kinds={"event", "sql"},
            metadata={"event": event.name, "parents": ", ".join(event.parents) or "none"},
        )
        for key, (event, into) in publishers.items()
    ]


def autostarts(environment: Mapping[str, str]) -> bool:
    """Whether sensors and schedules run from the start."""
    return _is_on(environment, AUTOSTART_VARIABLE, otherwise=False)


def project_code(pipelines: Sequence[QueuePipeline], environment: Mapping[str, str]) -> SourceCode | None:
    """The code of the pipelines as this process has loaded it; None if runs are to keep theirs until they end."""
    if not _is_on(environment, WATCH_VARIABLE, otherwise=True):
        return None
    # A partial is of functools, and a schema that is no class is of pyspark.
    declared = [getattr(each.transform, "func", each.transform) for each in pipelines]
    declared += [each.body_schema for each in pipelines if isinstance(each.body_schema, type)]
    # Where they are installed like any other package, they are not found by their place.
    return SourceCode({value.__module__.partition(".")[0] for value in declared})


def _is_on(environment: Mapping[str, str], variable: str, *, otherwise: bool) -> bool:
    given = environment.get(variable, "").strip().lower()
    if given == "":
        return otherwise
    if given in ("0", "false", "no"):
        return False
    if given in ("1", "true", "yes"):
        return True
    raise ConfigurationError(f"{variable} is {given!r}; give 1 or 0")


def _pipeline_job(pipeline: QueuePipeline, code: SourceCode | None) -> Any:
    return dg.define_asset_job(
        names.job_name(pipeline),
        # A run reports its checks itself, at its end and also when it failed, without a step for each.
        selection=dg.AssetSelection.assets(names.pipeline_key(pipeline)).without_checks(),
        executor_def=dg.in_process_executor,
        description=f"Processes what waits in {pipeline.input_queue}.",
        tags={names.PIPELINE_TAG: pipeline.name, **({names.CODE_TAG: code.fingerprint} if code else {})},
    )


def _check_job(name: str, assets: Sequence[dg.AssetKey], description: str) -> Any:
    return dg.define_asset_job(
        name,
        selection=dg.AssetSelection.checks_for_assets(*assets),
        executor_def=dg.in_process_executor,
        description=description,
    )


def _check_names(pipelines: Sequence[QueuePipeline]) -> None:
    """Refuse what Dagster would refuse with other words, or not at all."""
    taken: dict[str, str] = {}
    defined = {*MAINTENANCE_NAMES, *FAILED_MESSAGE_NAMES}
    for pipeline in pipelines:
        if pipeline.name in taken:
            raise ConfigurationError(f"two pipelines are called {pipeline.name!r}; rename one")
        if both := sorted(defined & names.defined_names(pipeline)):
            raise ConfigurationError(
                f"pipeline {pipeline.name!r}: Dagster knows something else by the name {both[0]!r} already; rename it"
            )
        defined |= names.defined_names(pipeline)
        taken[pipeline.name] = pipeline.input_queue
        if list(taken.values()).count(pipeline.input_queue) > 1:
            raise ConfigurationError(
                f"two pipelines take from the queue {pipeline.input_queue!r}; each would get a part of its messages"
            )
