"""The Spark of a run's own, without a Spark: when a server is started and ended."""

import pytest

from queue_pipeline.processing.spark import run_spark
from queue_pipeline.processing.spark.run_spark import RunSpark
from queue_pipeline.processing.spark.settings import spark_config


class Server:
    """Stands for a server of a run's own."""

    address = "sc://localhost:1"

    def __init__(self, servers):
        self.is_ended = False
        servers.append(self)

    def end(self):
        self.is_ended = True


def test_a_server_that_takes_no_session_is_ended_before_another_is_started(monkeypatch):
    servers = []

    def connect_to(address, config):
        raise ConnectionError

    monkeypatch.setattr(run_spark, "OwnServer", lambda config: Server(servers))
    monkeypatch.setattr(run_spark, "connect_to", connect_to)
    spark = RunSpark(lambda: None, spark_config("warm:local[1]", {}))
    spark.isolate(True)
    for _ in range(2):
        with pytest.raises(ConnectionError):
            spark.session()
    assert [server.is_ended for server in servers] == [True, False]
    spark.close()
    assert all(server.is_ended for server in servers)
