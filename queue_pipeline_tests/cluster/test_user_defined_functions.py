"""Functions that a module makes with `@udf` and `@pandas_udf` when it is loaded run on the executors of a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.command_line import environment
from queue_pipeline_tests.support.spark.spark_cluster import JAVA_VARIABLE, QUICK
from tools.cluster.standalone import StandaloneCluster
from tools.postgres_cluster import PostgresCluster

DAGSTER = str(Path(sys.executable).with_name("dagster"))
SHOP = "queue_pipeline_tests.support.spark.udf_shop"
MESSAGES = 3

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.parametrize("access", ["master", "remote"])
def test_functions_work_on_a_cluster_and_through_its_connect_server(
    cluster: StandaloneCluster, postgres: PostgresCluster, tmp_path: Path, access: str
) -> None:
    postgres.create_database(f"functions_{access}")
    url = postgres.url(f"functions_{access}")
    (tmp_path / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    settings = {
        **cluster.environment,
        "QUEUE_PIPELINE_DATABASE": url,
        "QUEUE_PIPELINE_SPARK": getattr(cluster, access),
        "DAGSTER_HOME": str(tmp_path),
        "PYTHONWARNINGS": "ignore",
        "UDF_ROUTE": "executors",
        JAVA_VARIABLE: QUICK,
    }
    with QueueTransport(url) as transport:
        transport.install("orders", plain_queues=["billing", "error"])
        transport.send("orders", [new_message('{"text": "abc"}') for _ in range(MESSAGES)])
        ran = subprocess.run(
            [DAGSTER, "job", "execute", "-m", SHOP, "-j", "words_pipeline"],
            cwd=tmp_path,
            env=environment(**settings),
            capture_output=True,
            text=True,
            timeout=500,
        )
        assert ran.returncode == 0, ran.stderr[-5000:]
        sent = [list(json.loads(shown.body).values()) for shown in transport.show("billing", 100)]
        assert (transport.peek("orders"), transport.peek("error"), transport.claims.list()) == (0, 0, [])
    loud = "ABC!"
    assert sent == [[loud, loud, ["a", "b", "c"], loud, loud, loud, loud, ["abc"], loud, loud]] * MESSAGES
