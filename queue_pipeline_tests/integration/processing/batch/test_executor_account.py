"""Executors log in as an account of their own, with the rights that the documentation names and no others."""

import re
from pathlib import Path

from queue_pipeline.processing.batch.worker_transport import EXECUTOR_VARIABLE
from queue_pipeline_tests.support.processing.both_routes import fill, numbers, process

PAGE = Path(__file__).resolve().parents[4] / "docs/spark-clusters.md"


def rights(schema, account):
    """The statements of the page, for the tables and the account of a test."""
    (block,) = re.findall(r"```sql\n(GRANT USAGE ON SCHEMA public TO queue_executor;.*?)```", PAGE.read_text(), re.S)
    here = block.replace("SCHEMA public", f"SCHEMA {schema}").replace("queue_executor", account)
    return re.sub(r' ON "', f' ON "{schema}"."', here)


def test_the_rights_of_the_documentation_are_enough_for_a_batch(postgresql, postgres, spark, monkeypatch):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    account = f"executor_{postgresql.schema}"
    postgres.run_sql(f"CREATE ROLE {account} LOGIN PASSWORD 'secret'")
    postgres.run_sql(rights(postgresql.schema, account))
    monkeypatch.setenv(EXECUTOR_VARIABLE, postgres.url(user=account, password="secret"))
    fill(transport, 5)
    report = process(transport, spark, "executors", lambda messages: messages.select("origin", "body"))
    assert (report.messages, report.sent, report.failed) == (5, 5, [])
    assert numbers(transport, "billing") == list(range(5))
    assert transport.claims.list() == []
