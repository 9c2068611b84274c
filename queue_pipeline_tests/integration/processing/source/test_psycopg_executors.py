"""The driver that the setting asks for is the one that Spark's executors use as well."""

import pytest
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import each, send
from queue_pipeline.processing.source import source
from queue_pipeline.transport import QueueTransport, new_message

pytestmark = pytest.mark.psycopg_only

pytest.importorskip("psycopg")


def test_executors_read_and_stage_over_psycopg(backend, postgres, spark):
    """The name of a session is an option of libpq, which no ODBC driver would take."""
    with QueueTransport(f"{backend.url}?application_name=by_psycopg", schema=backend.schema) as transport:
        transport.install("orders", "billing")
        source.register_sql_queue(spark, transport)
        transport.send("orders", [new_message(f"ü{number}") for number in range(20)])
        claim = transport.claim("orders", "me", 100)
        frame = spark.read.format(source.FORMAT).option("claim", source.claim_option(claim)).load()
        results = source.messages_of(frame).select("origin", each(send("billing", body=F.col("body").cast("string"))))
        written = results.write.format(source.FORMAT).option("claim", source.claim_option(claim))
        written.mode("append").save()
        assert sorted(shown.body.decode() for shown in transport.show("billing", 100)) == sorted(
            f"ü{number}" for number in range(20)
        )
        assert transport.claims.list() == []
    # Ours are closed; the workers keep theirs.
    assert int(postgres.run_sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'by_psycopg'")) > 0
