"""One Spark cluster for the whole folder: its master, workers and Connect server are processes of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from queue_pipeline_tests.support.spark.spark_cluster import JAVA_VARIABLE, QUICK
from tools.cluster.standalone import StandaloneCluster


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneCluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(JAVA_VARIABLE, QUICK)
        cluster = StandaloneCluster(tmp_path_factory.mktemp("cluster"))
    with cluster:
        yield cluster
