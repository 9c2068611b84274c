import socket
import time

import pytest

from queue_pipeline.orchestration.spark_resource import SparkResource
from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.spark_session import check_reachable, prepare_environment
from queue_pipeline.processing.spark_setting import spark_config
from queue_pipeline.transport.errors import ConfigurationError


@pytest.fixture
def closed_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_without_a_setting_spark_stays_warm_on_this_machine():
    config = spark_config(environment={})
    assert (config["spark.remote"], config["spark.local.connect.reuse"]) == ("local[*]", "true")
    assert "spark.master" not in config


def test_the_environment_names_spark_and_an_argument_wins_over_it():
    environment = {"QUEUE_PIPELINE_SPARK": "local[3]"}
    assert spark_config(environment=environment)["spark.master"] == "local[3]"
    assert spark_config("local[1]", environment)["spark.master"] == "local[1]"
    assert spark_config(environment={"QUEUE_PIPELINE_SPARK": ""})["spark.remote"] == "local[*]"


@pytest.mark.parametrize(
    "master", ["local", "local[2]", "local[*]", "local[2,3]", "spark://host:7077", "yarn", "k8s://https://host:6443"]
)
def test_any_master_of_spark_can_be_named(master):
    config = spark_config(master, {})
    assert config["spark.master"] == master
    assert "spark.remote" not in config
    assert ("spark.driver.bindAddress" in config) == master.startswith("local")


def test_a_connect_server_is_named_by_its_address_and_keeps_its_own_memory():
    config = spark_config("sc://host:15002/;token=secret", {})
    assert config["spark.remote"] == "sc://host:15002/;token=secret"
    assert not {"spark.master", "spark.local.connect.reuse", "spark.driver.memory"} & set(config)


@pytest.mark.parametrize("setting", ["locl[*]", "warm:yarn", "warm:", "warm:spark://host", "http://host", "local[x]"])
def test_anything_else_is_refused_with_the_forms_that_there_are(setting):
    with pytest.raises(ConfigurationError) as caught:
        spark_config(setting, {})
    assert repr(setting) in str(caught.value)
    assert "QUEUE_PIPELINE_SPARK" in str(caught.value)
    assert "sc://host:15002" in str(caught.value)


@pytest.mark.parametrize("setting", [None, "local[2]", "sc://host", "yarn"])
def test_times_are_utc_whatever_spark_it_is(setting):
    assert spark_config(setting, {})["spark.sql.session.timeZone"] == "UTC"


def test_a_connect_server_that_is_not_there_is_noticed_at_once(closed_port):
    resource = SparkResource(spark_config=spark_config(f"sc://127.0.0.1:{closed_port}/;token=hush", {}))
    started = time.monotonic()
    with pytest.raises(SparkUnavailableError) as caught:
        _ = resource.spark_session
    # Left alone, the client would try for minutes.
    assert time.monotonic() - started < 60
    assert f"127.0.0.1:{closed_port} does not answer" in str(caught.value)
    assert "QUEUE_PIPELINE_SPARK" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_a_server_that_listens_is_reachable():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        check_reachable({"spark.remote": f"sc://127.0.0.1:{listener.getsockname()[1]}"})


def test_without_java_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="Java 17 or newer and there is none; install it"):
        check_reachable({"spark.master": "local[*]"})


def test_a_java_that_is_too_old_is_named(monkeypatch, tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match=r"is 11; set JAVA_HOME"):
        check_reachable({"spark.remote": "local[*]"})


def test_workers_use_this_python_unless_somebody_chose_another(monkeypatch):
    import os
    import sys

    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "/other/python")
    prepare_environment()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == "/other/python"
    monkeypatch.delenv("PYSPARK_PYTHON")


def test_a_run_that_was_terminated_before_it_needed_spark_starts_none():
    resource = SparkResource(spark_config=spark_config("local[1]", {}))
    resource.interrupt()
    with pytest.raises(SparkUnavailableError, match="terminated"):
        _ = resource.spark_session
