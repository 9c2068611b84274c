"""A real cluster: what it computes, what it survives, and that nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import grpc  # type: ignore[import-untyped]
import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.proto.base_pb2 import ConfigRequest
from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub

from queue_pipeline_tests.support.spark.spark_cluster import running_job
from queue_pipeline_tests.support.waiting import eventually
from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.command import main
from tools.cluster.programs import TOKEN_VARIABLE
from tools.cluster.standalone import StandaloneCluster
from tools.processes import Processes

ROWS = 200
SUM = sum(2 * number for number in range(ROWS))


def test_a_driver_program_computes_on_every_worker(cluster: StandaloneCluster, tmp_path: Path) -> None:
    both = {worker.name for worker in cluster.workers}
    with running_job(cluster.master, cluster.environment, tmp_path / "job", ROWS) as job:
        eventually(lambda: job.workers() == both, seconds=120)
        assert job.result() == (SUM, both)


@pytest.mark.slow
def test_a_worker_that_is_killed_in_the_middle_of_a_job_only_delays_it(
    cluster: StandaloneCluster, tmp_path: Path
) -> None:
    killed, survivor = cluster.workers[-2:]
    with running_job(cluster.remote, cluster.environment, tmp_path / "job", ROWS) as job:
        eventually(lambda: job.workers() == {killed.name, survivor.name}, seconds=120)
        executors = cluster.executors(killed)
        assert len(executors) == 1
        for pid in [killed.pid, *executors]:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: cluster.executors(killed) == [])
        assert job.result() == (SUM, {survivor.name})
    replacement = cluster.start_worker()
    assert replacement.name not in (killed.name, survivor.name)


def test_secrets_are_in_private_files_and_in_no_command_line(cluster: StandaloneCluster) -> None:
    conf = Path(cluster.environment["SPARK_CONF_DIR"])
    defaults = (conf / "spark-defaults.conf").read_text()
    secret = dict(line.split(maxsplit=1) for line in defaults.splitlines())["spark.authenticate.secret"]
    token = (conf / "connect-token").read_text()
    assert token == cluster.environment[TOKEN_VARIABLE]
    for path in conf.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for name in ("conf", "local", "logs", "work"):
        assert stat.S_IMODE((conf.parent / name).stat().st_mode) == 0o700
    alive = Processes(conf.parent, {}, cluster.state.mark).alive()
    assert len(alive) >= 4
    for pid in alive:
        with contextlib.suppress(FileNotFoundError):
            line = Path(f"/proc/{pid}/cmdline").read_text()
            assert secret not in line and token not in line


@pytest.mark.parametrize("token", ["", "another"])
def test_a_client_without_the_token_is_refused(cluster: StandaloneCluster, token: str) -> None:
    builder = DefaultChannelBuilder(f"{cluster.remote}/;token={token}" if token else cluster.remote)
    with builder.toChannel() as channel:
        stub = SparkConnectServiceStub(channel)
        with pytest.raises(grpc.RpcError) as refused:
            stub.Config(ConfigRequest(session_id=str(uuid.uuid4())), timeout=30)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    main(["stop", "--folder", str(tmp_path)])


@pytest.mark.slow
def test_the_command_starts_shows_and_ends_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--workers", "1", "--no-connect", "--master-port", "0", "--folder", str(folder)]
    started = subprocess.run(
        [sys.executable, "-m", "tools.cluster", "start", *options], capture_output=True, text=True, timeout=200
    )
    assert (started.returncode, started.stderr) == (0, ""), started.stdout + started.stderr
    state = ClusterFolder(folder).read()
    assert state is not None and state.master is not None
    access = f"export QUEUE_PIPELINE_SPARK=spark://127.0.0.1:{state.master.port} SPARK_CONF_DIR={folder}/conf\n"
    assert access in started.stdout
    assert f"http://127.0.0.1:{state.master.ui_port} " in started.stdout
    assert "sc://" not in started.stdout

    here = ["--folder", str(folder)]
    assert main(["status", *here]) == 0
    assert main(["start", *here]) == 0
    assert "it runs already" in capsys.readouterr().out
    os.kill(state.workers[0].pid, signal.SIGKILL)
    assert eventually(lambda: main(["status", *here]) == 1)
    assert f"worker-1  process {state.workers[0].pid:<8} gone" in capsys.readouterr().out

    assert main(["stop", *here]) == 0
    assert "stopped" in capsys.readouterr().out
    assert Processes(folder, {}, state.mark).alive() == []
    assert main(["stop", *here]) == 0
    assert main(["status", *here]) == 1
    assert capsys.readouterr().out.count("none runs in") == 2
