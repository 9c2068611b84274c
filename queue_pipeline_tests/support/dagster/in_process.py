"""Jobs and ticks of Dagster's, executed in the process of a test."""

import time

import dagster as dg

from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import QueueTransportResource
from queue_pipeline_tests.support.dagster import pipelines


def execute(backend, instance, job, *declared, **options):
    """Execute a job of the definitions of pipelines."""
    database = QueueTransportResource(database=backend.url, default_schema=backend.schema)
    definitions = dg.Definitions.merge(
        build_definitions(declared or [pipelines.declare()], autostart=False),
        dg.Definitions(resources={"transport": database, "spark": dg.ResourceDefinition.none_resource()}),
    )
    return definitions.resolve_job_def(job).execute_in_process(instance=instance, **options)


def figures(result, node):
    """What an op of a job reported."""
    (event,) = [event for event in result.events_for_node(node) if event.is_successful_output]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def ticked(backend, instance, *, preview=False, declared=None, sensor=None, cursor=None, **options):
    """Evaluate the sensor once, as the daemon does after its first tick, or as the UI does for a preview."""
    sensor = sensor or peek_sensor(*(declared or [pipelines.declare(**options)]))
    database = QueueTransportResource(database=backend.url, default_schema=backend.schema)
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, sensor_name=sensor.name, resources={"transport": database}
    )
    context._last_tick_completion_time = None if preview else time.time()
    return sensor(context)


def peek_sensor(*declared):
    """The sensor of some pipelines, with a memory of its own."""
    definitions = build_definitions(declared, autostart=False)
    return next(sensor for sensor in definitions.sensors if sensor.name == "peek_queues")


def skip_reason(result):
    """Why a tick started nothing; None if it did."""
    return result.skip_reason.skip_message if result.skip_reason else None
