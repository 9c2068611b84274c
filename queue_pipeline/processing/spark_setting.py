"""The one setting that names Spark, and the configuration that it stands for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from queue_pipeline.transport.errors import ConfigurationError

ENVIRONMENT_VARIABLE = "QUEUE_PIPELINE_SPARK"
DEFAULT = "warm:local[*]"
FORMS = (
    "warm:local[*] (a local server that stays up between runs), local[*], spark://host:7077, yarn, "
    "k8s://https://host:port or sc://host:15002 (Spark Connect)"
)
DRIVER_MEMORY = "2g"

_MASTER = re.compile(r"local(\[(\*|\d+)(,\d+)?\])?|(spark|k8s)://.+|yarn|local-cluster\[.+\]")


def spark_config(setting: str | None = None, environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The Spark properties of a setting; without one, of the environment, else of the default."""
    environment = os.environ if environment is None else environment
    chosen = setting or environment.get(ENVIRONMENT_VARIABLE) or DEFAULT
    if chosen.startswith("sc://"):
        return {**SESSION, "spark.remote": chosen}
    warm = chosen.startswith("warm:")
    master = chosen.removeprefix("warm:")
    if not _MASTER.fullmatch(master) or (warm and not master.startswith("local")):
        raise ConfigurationError(f"{ENVIRONMENT_VARIABLE} is {chosen!r}; use one of: {FORMS}")
    if warm:
        return {**SESSION, **LOCAL, "spark.remote": master, "spark.local.connect.reuse": "true"}
    local = LOCAL if master.startswith("local") else {}
    return {**SESSION, **local, "spark.master": master, "spark.app.name": "queue_pipeline"}


SESSION = {
    "spark.sql.session.timeZone": "UTC",
    # A batch is small for Spark: two hundred shuffle partitions would be two hundred empty tasks.
    "spark.sql.shuffle.partitions": "4",
    # Plans hold their batch; a server that remembered sixteen of them a session would run out of memory.
    "spark.connect.session.planCache.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # Batches arrive as local relations; this rule would compute on them while planning, in one thread.
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
LOCAL = {
    "spark.driver.memory": DRIVER_MEMORY,
    "spark.ui.enabled": "false",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
