"""Latencies of a batch: of messages that are here, and of messages that tasks counted."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.processing.batch.part_report import read_part
from queue_pipeline.processing.batch.sent_times import SLOWEST_KEPT, SentTimes
from queue_pipeline.transport.messages import headers as wire

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def messages(ages):
    """Messages that were sent that many seconds ago; None stands for an unknown time."""
    return pa.table(
        {
            "id": pa.array([f"row{n}" for n in range(len(ages))], pa.string()),
            "enqueued": pa.array(
                [None if age is None else NOW - timedelta(seconds=age) for age in ages], pa.timestamp("us", "UTC")
            ),
        }
    )


def part(ages):
    sent = [None if age is None else wire.format_timestamp(NOW - timedelta(seconds=age)) for age in ages]
    columns = {
        "id": pa.array([f"row{n}" for n in range(len(ages))], pa.string()),
        "row_version": pa.array(range(len(ages)), pa.int64()),
        "headers": pa.array([wire.encode({wire.TIME_SENT: time} if time else {}) for time in sent], pa.string()),
        "body": pa.array([b""] * len(ages), pa.binary()),
    }
    return read_part(pa.RecordBatch.from_pydict(columns), None).report


AGES = st.lists(st.one_of(st.none(), st.integers(0, 100_000)), max_size=30)


@given(AGES)
def test_a_latency_is_the_time_since_a_message_was_sent(ages):
    times = SentTimes.of_messages(messages(ages))
    assert times.latencies(NOW).to_pylist() == ages
    assert [seconds for _, seconds in times.slowest(NOW)] == sorted(
        (age for age in ages if age is not None), reverse=True
    )[:SLOWEST_KEPT]


@given(AGES)
def test_a_part_of_few_messages_reports_the_time_of_each_message(ages):
    times = SentTimes.of_parts([part(ages)])
    known = sorted((age for age in ages if age is not None), reverse=True)
    assert times.latencies(NOW).to_pylist() == known
    assert [seconds for _, seconds in times.slowest(NOW)] == known[:1]


def test_nothing_was_sent_when_no_part_knows():
    times = SentTimes.of_parts([part([]), part([None])])
    assert (len(times.latencies(NOW)), times.slowest(NOW)) == (0, [])
