"""Runs that meet a locked table or a silent network: no message fails of it, none is lost or duplicated."""

import contextlib
from urllib.parse import quote

import pytest

from queue_pipeline.errors import DatabaseUnavailableError, LockTimeoutError
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.support.databases.partition import Partition
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import declare, fill, run

ORDERS = 20


def opened(postgresql, query, port=None):
    url = postgresql.url if port is None else f"{postgresql.url.rpartition(':')[0]}:{port}/postgres"
    return QueueTransport(f"{url}?{query}", schema=postgresql.schema, endpoint="orders")


def failures(transport):
    return [(status.failures, status.last_error) for status in transport.claims.list()], transport.peek("error")


def test_a_run_whose_results_meet_a_locked_queue_ends_and_the_next_one_goes_on(postgresql):
    pipeline = declare(output_queues=["billing"])
    with opened(postgresql, f"options={quote('-c lock_timeout=100')}") as transport:
        transport.install("orders", "billing")
        fill(transport, ORDERS)
        with postgresql.transport().transaction() as other:
            other.exec_driver_sql(f"LOCK TABLE {transport.resolve('billing').qualified} IN ACCESS EXCLUSIVE MODE")
            ended, _ = run(transport, PlainTransformer(), pipeline)
        assert isinstance(ended.failure, LockTimeoutError) and "billing" in str(ended.failure)
        counted, failed = failures(transport)
        assert all(count == (0, None) for count in counted) and failed == 0
        run(transport, PlainTransformer(), pipeline)
        assert (transport.peek("billing"), transport.peek("orders"), transport.peek("error")) == (ORDERS, 0, 0)
        assert transport.claims.list() == []


@pytest.mark.parametrize("delivered", [True, False])
def test_a_run_whose_network_stops_answering_as_it_commits_sends_every_result_once(postgresql, postgres, delivered):
    limits = "keepalives_idle=1&keepalives_interval=1&keepalives_count=1&tcp_user_timeout=2000"
    server = "-c tcp_keepalives_idle=1 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=1 -c tcp_user_timeout=1500"
    pipeline = declare(output_queues=["billing"])
    with (
        Partition(postgres.port) as partition,
        opened(postgresql, f"{limits}&options={quote(server)}", partition.port) as transport,
    ):
        transport.install("orders", "billing")
        fill(transport, ORDERS)

        def cut(bodies):
            if bodies and not partition.cut.is_set():
                partition.cut_at(b"COMMIT\0", delivered=delivered)

        for _ in range(3):
            # The commit that was cut may be that of another thread of the run, or of a connection that it opens.
            with contextlib.suppress(DatabaseUnavailableError):
                ended, _ = run(transport, PlainTransformer(cut), pipeline)
                assert ended.failure is None or isinstance(ended.failure, DatabaseUnavailableError)
        assert partition.cut.is_set()
        assert (transport.peek("billing"), transport.peek("orders"), transport.peek("error")) == (ORDERS, 0, 0)
        assert transport.claims.list() == []
