"""The command lines of Spark's programs, and the environment that they run in.

pip's pyspark has the classes and `bin/spark-class`, and none of the scripts that start a master or a worker.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

from tools.cluster.state import HOST

HOME = Path(pyspark.__file__).resolve().parent
EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
CONNECT_IS_UP = "Spark Connect server started at"
"""In its log. That the port answers does not say who does."""
EXECUTOR_MEMORY_MB = 1024
"""Spark's own default, which a driver that says nothing else asks for."""
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
"""Read by the Connect server and by its clients."""
IDLE_SECONDS = 15
"""How long the Connect server keeps executors that have nothing to do."""

_SPARK_CLASS = str(HOME / "bin" / "spark-class")
_SPARK_SUBMIT = str(HOME / "bin" / "spark-submit")
_OF_SPARK = ("SPARK_", "PYSPARK_", "HADOOP_", "YARN_")


def master(port: int, ui_port: int) -> list[str]:
    """The master."""
    ports = ["--port", str(port), "--webui-port", str(ui_port)]
    return [_SPARK_CLASS, "org.apache.spark.deploy.master.Master", "--host", HOST, *ports]


def worker(master_url: str, folder: Path, port: int, ui_port: int, *, cores: int, memory: str) -> list[str]:
    """A worker, which keeps what its executors write in a folder."""
    ports = ["--port", str(port), "--webui-port", str(ui_port)]
    offer = ["--cores", str(cores), "--memory", memory, "--work-dir", str(folder)]
    return [_SPARK_CLASS, "org.apache.spark.deploy.worker.Worker", "--host", HOST, *ports, *offer, master_url]


def connect(master_url: str, folder: Path, port: int, *, cores: int) -> list[str]:
    """The Connect server, as sbin/start-connect-server.sh starts it but in the foreground."""
    properties = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": port,
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": folder / "warehouse",
        "spark.executor.cores": cores,
        # An application holds its cores until it ends, and this one does not: drivers of one's own would wait forever.
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.executorIdleTimeout": f"{IDLE_SECONDS}s",
        "spark.dynamicAllocation.cachedExecutorIdleTimeout": f"{IDLE_SECONDS}s",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.timeout": f"{IDLE_SECONDS}s",
    }
    options = [word for key, value in properties.items() for word in ("--conf", f"{key}={value}")]
    service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--name", "Spark Connect server"]
    return [_SPARK_SUBMIT, *service, "--master", master_url, *options, "spark-internal"]


def environment(folder: Path, token: str, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """What Spark's programs see: nothing of a Spark that was configured before, this Python, and this folder.

    Secrets are here and in the file of defaults, never in a command line, which every user can see.
    """
    given = os.environ if given is None else given
    kept = {name: value for name, value in given.items() if not name.startswith(_OF_SPARK)}
    return {
        **kept,
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        # Java's own temporary files: what clients upload to the Connect server.
        "SPARK_SUBMIT_OPTS": f'"-Djava.io.tmpdir={folder / "local"}"',
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # The daemons only talk: little memory, no compiler that pays off after hours.
        "SPARK_DAEMON_MEMORY": "512m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        # On a port that is taken they would quietly move to the next one. Submitting over HTTP is not needed.
        "SPARK_MASTER_OPTS": "-Dspark.port.maxRetries=0 -Dspark.master.rest.enabled=false",
        "SPARK_WORKER_OPTS": "-Dspark.port.maxRetries=0",
        # What sbin/start-connect-server.sh says: the server itself is no client.
        "SPARK_CONNECT_MODE": "0",
        TOKEN_VARIABLE: token,
    }
