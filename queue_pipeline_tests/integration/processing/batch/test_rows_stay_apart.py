"""What a message becomes does not depend on its neighbours: no row takes a value of another, whatever stands in it."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.batch.claimed_batch import parse_bodies, read_batch
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.processing.declaration.outcomes import each, fail, send
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.transport.messages.message import TransactionMode
from queue_pipeline_tests.support.databases.hostile_rows import (
    BODIES,
    HEADERS,
    LARGE,
    LARGE_BODY,
    HostileRow,
    hostile_rows,
    insert,
    storable_in,
    stored,
)
from queue_pipeline_tests.support.nginn.nginn_bus import BILLING, ORDERS, Bus, body_of
from queue_pipeline_tests.support.nginn.nginn_bus import settings as nginn_settings
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import declare, run

SCHEMA = "n INT, s STRING"
ONCE = Recoverability(immediate_retries=0, delayed_retries=0)
examples = settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
SAME = "00000000-0000-0000-0000-000000000001"
EVERY = [
    HostileRow(f"00000000-0000-0000-0000-{number:012}", headers, body)
    for number, (headers, body) in enumerate(
        [*((headers, b'{"n":7}') for headers in HEADERS), *((b"{}", body) for body in BODIES)]
    )
]
LARGE_ONES = [
    HostileRow(SAME, LARGE, b'{"n":1}'),
    HostileRow(SAME[:-1] + "2", b"{}", LARGE_BODY),
    HostileRow(SAME[:-1] + "3", b'{"own":"x"}', b'{"n":2}'),
]
TWINS = [
    HostileRow(SAME, b'{"own":"first"}', b'{"n":1}'),
    HostileRow(SAME, b'{"own":"second"}', b"no JSON"),
    HostileRow(SAME, b'{"own":"third"}', b'{"n":null}'),
]


def read_claim(transport, queue, size):
    """What the messages become in claims of this size, by row version; the claims are given back."""
    found, claims = {}, []
    while claim := transport.claim(queue, "me", size):
        claims.append(claim)
        batch = read_batch(transport.claim_reader, claim)
        messages, refused = parse_bodies(body_parser(SCHEMA), batch.messages)
        found |= {row.pop("row_version"): row for row in messages.to_pylist()}
        found |= {version: (one.error_type, one.message) for version, one in refused.items()}
        found |= {one.row_version: (one.id, one.problem) for one in batch.unreadable}
    for claim in claims:
        transport.claims.give_back(claim)
    return found


@examples
@given(rows=hostile_rows)
@example(rows=EVERY)
@example(rows=LARGE_ONES)
@example(rows=TWINS)
@example(rows=EVERY[::-1])
def test_a_message_is_read_the_same_alone_or_in_a_batch(transport, backend, rows):
    rows = storable_in(backend, rows)
    empty(transport, backend)
    insert(transport, backend, "orders", rows)
    company = read_claim(transport, "orders", 1_000)
    assert len(company) == len(rows)
    assert read_claim(transport, "orders", 1) == company
    assert read_claim(transport, "orders", 3) == company


@examples
@given(rows=hostile_rows)
@example(rows=EVERY)
@example(rows=TWINS)
def test_a_message_ends_in_the_same_place_alone_or_in_a_batch(transport, backend, rows):
    """Results carry what was known of their message; error copies are compared without their times."""
    rows = storable_in(backend, rows)
    ends = []
    for size in (1_000, 1):
        empty(transport, backend)
        insert(transport, backend, "orders", rows)
        ended, _ = run(transport, Echo(), declare(batch_messages=size, recoverability=ONCE), slots=1)
        assert ended.failure is None
        ends.append((results(transport, "billing"), dead_letters(transport, backend), failures(transport)))
        assert sum(map(len, ends[-1])) == len(rows)
    assert ends[0] == ends[1]
    unread = {(row.headers, row.body) for row in rows}
    assert set(ends[0][1]) <= unread


@examples
@given(rows=hostile_rows)
@example(rows=EVERY)
@example(rows=LARGE_ONES)
@pytest.mark.parametrize("mode", TransactionMode)
def test_a_message_is_received_the_same_alone_or_in_a_batch(transport, backend, rows, mode):
    rows = storable_in(backend, rows)
    ends = []
    for size in (1_000, 1):
        empty(transport, backend)
        insert(transport, backend, "orders", rows)
        found, poisoned = [], 0
        while True:
            with transport.receive("orders", size, mode=mode) as batch:
                found += batch.messages
                poisoned += batch.poisoned
                if not batch.messages:
                    break
        assert len(found) + poisoned == len(rows)
        ends.append(([(one.id, one.headers, one.body) for one in found], Counter(stored(transport, backend, "error"))))
        assert sum(ends[-1][1].values()) == poisoned
    assert ends[0] == ends[1]
    assert set(ends[0][1]) <= {(row.headers, row.body) for row in rows}


TEXTS = ["", "a=b", "a=b|c=d", "a", "a=b=c", "|", "=", "a=\u00e9", "_NG-Seq=", "_NG-TTL=no time", "a=\ud800"]
MESSAGES = [
    body_of(1),
    "",
    "null",
    "{}",
    '{"$type":"\\ud800"}',
    '{"$type":5}',
    '{"n":1}{"n":2}',
    "\ufeff" + body_of(2),
    "NUL \0",
    "\ud800",
]
nginn_rows = st.lists(st.tuples(st.sampled_from(MESSAGES), st.sampled_from(TEXTS)), min_size=2, max_size=8)


@settings(examples, max_examples=8)
@given(rows=nginn_rows)
@example(rows=[(MESSAGES[0], text) for text in TEXTS])
@example(rows=[(message, "") for message in MESSAGES])
def test_messages_of_nginn_stay_separate_too(backend, nginn, rows):
    bus, transport = nginn, nginn.transport
    bus.execute(f"DELETE FROM {bus.table(ORDERS)}")
    for number, (message, headers) in enumerate(rows):
        insert_nginn(bus, message, headers, number)
    company = read_claim(transport, ORDERS, 1_000)
    failed = {row["id"]: row["error_info"] for row in bus.rows() if row["subqueue"] == "F"}
    bus.execute(f"UPDATE {bus.table(ORDERS)} SET subqueue = 'I', retry_count = 0, error_info = NULL")
    assert len(company) + len(failed) == len(bus.rows())
    assert read_claim(transport, ORDERS, 1) == company
    assert {row["id"]: row["error_info"] for row in bus.rows() if row["subqueue"] == "F"} == failed


@pytest.fixture
def nginn(backend):
    transport = backend.transport(nginn=nginn_settings())
    transport.install(ORDERS, BILLING)
    return Bus(backend, transport)


def insert_nginn(bus, message, headers, number):
    texts = [message, headers]
    if bus.backend.name != "sqlite":
        texts = [text.replace("\0", "").replace("\ud800", "") for text in texts]
        bus.insert(texts[0], msg_headers=texts[1], unique_id=f"m{number}")
        return
    row = bus.insert("", unique_id=f"m{number}")
    raw = tuple(text.encode(errors="surrogatepass") for text in texts)
    update = f"UPDATE {bus.table(ORDERS)} SET msg_text = CAST(? AS TEXT), msg_headers = CAST(? AS TEXT) WHERE id = ?"
    bus.execute(update, (*raw, row))


@pytest.mark.parametrize("route", ["local", "executors"])
def test_spark_gets_every_message_with_its_own_values(transport, backend, spark, route):
    """One run on executors and one on the local backend, over all kinds of rows at once."""
    rows = storable_in(backend, [*EVERY, *LARGE_ONES[1:]])
    insert(transport, backend, "orders", rows)
    expected = read_claim(transport, "orders", 1)
    pipeline = declare(output_queues=["billing"], transform=echo, body_schema=SCHEMA, route=route, recoverability=ONCE)
    ended = run_by_spark(transport, spark, pipeline)
    assert ended.failure is None
    good = {row["id"]: row for row in expected.values() if isinstance(row, dict)}
    found = {row["id"]: row for row in (json.loads(body) for _, body in stored(transport, backend, "billing"))}
    assert found == {
        identity: {
            "id": identity,
            "message_id": row["message_id"],
            "talk": row["conversation_id"] or "-",
            "n": row["payload"]["n"] or 0,
            "s": len(row["payload"]["s"] or ""),
        }
        for identity, row in good.items()
        if row["payload"]["n"] != 2
    }
    refused = sum(not isinstance(row, dict) for row in expected.values())
    assert len(stored(transport, backend, "error")) == refused + sum(row["payload"]["n"] == 2 for row in good.values())


def echo(messages):
    """What a transform sees of each message, as its result; one of them is refused."""
    from pyspark.sql import functions as F

    seen = F.struct(
        "id",
        "origin.message_id",
        F.coalesce("origin.conversation_id", F.lit("-")).alias("talk"),
        F.coalesce("payload.n", F.lit(0)).alias("n"),
        F.length(F.coalesce("payload.s", F.lit(""))).alias("s"),
    )
    two = F.col("payload.n") == 2
    return messages.select("origin", each(send("billing", json=seen), fail("two", when=two)))


def run_by_spark(transport, spark, pipeline):
    from queue_pipeline.processing.batch.executors import Executors
    from queue_pipeline.processing.batch.transformer import SparkTransformer
    from queue_pipeline.processing.run.pipeline_run import PipelineRun
    from queue_pipeline.processing.run.recovery import Recovery
    from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions

    sessions = AttemptSessions(lambda: spark)
    executors = Executors(pipeline, transport, sessions)
    recovery = Recovery(pipeline, transport, SparkTransformer(pipeline, sessions), executors)
    return PipelineRun(pipeline, transport, "run 1", recovery, slots=1).run()


class Echo(PlainTransformer):
    """Refuses bodies that do not fit the schema, each for its own reason."""

    def transform(self, batch, sending):
        fitting, refused = parse_bodies(body_parser(SCHEMA), batch.messages)
        made = super().transform(replace(batch, messages=fitting), sending)
        return replace(made, failures=refused)


def empty(transport, backend):
    for queue in ("orders", "billing", "error"):
        backend.sql(transport, f"DELETE FROM {transport.resolve(queue).qualified}")


def results(transport, queue):
    return sorted((str(shown.headers), shown.body) for shown in transport.show(queue, 10_000))


def dead_letters(transport, backend):
    rows = zip(transport.show("error", 10_000), stored(transport, backend, "error"), strict=True)
    return sorted((row for shown, row in rows if shown.problem is not None), key=str)


def failures(transport):
    shown_rows = []
    for shown in transport.show("error", 10_000):
        if shown.problem is None:
            kept = {name: value for name, value in shown.headers.items() if "Time" not in name}
            shown_rows.append((str(sorted(kept.items())), shown.body))
    return sorted(shown_rows)
