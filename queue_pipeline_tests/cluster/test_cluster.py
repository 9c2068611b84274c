"""A real cluster: what it computes, what it survives, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queue_pipeline_tests.support.spark_cluster import running_job
from queue_pipeline_tests.support.waiting import eventually
from tools.cluster.cluster_folder import ClusterFolder
from tools.cluster.command import main
from tools.cluster.standalone import StandaloneCluster
from tools.processes import Processes

ROWS = 200
SUM = sum(2 * number for number in range(ROWS))

pytestmark = [pytest.mark.slow]


def test_a_driver_of_ones_own_computes_on_every_worker(cluster: StandaloneCluster, tmp_path: Path) -> None:
    both = {worker.name for worker in cluster.workers}
    with running_job(cluster.master, tmp_path / "job", ROWS) as job:
        eventually(lambda: job.workers() == both, seconds=120)
        assert job.result() == (SUM, both)


def test_a_worker_that_is_killed_in_mid_job_costs_nothing_but_time(cluster: StandaloneCluster, tmp_path: Path) -> None:
    killed, survivor = cluster.workers[-2:]
    with running_job(cluster.remote, tmp_path / "job", ROWS) as job:
        eventually(lambda: job.workers() == {killed.name, survivor.name}, seconds=120)
        executors = cluster.executors(killed)
        assert len(executors) == 1
        for pid in [killed.pid, *executors]:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: cluster.executors(killed) == [])
        assert job.result() == (SUM, {survivor.name})
    replacement = cluster.start_worker()
    assert replacement.name not in (killed.name, survivor.name)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    main(["stop", "--folder", str(tmp_path)])


def test_the_command_starts_shows_and_ends_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--workers", "1", "--no-connect", "--master-port", "0", "--folder", str(folder)]
    started = subprocess.run(
        [sys.executable, "-m", "tools.cluster", "start", *options], capture_output=True, text=True, timeout=200
    )
    assert (started.returncode, started.stderr) == (0, ""), started.stdout + started.stderr
    state = ClusterFolder(folder).read()
    assert state is not None and state.master is not None
    assert f"export QUEUE_PIPELINE_SPARK=spark://127.0.0.1:{state.master.port} " in started.stdout
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
