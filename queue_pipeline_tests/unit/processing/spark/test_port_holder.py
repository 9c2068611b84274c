"""Which process listens on a port, and what a run says when that of its Spark server is taken."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queue_pipeline.processing.spark.port_holder import PortHolder, port_holder
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline.processing.spark.warm_server import taken_port

LISTEN = """
import socket, sys, time
with socket.create_server(("{host}", 0), family=socket.{family}) as one:
    print(one.getsockname()[1], flush=True)
    time.sleep(600)
"""


@pytest.fixture(params=[("127.0.0.1", "AF_INET"), ("::1", "AF_INET6")], ids=["ipv4", "ipv6"])
def listener(request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[str], int]]:
    host, family = request.param
    command = [sys.executable, "-c", LISTEN.format(host=host, family=family), "--token=secret"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline() or pytest.skip("this machine has no IPv6"))
        process.kill()


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def test_the_process_is_found_and_its_arguments_are_not_shown(listener: tuple[subprocess.Popen[str], int]) -> None:
    """They may hold tokens and passwords, and a run's log can be read by every user of Dagster."""
    process, port = listener
    assert port_holder(port) == PortHolder(process.pid, sys.executable)
    assert str(port_holder(port)) == f"process {process.pid} ({sys.executable})"


def test_the_script_or_module_of_an_interpreter_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(LISTEN.format(host="127.0.0.1", family="AF_INET"))
    for own in (["serve.py"], ["-m", "serve"]):
        command = [sys.executable, *own, "postgresql://user:secret@host/shop"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
            assert process.stdout is not None
            found = port_holder(int(process.stdout.readline()))
            process.kill()
        assert found == PortHolder(process.pid, " ".join([sys.executable, *own]))


def test_a_port_that_is_free_has_no_holder() -> None:
    assert port_holder(free_port()) is None


def test_the_main_class_of_a_java_process_is_shown(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.symlink_to(sys.executable)
    main = "org.apache.spark.deploy.master.Master"
    text = LISTEN.format(host="127.0.0.1", family="AF_INET")
    with subprocess.Popen([java, "-c", text, main, "--port", "1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = port_holder(int(process.stdout.readline()))
        process.kill()
    assert found == PortHolder(process.pid, f"{java} {main}")


def test_a_process_that_may_not_be_seen_is_another_users() -> None:
    assert str(PortHolder()) == "a process of another user"


def test_a_run_says_what_has_the_port_of_the_server_that_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_LOCAL_CONNECT_DISCOVERY", str(tmp_path / "server.json"))
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        environment = {"QUEUE_PIPELINE_SPARK_CONF": f"spark.local.connect.server.port={port}"}
        words = taken_port(spark_config(None, environment))
    assert words is not None
    assert words.startswith(f"port {port} is taken by process {os.getpid()} (")
    assert words.endswith("choose one with QUEUE_PIPELINE_SPARK_CONF='spark.local.connect.server.port=N'")
    assert taken_port(spark_config(None, environment)) is None
    assert taken_port(spark_config("local[2]", {})) is None
