"""The peek sensor as Dagster's storage has it, written there without a daemon."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    GrpcServerCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._daemon.types import DaemonHeartbeat
from dagster_shared.error import SerializableErrorInfo

from queue_pipeline.orchestration.names import PEEK_SENSOR


def store_peek_sensor(
    instance: dg.DagsterInstance,
    *,
    ticked_seconds_ago: float | None,
    pipelines: Sequence[dict[str, Any]] = (),
    status: InstigatorStatus = InstigatorStatus.RUNNING,
    error: str | None = None,
    location: str = "shop",
    daemon_reports: bool = True,
) -> None:
    """Store the sensor with its last good tick, a tick that failed after it if there is an error, and one in work.

    The daemon forgets in the sensor's state when the last tick succeeded as soon as the next one begins.
    """
    server = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=4266, location_name=location)
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(server, "__repository__"), PEEK_SENSOR)
    ticked = None if ticked_seconds_ago is None else time.time() - ticked_seconds_ago
    data = SensorInstigatorData(cursor=json.dumps({"pipelines": list(pipelines)}), last_tick_timestamp=ticked)
    if daemon_reports:
        instance.add_daemon_heartbeat(DaemonHeartbeat(time.time(), "SENSOR", "a daemon"))
    state = InstigatorState(origin, InstigatorType.SENSOR, status, data)
    instance.add_instigator_state(state)
    if ticked is not None:
        _store_tick(instance, state, TickStatus.SKIPPED, ticked - 30, end_timestamp=ticked)
    if error is not None:
        _store_tick(instance, state, TickStatus.FAILURE, time.time(), error=SerializableErrorInfo(error, [], "Error"))
    _store_tick(instance, state, TickStatus.STARTED, time.time())


def _store_tick(
    instance: dg.DagsterInstance, state: InstigatorState, status: TickStatus, began: float, **values: Any
) -> None:
    data = TickData(
        state.instigator_origin_id,
        PEEK_SENSOR,
        InstigatorType.SENSOR,
        status,
        began,
        selector_id=state.selector_id,
        **values,
    )
    instance.create_tick(data)
