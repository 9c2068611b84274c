import importlib.util
import re
import socket
import sys
import time
from pathlib import Path

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration.resources import SparkResource
from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.spark.session import check_reachable, prepare_environment
from queue_pipeline.processing.spark.settings import further_properties, spark_config


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


@pytest.mark.parametrize(
    "master", ["spark://127.0.0.1:7077", "spark://localhost:7077", "spark://127.0.0.1:1,127.0.0.2:2"]
)
def test_a_cluster_on_this_machine_is_driven_over_the_loopback_address_only(master):
    config = spark_config(master, {})
    assert config["spark.driver.host"] == config["spark.driver.bindAddress"] == "127.0.0.1"
    # The UI would listen on every address.
    assert config["spark.ui.enabled"] == "false"


@pytest.mark.parametrize(
    "master", ["spark://host:7077", "spark://127.0.0.1:7077,host:7077", "yarn", "k8s://https://host"]
)
def test_on_any_other_cluster_executors_find_the_driver_and_its_ui_finds_a_port(master):
    config = spark_config(master, {})
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.ui.enabled"} & set(config)
    assert config["spark.ui.port"] == "0"


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077", "spark://host:7077", "yarn"])
def test_a_driver_in_the_run_has_memory_for_its_batches(master):
    assert spark_config(master, {})["spark.driver.memory"] == "2g"


@pytest.mark.parametrize("master", ["spark://host", "spark://:7077", "spark://a:7077,b", "spark://a:x"])
def test_a_master_without_host_or_port_is_refused(master):
    with pytest.raises(ConfigurationError, match="a master is spark://host:7077, with its port"):
        spark_config(master, {})


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("", {}),
        (" ; \n;", {}),
        ("spark.executor.memory=4g", {"spark.executor.memory": "4g"}),
        ("spark.speculation=true; spark.a.b = c", {"spark.speculation": "true", "spark.a.b": "c"}),
        ("spark.a=1\nspark.b=2\n", {"spark.a": "1", "spark.b": "2"}),
        ("spark.executor.extraJavaOptions=-Da=b -Dc=d", {"spark.executor.extraJavaOptions": "-Da=b -Dc=d"}),
        ("spark.kubernetes.driver.label.a/b-c=", {"spark.kubernetes.driver.label.a/b-c": ""}),
    ],
)
def test_further_properties_are_pairs(text, properties):
    assert further_properties(text) == properties


@pytest.mark.parametrize(
    ("bad", "reported"),
    [
        ("spark.executor.memory", "is not key=value"),
        ("executor.memory=4g", "is not key=value"),
        ("spark.a b=1", "is not key=value"),
        ("spark.master=yarn", "set QUEUE_PIPELINE_SPARK"),
        ("spark.remote=sc://host", "set QUEUE_PIPELINE_SPARK"),
        ("spark.pyspark.python=python3", "set PYSPARK_PYTHON"),
        ("spark.good=2", "twice"),
    ],
)
def test_an_invalid_pair_is_named(bad, reported):
    with pytest.raises(ConfigurationError) as caught:
        spark_config("yarn", {"QUEUE_PIPELINE_SPARK_CONF": f"spark.good=1;{bad};spark.fine=2"})
    key, equals, value = bad.partition("=")
    assert repr(f"{key}=…" if equals else key) in str(caught.value)
    assert reported in str(caught.value)
    assert not value or f"={value}" not in str(caught.value), "a value may be a secret"
    assert "QUEUE_PIPELINE_SPARK_CONF" in str(caught.value)
    assert "spark.fine" not in str(caught.value)


def test_the_token_of_an_invalid_setting_is_not_shown():
    with pytest.raises(ConfigurationError, match=r"QUEUE_PIPELINE_SPARK is 'cs://host:15002/'; use one of: ") as caught:
        spark_config("cs://host:15002/;token=secret", {})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("setting", [None, "local[2]", "sc://host", "spark://127.0.0.1:7077", "yarn"])
def test_further_properties_win_on_every_kind_of_spark(setting):
    environment = {"QUEUE_PIPELINE_SPARK_CONF": "spark.sql.shuffle.partitions=8;spark.speculation=true"}
    plain = spark_config(setting, {})
    assert spark_config(setting, environment) == {
        **plain,
        "spark.sql.shuffle.partitions": "8",
        "spark.speculation": "true",
    }


def test_every_setting_on_the_page_about_clusters_is_read_as_it_says():
    page = (Path(__file__).parents[4] / "docs/spark-clusters.md").read_text()
    properties = re.findall(r"QUEUE_PIPELINE_SPARK_CONF='([^']+)'", page)
    settings = re.findall(r"QUEUE_PIPELINE_SPARK='?([^\s']+)", page)
    assert (len(properties), len(settings)) == (6, 5)
    for setting in settings:
        for text in properties:
            found = spark_config(setting, {"QUEUE_PIPELINE_SPARK_CONF": text})
            assert {key: found[key] for key in further_properties(text)} == further_properties(text)


def test_a_connect_server_is_named_by_its_address_and_keeps_its_own_memory():
    config = spark_config("sc://host:15002/;token=secret", {})
    assert config["spark.remote"] == "sc://host:15002/;token=secret"
    assert not {"spark.master", "spark.local.connect.reuse", "spark.driver.memory"} & set(config)


@pytest.mark.parametrize("setting", ["locl[*]", "warm:yarn", "warm:", "warm:spark://host", "http://host", "local[x]"])
def test_anything_else_is_refused_with_the_valid_forms(setting):
    with pytest.raises(ConfigurationError) as caught:
        spark_config(setting, {})
    assert repr(setting) in str(caught.value)
    assert "QUEUE_PIPELINE_SPARK" in str(caught.value)
    assert "sc://host:15002" in str(caught.value)


@pytest.mark.parametrize("setting", [None, "local[2]", "sc://host", "yarn"])
def test_times_are_utc_on_every_kind_of_spark(setting):
    assert spark_config(setting, {})["spark.sql.session.timeZone"] == "UTC"


def test_a_missing_connect_server_is_noticed_at_once(closed_port):
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


def test_a_missing_master_is_noticed_at_once(closed_port):
    with pytest.raises(SparkUnavailableError) as caught:
        check_reachable({"spark.master": f"spark://127.0.0.1:{closed_port}"})
    assert f"no Spark master answers at 127.0.0.1:{closed_port}" in str(caught.value)
    assert "scripts/cluster start" in str(caught.value)


def test_one_of_several_masters_has_to_be_reachable(closed_port):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        check_reachable({"spark.master": f"spark://127.0.0.1:{closed_port},127.0.0.1:{port}"})


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


def test_workers_use_this_python_unless_another_is_chosen(monkeypatch):
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


# --- Java's garbage collector --------------------------------------------------------------------------------

COLLECTOR = "spark.driver.defaultJavaOptions"


@pytest.mark.parametrize("setting", ["warm:local[*]", "local[2]"])
def test_a_spark_of_this_machine_collects_garbage_by_throughput(setting):
    assert spark_config(setting, {})[COLLECTOR] == "-XX:+UseParallelGC"


def test_any_other_spark_is_left_to_its_own():
    assert COLLECTOR not in spark_config("sc://somewhere:15002", {})
    assert COLLECTOR not in spark_config("spark://somewhere:7077", {})


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS"])
def test_a_chosen_collector_gets_no_second_one_beside_it(variable):
    """Java does not start with two."""
    assert COLLECTOR not in spark_config(None, {variable: "-Xmx1g -XX:+UseSerialGC"})
    assert COLLECTOR in spark_config(None, {variable: "-Xmx1g"})


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_a_collector_among_the_further_properties_is_the_only_one(name):
    chosen = spark_config(None, {"QUEUE_PIPELINE_SPARK_CONF": f"{name}=-XX:+UseG1GC"})
    assert [value for value in chosen.values() if "GC" in value] == ["-XX:+UseG1GC"]


@pytest.mark.parametrize(("variable", "folder"), [("SPARK_CONF_DIR", ""), ("SPARK_HOME", "conf")])
def test_a_collector_of_sparks_own_defaults_is_respected(tmp_path, variable, folder):
    (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / folder / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:+UseZGC\n")
    assert COLLECTOR not in spark_config(None, {variable: str(tmp_path)})
    assert COLLECTOR in spark_config(None, {variable: str(tmp_path / "nowhere")})


DAEMON = "spark.python.daemon.module"


@pytest.mark.parametrize("setting", ["local[2]", "warm:local[*]"])
def test_workers_of_this_machine_are_forked_with_all_loaded(setting):
    module = spark_config(setting, {})[DAEMON]
    assert importlib.util.find_spec(module) is not None
    assert spark_config(setting, {"PYSPARK_PYTHON": sys.executable})[DAEMON] == module
    assert spark_config(setting, {"QUEUE_PIPELINE_SPARK_CONF": f"{DAEMON}=their.own"})[DAEMON] == "their.own"


@pytest.mark.parametrize("setting", ["spark://127.0.0.1:7077", "yarn", "k8s://https://host:6443", "sc://host:15002"])
def test_workers_that_may_lack_the_package_are_sparks_own(setting):
    assert DAEMON not in spark_config(setting, {})


def test_workers_of_another_python_are_sparks_own():
    assert DAEMON not in spark_config("local[2]", {"PYSPARK_PYTHON": "/usr/bin/python3"})
