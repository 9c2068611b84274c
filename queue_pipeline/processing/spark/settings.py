"""The settings of Spark, and the Spark properties that they mean."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from queue_pipeline.errors import ConfigurationError

ENVIRONMENT_VARIABLE = "QUEUE_PIPELINE_SPARK"
PROPERTIES_VARIABLE = "QUEUE_PIPELINE_SPARK_CONF"
DEFAULT = "warm:local[*]"
FORMS = (
    "warm:local[*] (a local server that stays up between runs), local[*], spark://host:7077, yarn, "
    "k8s://https://host:port or sc://host:15002 (Spark Connect)"
)
DRIVER_MEMORY = "2g"
WARM_PORT = 15_012
"""Where a warm server listens if no process has the port. Not 15002: a Connect server of one's own is found there."""
PORT_PROPERTY = "spark.local.connect.server.port"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
JAVA_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables from which Java takes options by itself."""

_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s)://.+|yarn|local-cluster\[.+\]")
_KEY = re.compile(r"spark(\.[A-Za-z0-9_/-]+)+")
# Given here they would be ignored, or quietly point somewhere else than the setting says.
_ELSEWHERE = {
    "spark.master": ENVIRONMENT_VARIABLE,
    "spark.remote": ENVIRONMENT_VARIABLE,
    "spark.local.connect.reuse": f"{ENVIRONMENT_VARIABLE}, as warm:…",
    "spark.pyspark.python": "PYSPARK_PYTHON",
    "spark.pyspark.driver.python": "PYSPARK_DRIVER_PYTHON",
}


def spark_config(setting: str | None = None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The Spark properties of a setting; without one, of the environment, else of the default."""
    environment = os.environ if environment is None else environment
    chosen = setting or environment.get(ENVIRONMENT_VARIABLE) or DEFAULT
    properties = {**_properties_of(chosen), **further_properties(environment.get(PROPERTIES_VARIABLE) or "")}
    if _runs_here(properties) and interpreter(environment.get("PYSPARK_PYTHON", sys.executable)) == interpreter():
        properties = {**WORKERS, **properties}
    if LOOPBACK.items() <= properties.items() and not _chooses_collector(environment, properties):
        return {**COLLECTOR, **properties}
    return properties


def interpreter(executable: str | None = None) -> str:
    """One name for a Python, by default this process's: `python` and `python3` of an environment are the same."""
    path = Path(executable or sys.executable)
    return str(path.with_name(path.resolve().name))


def _chooses_collector(environment: Mapping[str, str], properties: Mapping[str, str]) -> bool:
    """Whether the user chose Java's garbage collector: given two, Java does not start."""
    texts = [environment.get(name, "") for name in JAVA_OPTIONS]
    texts += [value for name, value in properties.items() if "JavaOptions" in name]
    return any("GC" in text for text in [*texts, spark_defaults(environment)])


def spark_defaults(environment: Mapping[str, str]) -> str:
    """The content of Spark's file of defaults."""
    folder = environment.get("SPARK_CONF_DIR") or (
        f"{environment['SPARK_HOME']}/conf" if environment.get("SPARK_HOME") else None
    )
    if folder:
        with contextlib.suppress(OSError):
            return (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8")
    return ""


def further_properties(text: str) -> dict[str, str]:
    """Properties as the user typed them: `key=value`, separated by semicolons or line ends."""
    found: dict[str, str] = {}
    for pair in re.split(r"[;\n]", text):
        if not (pair := pair.strip()):
            continue
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not _KEY.fullmatch(key):
            problem = "is not key=value with a key such as spark.executor.memory"
        elif key in _ELSEWHERE:
            problem = f"does not belong there; set {_ELSEWHERE[key]}"
        elif key in found:
            problem = "is there twice; give each property once"
        else:
            found[key] = value
            continue
        # A value may be a secret.
        named = f"{key}=…" if equals else pair
        raise ConfigurationError(f"{PROPERTIES_VARIABLE} holds {named!r}, which {problem}")
    return found


def master_addresses(master: str) -> list[tuple[str, int]]:
    """Host and port of each master of a standalone cluster: spark://one:7077,two:7077; none for any other setting."""
    if not master.startswith("spark://"):
        return []
    try:
        addresses = [urlsplit(f"spark://{one}") for one in master.removeprefix("spark://").split(",")]
        found = [(address.hostname, address.port) for address in addresses]
    except ValueError:
        found = [(None, None)]
    named = [(host, port) for host, port in found if host and port]
    if len(named) < len(found):
        raise ConfigurationError(f"{ENVIRONMENT_VARIABLE} is {master!r}; a master is spark://host:7077, with its port")
    return named


def without_parameters(setting: str) -> str:
    """A setting for people: without the parameters of sc://host:port/;name=value, which may hold a token."""
    return setting.partition(";")[0]


def _properties_of(chosen: str) -> dict[str, str]:
    if chosen.startswith("sc://"):
        return {**SESSION, "spark.remote": chosen}
    warm = chosen.startswith("warm:")
    master = chosen.removeprefix("warm:")
    if not _MASTER.fullmatch(master) or (warm and not master.startswith("local")):
        raise ConfigurationError(f"{ENVIRONMENT_VARIABLE} is {without_parameters(chosen)!r}; use one of: {FORMS}")
    if warm:
        return {**SESSION, **DRIVER, **LOOPBACK, **WARM, "spark.remote": master}
    driver = {**DRIVER, **(LOOPBACK if _stays_here(master) else CLUSTER)}
    return {**SESSION, **driver, "spark.master": master, "spark.app.name": "queue_pipeline"}


def _runs_here(properties: Mapping[str, str]) -> bool:
    """Whether tasks run on this machine, in workers of this program's own Python unless the user names another."""
    return properties.get("spark.master", properties.get("spark.remote", "")).startswith("local")


def _stays_here(master: str) -> bool:
    """Whether executors reach the driver by the loopback address."""
    if master.startswith("local"):
        return True
    addresses = master_addresses(master)
    return bool(addresses) and all(host == "localhost" or host.startswith("127.") for host, _ in addresses)


SESSION = {
    "spark.sql.session.timeZone": "UTC",
    # A batch is small for Spark: two hundred shuffle partitions would be two hundred empty tasks.
    "spark.sql.shuffle.partitions": "4",
    # Plans hold their batch; a server that remembered sixteen of them a session would run out of memory.
    "spark.connect.session.planCache.enabled": "false",
    # Spark keeps what it compiled by class loader, and with isolation every session has its own: each attempt, which is
    # a session, would be compiled anew (15 of 40 microseconds of Java's time a message in the worked example).
    "spark.sql.artifact.isolation.enabled": "false",
    "spark.sql.artifact.isolation.alwaysApplyClassloader": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # For a limit in bytes Spark would measure all rows that it has gathered, one by one, on the way to a Python worker;
    # for structs that takes long. The part that a task was given bounds what it reads and writes.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    # Without it Spark refuses to read a queue by `sql_queue`, which has the database filter.
    PUSHDOWN: "true",
    # Spark analyses some queries twice, by its old and its new analyser, and compares them.
    "spark.sql.analyzer.singlePassResolver.dualRunWithLegacy": "false",
    # Batches arrive as local relations; this rule would compute on them while planning, in one thread.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
DRIVER = {
    "spark.driver.memory": DRIVER_MEMORY,
    "spark.sql.ui.retainedExecutions": "10",
    # A thread of these pools keeps the session that it was made in, with its views, until it was idle for a minute.
    # A pool makes a thread for each query until it is full, by default at 1,024: 210 of 300 ended sessions were kept.
    "spark.sql.shuffleExchange.maxThreadThreshold": "32",
    "spark.sql.broadcastExchange.maxThreadThreshold": "32",
    "spark.sql.resultQueryStage.maxThreadThreshold": "64",
}
WARM = {
    "spark.local.connect.reuse": "true",
    PORT_PROPERTY: str(WARM_PORT),
}
COLLECTOR = {
    # Batches are large arrays that live for a second: a collector that runs beside the work spends more on them.
    "spark.driver.defaultJavaOptions": "-XX:+UseParallelGC",
}
WORKERS = {
    "spark.python.daemon.module": "queue_pipeline.processing.spark.worker_daemon",
}
LOOPBACK = {
    # Spark's UI would listen on every address of the machine, whatever the driver is bound to.
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
CLUSTER = {
    # Any port: the seventeenth driver of a machine finds none from 4040 on and would not start. The master links to it.
    "spark.ui.port": "0",
}
