"""Jobs and ticks of Dagster's, executed in the process of a test."""

import dagster as dg
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteInstigatorOrigin, RemoteRepositoryOrigin
from dagster._core.scheduler.instigation import InstigatorState, InstigatorType

from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline_tests.support import pipelines


def execute(backend, instance, job, pipeline=None, **options):
    """Execute a job of a pipeline's definitions."""
    database = QueueTransportResource(database=backend.url, default_schema=backend.schema)
    definitions = dg.Definitions.merge(
        build_definitions([pipeline or pipelines.declare()], autostart=False),
        dg.Definitions(resources={"transport": database, "spark": dg.ResourceDefinition.none_resource()}),
    )
    return definitions.resolve_job_def(job).execute_in_process(instance=instance, **options)


def figures(result, node):
    """What an op of a job reported."""
    (event,) = [event for event in result.events_for_node(node) if event.is_successful_output]
    return {name: value.value for name, value in event.step_output_data.metadata.items()}


def switch(instance, status, *, repository="__repository__"):
    """Switch the sensor of a code location on or off, as the UI does."""
    place = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin("here"), repository)
    state = InstigatorState(RemoteInstigatorOrigin(place, "peek_queues"), InstigatorType.SENSOR, status)
    known = instance.get_instigator_state(state.instigator_origin_id, state.selector_id)
    (instance.update_instigator_state if known else instance.add_instigator_state)(state)


def ticked(backend, instance, *, autostart=False, repository=None, declared=None, **options):
    """Evaluate the sensor once; returns what it says."""
    definitions = build_definitions(declared or [pipelines.declare(**options)], autostart=autostart)
    sensor = next(sensor for sensor in definitions.sensors if sensor.name == "peek_queues")
    database = QueueTransportResource(database=backend.url, default_schema=backend.schema)
    context = dg.build_sensor_context(
        instance=instance, repository_name=repository, sensor_name=sensor.name, resources={"transport": database}
    )
    return sensor(context)


def told(result):
    """Why a tick started nothing; None if it did."""
    return result.skip_reason.skip_message if result.skip_reason else None
