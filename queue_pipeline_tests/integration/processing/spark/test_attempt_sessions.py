"""Each attempt has a Spark session of its own: views, settings and functions of one batch do not reach another."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.processor import BatchProcessor
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.run.pipeline_run import PipelineRun
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.transport import QueueTransport
from queue_pipeline_tests.support.processing.processed import process as process_claim
from queue_pipeline_tests.support.processing.slots import Slots, declare, fill, through_a_view
from queue_pipeline_tests.support.waiting import eventually

ROUTES = ("local", "executors")
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.caseSensitive": "true",
}


def run(transport, spark, pipeline):
    """One run of a pipeline until its queue is empty; returns how it ended and its attempts."""
    sessions, attempts = AttemptSessions(lambda: spark), []
    executors = Executors(pipeline, transport, sessions)
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, sessions), executors)
    ended = PipelineRun(pipeline, transport, "run 1", recovery, slots=pipeline.slots, on_attempt=attempts.append).run()
    return ended, attempts


def bodies(transport, queue):
    return Counter(int(shown.body) for shown in transport.show(queue, 10_000))


@pytest.fixture
def queues(postgresql):
    transport = postgresql.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    return transport


@pytest.fixture(params=ROUTES)
def slots(queues, spark, request):
    return Slots(queues, spark, route=request.param)


@pytest.mark.parametrize(
    ("route", "batches"),
    [
        ("local", 16),
        ("executors", 8),
        pytest.param("local", 200, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
        pytest.param("executors", 200, marks=[pytest.mark.slow, pytest.mark.timeout(900)]),
    ],
)
def test_batches_that_use_one_view_name_in_four_slots_process_every_message_once(queues, spark, route, batches):
    lock, at_once, most = threading.Lock(), [0], [0]

    def watched(messages):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        try:
            return through_a_view(messages)
        finally:
            with lock:
                at_once[0] -= 1

    fill(queues, batches * 10)
    pipeline = declare(transform=watched, route=route, batch_messages=10, max_concurrency=4)
    ended, attempts = run(queues, spark, pipeline)
    assert (ended.reason, ended.failure) == ("the queue is empty", None)
    assert [attempt for attempt in attempts if attempt.failure] == []
    reports = [report for attempt in attempts for report in attempt.reports]
    assert len(reports) == batches
    assert {(one.messages, one.sent, one.backend) for one in reports} == {(10, 10, route)}
    assert bodies(queues, "billing") == Counter(range(batches * 10))
    assert (queues.peek("orders"), queues.peek("error"), queues.claims.list()) == (0, 0, [])
    assert most[0] > 1, "batches must run at the same time, else this shows nothing"


def test_a_message_that_fails_takes_nothing_from_the_batches_beside_it(queues, spark):
    """A failure is followed by a probe, which calls the transform without messages and replaces its own view only."""

    def fragile(messages):
        messages.createOrReplaceTempView("messages")
        return messages.sparkSession.sql(
            "select origin, if(cast(body as string) = '17', raise_error('seventeen'), body) as body from messages"
        )

    fill(queues, 40)
    ended, attempts = run(queues, spark, declare(transform=fragile, route="local", batch_messages=5, max_concurrency=4))
    assert ended.failure is None
    assert any(attempt.failure for attempt in attempts)
    assert bodies(queues, "error") == Counter([17])
    assert bodies(queues, "billing") == Counter(set(range(40)) - {17})


def test_a_probe_leaves_the_view_of_a_batch_beside_it_alone(queues, spark):
    registered, probed = threading.Event(), threading.Event()

    def slow(messages):
        messages.createOrReplaceTempView("messages")
        if not registered.is_set():
            registered.set()
            assert probed.wait(60)
        return messages.sparkSession.sql("select origin, body from messages")

    pipeline = declare(transform=slow)
    transformer = SparkTransformer(pipeline, AttemptSessions(lambda: spark))
    fill(queues, 3)
    claim = queues.claim("orders", "me", 100)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(process_claim, BatchProcessor(pipeline, queues, transformer), pipeline, claim)
        try:
            assert registered.wait(60)
            assert transformer.probe() is None
        finally:
            probed.set()
        assert batch.result(60).sent == 3
    assert bodies(queues, "billing") == Counter(range(3))


def settings_of(messages):
    conf = messages.sparkSession.conf
    return {name: conf.get(name) for name in SETTINGS}


def sends_settings(messages):
    """What holds in a batch, by its configuration and by what Spark computes."""
    found = {**settings_of(messages), "zone of the server": F.current_timezone()}
    fields = [(value if isinstance(value, F.Column) else F.lit(value)).alias(name) for name, value in found.items()]
    return messages.select("origin", F.to_json(F.struct(*fields)).alias("body"))


def by_configuration(session):
    for name, value in SETTINGS.items():
        session.conf.set(name, value)


def by_sql(session):
    for name, value in SETTINGS.items():
        session.sql(f"SET {name}={value}")


@pytest.mark.parametrize("change", [by_configuration, by_sql])
def test_settings_of_one_batch_do_not_hold_for_the_next(slots, change):
    before = slots.process(sends_settings)

    def changes(messages):
        change(messages.sparkSession)
        return sends_settings(messages)

    changed = slots.process(changes)
    assert json.loads(changed[0]) == {**SETTINGS, "zone of the server": "Asia/Tokyo"} != json.loads(before[0])
    assert slots.process(sends_settings) == before


def test_settings_of_a_batch_that_fails_do_not_hold_for_the_next(slots):
    before = slots.process(sends_settings)

    def fails(messages):
        by_configuration(messages.sparkSession)
        raise ArithmeticError("the transform is broken")

    with pytest.raises(ArithmeticError):
        slots.process(fails)
    slots.transport.claims.release_owner("me")
    # Its messages are taken again.
    assert set(slots.process(sends_settings)) == set(before)


def test_the_current_database_of_one_batch_is_not_that_of_the_next(slots, spark, tmp_path):
    spark.sql(f"CREATE DATABASE own_database LOCATION '{tmp_path}/own'")
    try:
        for change in (
            lambda session: session.sql("USE own_database"),
            lambda session: session.catalog.setCurrentDatabase("own_database"),
        ):

            def changes(messages, change=change):
                change(messages.sparkSession)
                return sends_database(messages)

            assert set(slots.process(changes)) == {"own_database"}
            assert set(slots.process(sends_database)) == {"default"}
    finally:
        spark.sql("DROP DATABASE own_database")


def sends_database(messages):
    return messages.select("origin", F.current_database().alias("body"))


def test_functions_views_and_variables_of_one_attempt_are_not_there_for_another(slots):
    found = []

    def has_variable(session):
        try:
            return session.sql("SELECT rate").collect()[0][0] == 5
        except AnalysisException:
            return False

    def registers(messages):
        session = messages.sparkSession
        session.udf.register("twice", lambda text: text * 2, "string")
        session.range(1).createOrReplaceTempView("prices")
        session.sql("DECLARE OR REPLACE VARIABLE rate INT DEFAULT 5")
        look(session)
        return messages.select("origin", F.expr("twice(cast(body as string))").alias("body"))

    def looks(messages):
        look(messages.sparkSession)
        return messages.select("origin", "body")

    def look(session):
        catalog = session.catalog
        found.append((catalog.functionExists("twice"), catalog.tableExists("prices"), has_variable(session)))

    assert sorted(slots.process(registers)) == ["00", "11"]
    assert sorted(slots.process(looks)) == ["0", "1"]
    assert found == [(True, True, True), (False, False, False)]


def test_the_active_session_of_a_transform_is_that_of_its_messages(slots, spark):
    found = []

    def looks(messages):
        own = messages.sparkSession.session_id
        asked = (SparkSession.active(), SparkSession.getActiveSession())
        found.append([session.session_id == own for session in asked])
        found.append([own != spark.session_id])
        return messages.select("origin", "body")

    slots.process(looks)
    assert found == [[True, True], [True]]


def test_every_attempt_has_another_session(slots):
    ids = []

    def noted(messages):
        ids.append(messages.sparkSession.session_id)
        return messages.select("origin", "body")

    for _ in range(3):
        slots.process(noted)
    assert len(set(ids)) == 3


def test_a_session_ends_with_its_attempt(spark):
    with AttemptSessions(lambda: spark).session() as session:
        assert session.range(3).count() == 3
        assert SparkSession.getActiveSession() is session
    assert session.client.is_closed
    assert SparkSession.getActiveSession() is not session


def test_attempts_at_the_same_time_have_sessions_of_their_own(spark):
    sessions = AttemptSessions(lambda: spark)
    with sessions.session() as one, sessions.session() as other:
        one.range(1).createOrReplaceTempView("numbers")
        other.range(2).createOrReplaceTempView("numbers")
        assert (one.table("numbers").count(), other.table("numbers").count()) == (1, 2)
        assert len({one.session_id, other.session_id, spark.session_id}) == 3
    assert not spark.catalog.tableExists("numbers")


def test_an_interrupt_stops_what_a_session_computes_and_leaves_the_others_usable(spark, tmp_path):
    sessions, begun = AttemptSessions(lambda: spark), tmp_path / "begun"

    def hang(batches):
        begun.touch()
        time.sleep(120)
        yield from batches

    def compute():
        with sessions.session() as session:
            return session.range(1).mapInArrow(hang, "id bigint").collect()

    with ThreadPoolExecutor(1) as pool:
        computed = pool.submit(compute)
        eventually(begun.exists)
        sessions.interrupt()
        with pytest.raises(PySparkException, match="OPERATION_CANCELED"):
            computed.result(60)
    with sessions.session() as session:
        assert session.range(3).count() == 3


def classic_run(url):
    """A run inside a process with a classic session; prints what it found."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    zones, active = [], []

    def transform(messages):
        session = messages.sparkSession
        zones.append(session.conf.get("spark.sql.session.timeZone"))
        session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        active.append(SparkSession.active()._jsparkSession.equals(session._jsparkSession))
        return through_a_view(messages)

    with QueueTransport(url, endpoint="orders") as transport:
        ended, attempts = run(transport, spark, declare(transform=transform, batch_messages=5, max_concurrency=4))
    found = {
        "reason": ended.reason,
        "failures": sum(attempt.failure is not None for attempt in attempts),
        "batches": len(attempts),
        "zones": len(set(zones)),
        "leaked": "Asia/Tokyo" in zones,
        "active": all(active),
        "own views": spark.catalog.tableExists("messages"),
    }
    print(json.dumps(found))


@pytest.mark.slow
def test_classic_sessions_are_separate_too(sqlite):
    transport = sqlite.transport(endpoint="orders")
    transport.install("orders", plain_queues=["billing", "error"])
    fill(transport, 100)
    # A process with a Connect session passes its mode on to those that it starts.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    code = f"from {__name__} import classic_run; classic_run({sqlite.url!r})"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    is_active = found.pop("active")
    assert found == {
        "reason": "the queue is empty",
        "failures": 0,
        "batches": 20,
        "zones": 1,
        "leaked": False,
        "own views": False,
    }
    assert bodies(transport, "billing") == Counter(range(100))
    assert is_active, "SparkSession.active() must be the session of the messages in every thread"
