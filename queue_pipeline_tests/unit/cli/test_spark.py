"""`queue-pipeline spark` without a Spark: what it finds, and what it refuses."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pyspark.sql.connect.local_server import Discovery

from queue_pipeline.processing.spark import warm_server as warm_spark
from queue_pipeline.processing.spark.folder import private_folders
from queue_pipeline.processing.spark.settings import spark_config
from queue_pipeline_tests.support.command_line import run
from queue_pipeline_tests.support.waiting import eventually

TOKEN = "5ecret-token"
# Only its command line distinguishes a Spark server from another process.
SERVER = [
    sys.executable,
    "-c",
    "import time; time.sleep(600)",
    "org.apache.spark.sql.connect.service.SparkConnectServer",
]


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server of another user is found."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))


@pytest.fixture
def discovery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "connect.json"
    monkeypatch.setenv("SPARK_LOCAL_CONNECT_DISCOVERY", str(path))
    monkeypatch.delenv("QUEUE_PIPELINE_SPARK", raising=False)
    return path


def record(path: Path, pid: int) -> None:
    details = {"host": "localhost", "port": 15002, "token": TOKEN, "pid": pid, "spark_version": "4.3.0"}
    path.write_text(json.dumps(details))


def test_where_no_server_was_started_none_is_found(discovery: Path) -> None:
    assert run("spark", "status", "--json").json == {"setting": "warm:local[*]", "server": None, "others": []}
    assert "no Spark server is kept warm" in run("spark", "status").out
    assert run("spark", "stop").out == "no Spark server was running\n"


def test_the_token_of_a_connect_server_is_never_shown(discovery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUE_PIPELINE_SPARK", f"sc://spark.example:15002/;token={TOKEN}")
    assert run("spark", "status", "--json").json["setting"] == "sc://spark.example:15002/"
    for words in ("spark", "status"), ("spark", "start"):
        shown = run(*words)
        assert "sc://spark.example:15002/" in shown.out + shown.err
        assert TOKEN not in shown.out + shown.err


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pid": "x", "host": "h", "port": 1, "spark_version": "4"}'])
def test_an_empty_file_describes_no_server(discovery: Path, text: str) -> None:
    discovery.write_text(text)
    assert warm_spark.find() is None


def test_a_process_that_is_something_else_is_no_server(discovery: Path) -> None:
    record(discovery, os.getpid())
    assert warm_spark.find() is None
    assert run("spark", "stop").out == "no Spark server was running\n"


def test_a_server_is_shown_without_its_token_and_stopped(discovery: Path) -> None:
    with subprocess.Popen(SERVER) as server:
        try:
            record(discovery, server.pid)
            eventually(warm_spark.find)
            shown = run("spark", "status")
            assert f"warm at sc://localhost:15002: process {server.pid}" in shown.out
            found = run("spark", "status", "--json")
            assert found.json["server"]["memory_bytes"] > 1_000_000
            assert TOKEN not in shown.out + found.out
            assert run("spark", "stop").out == f"stopped Spark, process {server.pid}\n"
        finally:
            # A test that failed would wait for it.
            server.kill()
    assert server.returncode == -15
    assert warm_spark.find() is None


def test_a_server_that_no_file_describes_is_ended_before_another_is_started(discovery: Path) -> None:
    """Its starter died before it had written the file. Spark would find the process and never start another."""
    pid_file = Path(Discovery(str(discovery)).daemon_pid_path)
    with subprocess.Popen(SERVER) as server:
        try:
            record(discovery, server.pid)
            pid_file.write_text(str(server.pid))
            eventually(warm_spark.find)
            warm_spark.end_unfinished(spark_config())
            assert server.poll() is None, "a server that is described is in use"
            discovery.unlink()
            warm_spark.end_unfinished(spark_config())
            assert server.wait(10) == -9
        finally:
            server.kill()


def test_a_process_that_has_the_id_of_a_former_server_is_left_alone(discovery: Path) -> None:
    pid_file = Path(Discovery(str(discovery)).daemon_pid_path)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as other:
        try:
            pid_file.write_text(str(other.pid))
            warm_spark.end_unfinished(spark_config())
            assert other.poll() is None
        finally:
            other.kill()


def test_each_project_and_each_setting_has_a_server_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_CONNECT_DISCOVERY", raising=False)
    settings = [
        {"DAGSTER_HOME": str(tmp_path / project), "QUEUE_PIPELINE_SPARK": spark, "QUEUE_PIPELINE_SPARK_CONF": further}
        for project in ("shop", "bank")
        for spark in ("warm:local[1]", "warm:local[2]")
        for further in ("", "spark.driver.memory=4g")
    ]
    files = set()
    for each in settings:
        for name, value in each.items():
            monkeypatch.setenv(name, value)
        files.add(warm_spark.discovery_file())
        assert warm_spark.discovery_file() in files
    assert len(files) == len(settings)


def test_a_server_of_another_project_is_not_used_and_listed_with_the_command_that_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_LOCAL_CONNECT_DISCOVERY", raising=False)
    monkeypatch.setenv("QUEUE_PIPELINE_SPARK", "warm:local[1]")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "shop"))
    config = spark_config()
    with private_folders(config):
        theirs = Path(os.environ["SPARK_LOCAL_CONNECT_DISCOVERY"])
        local = Path(os.environ["SPARK_LOCAL_DIRS"])
    assert "SPARK_LOCAL_CONNECT_DISCOVERY" not in os.environ
    assert [stat.S_IMODE(path.stat().st_mode) for path in (theirs.parent, local)] == [0o700, 0o700]
    with subprocess.Popen(SERVER) as server:
        try:
            record(theirs, server.pid)
            eventually(warm_spark.find)
            assert warm_spark.starts_beside(config) == []
            monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "bank"))
            assert warm_spark.find() is None
            output = run("spark", "status").out
            assert "no Spark server is kept warm for this project" in output
            assert f"another one, for {tmp_path}/shop/queue_pipeline: process {server.pid}" in output
            assert f"SPARK_LOCAL_CONNECT_DISCOVERY={theirs} queue-pipeline spark stop" in output
            (other,) = warm_spark.starts_beside(spark_config())
            assert (other.pid, other.discovery) == (server.pid, str(theirs))
            assert run("spark", "stop").out == "no Spark server was running\n"
            monkeypatch.setenv("SPARK_LOCAL_CONNECT_DISCOVERY", str(theirs))
            assert run("spark", "stop").out == f"stopped Spark, process {server.pid}\n"
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("setting", "chosen"),
    [("sc://host:15002", {}), ("local[1]", {"SPARK_LOCAL_DIRS": "/data"}), ("local[1]", {"SPARK_CONF_DIR": "conf"})],
)
def test_folders_that_the_user_chose_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, chosen: dict[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.local.dir /data\n")
    for name in ("SPARK_LOCAL_DIRS", "SPARK_CONF_DIR", "SPARK_LOCAL_CONNECT_DISCOVERY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    with private_folders(spark_config(setting)):
        assert dict(os.environ) == before


def test_only_a_setting_that_keeps_a_server_can_start_one(discovery: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUEUE_PIPELINE_SPARK", "sc://cluster:15002")
    refused = run("spark", "start")
    assert refused.code == 2
    assert "keeps no server of its own; use for example warm:local[*]" in refused.error


def test_commands_that_need_neither_load_neither_dagster_nor_spark(tmp_path: Path) -> None:
    look = (
        "import sys; from queue_pipeline.cli import main; "
        "lines = 'install orders', 'send orders --body {} --count 5', 'status --json'; "
        "codes = [main(line.split()) for line in lines]; "
        "heavy = {'dagster', 'pyspark', 'pandas', 'pyarrow'} & set(sys.modules); "
        "sys.exit(f'{codes} {heavy}' if any(codes) or heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", look], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("line", ["--help", "errors retry --help"])
def test_help_loads_no_driver(line: str) -> None:
    look = (
        f"import sys; from queue_pipeline.cli import main; code = main({line.split()!r}); "
        "heavy = {'sqlalchemy', 'psycopg', 'pyodbc'} & set(sys.modules); "
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_group_without_a_command_shows_its_help() -> None:
    for group in ("spark", "claims"):
        shown = run(group)
        assert shown.code == 2
        assert "Commands:" in shown.err
