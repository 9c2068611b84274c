"""`format("sql_queue")` by hand: a claim as a frame, and results that complete it."""

import itertools

import pytest
from pyspark.sql import functions as F
from sqlalchemy import create_engine

from queue_pipeline.errors import ClaimLostError, ConfigurationError, StagedLostError
from queue_pipeline.processing.batch.messages_frame import MESSAGE
from queue_pipeline.processing.batch.staging import TaskReport
from queue_pipeline.processing.batch.worker_transport import EXECUTOR_VARIABLE, executor_settings
from queue_pipeline.processing.declaration.outcomes import add_to, each, fail, send
from queue_pipeline.processing.results.outcome_writer import OutcomeWriter
from queue_pipeline.processing.source import source
from queue_pipeline.processing.spark.errors import own_errors
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.claims.outbox import StagedGroup
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.spark.sql_queue import FORMAT, bodies, doubled, fill, is_idle, load, save, with_source


@pytest.fixture
def transport(backend, spark):
    return with_source(backend, spark)


def totals(transport):
    return transport.resolve("totals").qualified


def test_a_claim_is_read_by_tasks_and_completed_by_the_end_of_the_job(backend, transport, spark):
    fill(transport, 20)
    claim = transport.claim("orders", "me", 100)
    messages = source.messages_of(load(spark, claim))
    assert sorted(row.id for row in messages.select("id").collect()) == sorted(
        row["id"] for batch in transport.claim_reader.read(claim) for row in batch.to_pylist()
    )
    save(doubled(messages), claim)
    assert bodies(transport) == [2 * number for number in range(20)]
    assert is_idle(backend, transport)


def test_a_large_claim_is_cut_by_row_versions(postgresql, spark):
    transport = postgresql.transport()
    transport.install("orders")
    source.register_sql_queue(spark, transport)
    fill(transport, 25_000)
    claim = transport.claim("orders", "me", 30_000)
    found = (
        load(spark, claim, "row_version BIGINT NOT NULL")
        .groupBy(F.spark_partition_id().alias("part"))
        .agg(F.count("*").alias("messages"), F.min("row_version").alias("first"), F.max("row_version").alias("last"))
    )
    parts = sorted((row.first, row.last, row.messages) for row in found.collect())
    counts = [messages for _, _, messages in parts]
    assert (sum(counts), max(counts)) == (25_000, 20_000)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(parts))


def test_bodies_that_are_not_asked_for_are_not_fetched(transport, spark, backend):
    fill(transport, 2)
    claim = transport.claim("orders", "me", 100)
    claimed = transport.book.claim_tables(transport.resolve("orders")).claimed.qualified
    if backend.name == "sqlite":
        # Reading this body would fail.
        backend.sql(transport, f"UPDATE {claimed} SET Body = 12.5")
    rows = load(spark, claim, "id STRING NOT NULL, message_type STRING").collect()
    assert len(rows) == 2
    with pytest.raises(ConfigurationError, match="a claim has no column colour; it has id, row_version"), own_errors():
        load(spark, claim, "colour STRING").collect()


def test_what_fails_goes_to_the_error_queue_and_what_cannot_be_read_goes_there_unchanged(backend, transport, spark):
    fill(transport, 6)
    queue = transport.resolve("orders").qualified
    oldest = {"postgresql": "seq", "sqlite": "RowVersion", "sqlserver": "RowVersion"}[backend.name]
    backend.sql(
        transport, f"UPDATE {queue} SET Headers = 'not JSON' WHERE {oldest} = (SELECT min({oldest}) FROM {queue})"
    )
    claim = transport.claim("orders", "me", 100)
    messages = source.messages_of(load(spark, claim))
    number = F.col("body").cast("string").cast("int")
    outcomes = each(
        send("billing", body=F.col("body"), when=number != 3),
        fail("three is refused", error_type="Three", when=number == 3),
    )
    save(messages.select("origin", outcomes), claim)
    assert bodies(transport) == [1, 2, 4, 5]
    failed = {bytes(shown.body): shown.headers for shown in transport.show("error", 10)}
    assert failed[b"3"][wire.EXCEPTION_TYPE] == "Three"
    assert failed[b"3"][wire.FAILED_QUEUE] == transport.resolve("orders").canonical
    assert len(failed) == 2
    assert is_idle(backend, transport)


def test_a_body_comes_as_a_payload_or_with_what_is_wrong_with_it(backend, transport, spark):
    bodies_sent = ['{"n":1,"text":"one"}', '{"n":"two"}', "no JSON", '{"n":4}']
    transport.send("orders", [new_message(body) for body in bodies_sent])
    claim = transport.claim("orders", "me", 100)
    messages = source.messages_of(load(spark, claim), "n INT NOT NULL, text STRING")
    assert messages.columns == [*MESSAGE, "payload", "problem"]
    found = {bytes(row.body).decode(): (row.payload, row.problem) for row in messages.collect()}
    assert [found[body][0] for body in bodies_sent] == [(1, "one"), None, None, (4, None)]
    assert [found[body][1] is None for body in bodies_sent] == [True, False, False, True]
    assert "n" in found['{"n":"two"}'][1]
    outcomes = each(
        send("billing", body=F.col("payload.n").cast("string"), when=F.col("problem").isNull()),
        fail(F.col("problem"), error_type="BadBody"),
    )
    save(messages.select("origin", outcomes), claim)
    assert bodies(transport) == [1, 4]
    failed = {bytes(shown.body).decode(): shown.headers for shown in transport.show("error", 10)}
    assert {body: headers[wire.EXCEPTION_MESSAGE] for body, headers in failed.items()} == {
        body: found[body][1] for body in bodies_sent[1:3]
    }
    assert is_idle(backend, transport)


def test_without_a_schema_there_is_neither_payload_nor_problem(transport, spark):
    fill(transport, 1)
    assert source.messages_of(load(spark, transport.claim("orders", "me", 1))).columns == list(MESSAGE)


def test_what_a_job_adds_to_tables_is_written_with_the_end_of_its_claim(backend, transport, spark):
    backend.sql(transport, f"CREATE TABLE {totals(transport)} (kind varchar(10) PRIMARY KEY, total bigint)")
    fill(transport, 6)
    claim = transport.claim("orders", "me", 100)
    messages = source.messages_of(load(spark, claim))
    number = F.col("body").cast("string").cast("int")
    kind = F.when(number % 2 == 0, "even").otherwise("odd")
    outcomes = each(
        add_to("totals", key={"kind": kind}, add={"total": number}), fail("five is refused", when=number == 5)
    )
    save(messages.select("origin", outcomes), claim)
    found = backend.sql(transport, f"SELECT kind, total FROM {totals(transport)} ORDER BY kind")
    assert [tuple(row) for row in found] == [("even", 6), ("odd", 4)]
    assert [bytes(shown.body) for shown in transport.show("error", 10)] == [b"5"]
    assert is_idle(backend, transport)


def test_a_job_that_fails_leaves_nothing_and_the_claim_can_be_tried_again(backend, transport, spark):
    fill(transport, 5)
    claim = transport.claim("orders", "me", 100)
    broken = source.messages_of(load(spark, claim)).select(
        "origin", each(send("billing", body=F.raise_error(F.lit("no")).cast("string")))
    )
    with pytest.raises(Exception, match="no"):
        save(broken, claim)
    assert (bodies(transport), [one.owner for one in transport.claims.list()]) == ([], ["me"])
    save(doubled(source.messages_of(load(spark, claim))), claim)
    assert bodies(transport) == [0, 2, 4, 6, 8]
    assert is_idle(backend, transport)


def test_a_commit_that_finds_less_than_was_staged_fails(backend, transport):
    """As after a crash of the database between the tasks and the commit."""
    fill(transport, 5)
    claim = transport.claim("orders", "me", 100)
    writer = OutcomeWriter(executor_settings(transport), claim, "job")
    report = TaskReport([StagedGroup("job.0.1", 0, "billing", False, 5)])
    with pytest.raises(StagedLostError):
        writer.commit([report])
    writer.abort([report, None])
    assert [one.messages for one in transport.claims.list()] == [5]
    assert bodies(transport) == []
    # The answer to a commit was lost: abort comes after a completion, and undoes nothing.
    transport.claims.complete(Completion(claim, read=None))
    writer.abort([report])
    assert is_idle(backend, transport)


def test_a_job_whose_claim_was_lost_fails_and_sends_nothing(transport, spark):
    fill(transport, 5)
    claim = transport.claim("orders", "me", 100)
    frame = doubled(source.messages_of(load(spark, claim)))
    transport.claims.adopt(claim, "somebody else")
    with pytest.raises(ClaimLostError, match="no longer held by me"), own_errors():
        save(frame, claim)
    assert bodies(transport) == []


def test_the_password_is_in_no_plan(postgresql, spark, capsys):
    transport = postgresql.transport()
    transport.install("orders")
    source.register_sql_queue(spark, transport)
    fill(transport, 1)
    claim = transport.claim("orders", "me", 1)
    password = transport.database.url.password
    frame = load(spark, claim)
    frame.explain(mode="extended")
    with pytest.raises(Exception) as raised, own_errors():
        load(spark, claim, "colour STRING").collect()
    shown = capsys.readouterr().out + str(raised.value) + repr(raised.value.__cause__)
    assert "sql_queue" in shown
    assert password not in shown
    assert password not in repr(executor_settings(transport))


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda frame, claim: frame.write.format(FORMAT).mode("append").save(), r'needs .option\("claim"'),
        (
            lambda frame, claim: frame.write.format(FORMAT).option("claim", "{}").mode("append").save(),
            "the option claim of sql_queue cannot be read",
        ),
        (lambda frame, claim: save(frame.select("id"), claim), "the columns id cannot be sent"),
        (
            lambda frame, claim: (
                frame.write.format(FORMAT).option("claim", source.claim_option(claim)).mode("overwrite").save()
            ),
            "a queue cannot be overwritten",
        ),
    ],
)
def test_invalid_options_are_refused_in_one_sentence(transport, spark, write, problem):
    fill(transport, 1)
    claim = transport.claim("orders", "me", 1)
    with pytest.raises(ConfigurationError, match=problem), own_errors():
        write(load(spark, claim), claim)


def test_executors_may_have_a_database_account_of_their_own(sqlite, monkeypatch):
    transport = sqlite.transport()
    monkeypatch.setenv(EXECUTOR_VARIABLE, "postgresql://executor:secret@db/queues")
    settings = executor_settings(transport)
    assert settings.transport.database.username == "executor"
    monkeypatch.setenv(EXECUTOR_VARIABLE, "environment")
    monkeypatch.delenv("QUEUE_PIPELINE_DATABASE", raising=False)
    with pytest.raises(ConfigurationError, match="has no QUEUE_PIPELINE_DATABASE"):
        executor_settings(transport).open()
    monkeypatch.setenv("QUEUE_PIPELINE_DATABASE", sqlite.url)
    assert executor_settings(transport).open().database.url == transport.database.url


def test_connections_that_the_program_supplied_cannot_be_sent_to_executors(sqlite):
    supplied = QueueTransport(create_engine(sqlite.url))
    with pytest.raises(ConfigurationError, match="route='local'"):
        executor_settings(supplied)
