"""A code server in a process of its own that is stopped in the middle of a tick: the tick does not keep it."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.sensor_definition import SensorExecutionData
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._grpc.client import DagsterGrpcClient
from dagster._grpc.types import SensorExecutionArgs
from dagster._serdes import deserialize_value

from queue_pipeline.orchestration.peek_loop import STOPPING
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.command_line import environment
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.heavy

LOCATION = "queue_pipeline"
START_SECONDS = 120.0
STOP_SECONDS = 20.0
"""Half of what a tick lasts. On a quiet machine both kinds of server take two seconds."""


@pytest.fixture
def queues(tmp_path):
    with QueueTransport(f"sqlite:///{tmp_path}/queues.db", endpoint="orders") as transport:
        transport.install("orders", "billing", "shipping")
        yield transport


@pytest.fixture(params=[("api", "grpc"), ("code-server", "start")], ids=" ".join)
def server(request, tmp_path, queues):
    """The process of a server, and a client of it."""
    socket = tmp_path / "code.sock"
    program = Path(sys.executable).parent / "dagster"
    command = [program, *request.param, "-m", "queue_pipeline.definitions", "-s", socket, "--location-name", LOCATION]
    given = environment(QUEUE_PIPELINE_DATABASE=f"sqlite:///{tmp_path}/queues.db", DAGSTER_HOME=str(tmp_path))
    with (tmp_path / "server.log").open("wb") as log:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *map(str, command)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=given,
            cwd=tmp_path,
        )
    client = DagsterGrpcClient(socket=str(socket))
    try:
        eventually(
            lambda: process.poll() is not None or (socket.exists() and is_serving(client)), seconds=START_SECONDS
        )
        assert process.poll() is None, (tmp_path / "server.log").read_text()
        yield process, client
    finally:
        process.kill()
        process.wait()


def is_serving(client):
    return client.health_check_query() == "SERVING"


def test_a_tick_ends_with_its_code_server(server, queues, tmp_path):
    process, client = server
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance, ThreadPoolExecutor() as pool:
        ticking = pool.submit(tick, client, instance)
        # While it loops, it moves what is due.
        queues.send("orders", new_message("late", delay=timedelta(seconds=-5)))
        queues.pauses.pause("orders", "me")
        eventually(lambda: queues.status("orders")[0].delayed == 0, seconds=60)
        assert not ticking.done()
        process.terminate()
        eventually(lambda: process.poll() is not None, seconds=STOP_SECONDS)
        assert ticking.result().skip_message == STOPPING


def tick(client, instance):
    """What the daemon asks a code server for."""
    place = GrpcServerCodeLocationOrigin(host="localhost", socket=client.socket, location_name=LOCATION)
    arguments = SensorExecutionArgs(
        repository_origin=RemoteRepositoryOrigin(place, "__repository__"),
        instance_ref=instance.get_ref(),
        sensor_name="peek_queues",
        last_tick_completion_time=time.time(),
        last_run_key=None,
        cursor=None,
        timeout=60,
        last_sensor_start_time=None,
    )
    return deserialize_value(client.external_sensor_execution(arguments), SensorExecutionData)
