import threading

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.orchestration.metadata import of_run, sentence
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.batch.sent_times import SLOWEST_KEPT
from queue_pipeline.processing.results.failed_copies import MessageFailure
from queue_pipeline.processing.run.run_metrics import FAILED_KEPT, RunFigures, slowest
from queue_pipeline.processing.spark.internals import parts
from queue_pipeline_tests.unit.orchestration.test_metadata_page import keys


def report(latencies=(), *, sent=0, failed=0, generation=1, expired=0, table_rows=0, name="c"):
    known = [(f"{name}{at}", seconds) for at, seconds in enumerate(latencies) if seconds is not None]
    return BatchReport(
        claim_id=name,
        generation=generation,
        messages=len(latencies),
        bytes=10 * len(latencies),
        sent=sent,
        failed=[MessageFailure(f"{name}{at}", None, "Refused", "no") for at in range(failed)],
        expired=expired,
        table_rows=table_rows,
        read_seconds=0.25,
        transform_seconds=0.5,
        complete_seconds=0.125,
        latencies=pa.chunked_array([pa.array(latencies, pa.float64())]),
        slowest=slowest(known),
    )


def figures(*reports):
    run = RunFigures()
    run.start()
    for each in reports:
        run.add_batch(each)
    return run


def test_a_run_adds_up_its_batches():
    run = figures(
        report([1.0, 2.0], sent=3, failed=1, generation=2, expired=4, table_rows=5),
        report([3.0], sent=1, generation=1, expired=1),
    )
    assert (run.batches, run.messages, run.bytes, run.sent, run.failed) == (2, 3, 30, 4, 1)
    assert (run.expired, run.table_rows, run.attempts) == (5, 5, 2)
    assert (run.read_seconds, run.transform_seconds, run.complete_seconds) == (0.5, 1.0, 0.25)
    assert run.messages_per_second > 0


def test_latencies_are_reported_over_all_batches_of_a_run():
    run = figures(report([float(n) for n in range(1, 51)]), report([float(n) for n in range(51, 102)]))
    assert (run.latency.p50, run.latency.p95, run.latency.longest) == (51, 96, 101)


def test_messages_without_the_time_of_their_sending_are_left_out():
    run = figures(report([None, 4.0, None]), report([None]))
    assert (run.latency.p50, run.latency.longest) == (4.0, 4.0)
    assert run.slowest == [("c1", 4.0)]
    assert figures(report([None])).latency is None
    assert figures(report([])).latency is None


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0, 1e6), max_size=8), max_size=5))
def test_the_slowest_of_a_run_are_the_slowest_of_all_its_batches(batches):
    run = figures(*(report(latencies, name=f"b{at}.") for at, latencies in enumerate(batches)))
    everything = sorted((seconds for latencies in batches for seconds in latencies), reverse=True)
    assert [seconds for _, seconds in run.slowest] == everything[:SLOWEST_KEPT]


def test_only_some_failures_are_kept_and_all_are_counted():
    run = figures(report(failed=15), report(failed=15))
    assert (run.failed, len(run.failures)) == (30, FAILED_KEPT)


def test_reports_of_several_threads_are_all_counted():
    run = RunFigures()
    run.start()
    threads = [threading.Thread(target=lambda: [run.add_batch(report([1.0])) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (run.batches, run.messages) == (200, 200)


def test_a_run_without_batches_has_no_throughput():
    run = RunFigures()
    assert (run.busy_seconds, run.messages_per_second, run.latency) == (0.0, 0.0, None)
    run.start()
    assert run.busy_seconds == 0.0


def test_ties_keep_their_order():
    assert slowest([("a", 1.0), ("b", 2.0), ("c", 1.0)]) == [("b", 2.0), ("a", 1.0), ("c", 1.0)]


def test_the_metadata_of_a_run_has_a_number_for_each_plot_and_what_matters_comes_first():
    run = figures(report([1.0, 2.0], sent=2, failed=1))
    values = of_run(run, "queue-pipeline errors retry --all")
    assert set(values) == keys("Asset of a pipeline: since the last report")
    plots = sorted(name for name in values if isinstance(values[name], int | float))
    assert [name.partition("_p")[0] for name in plots] == [
        "handled_messages", "latency_max_s", "latency", "latency", "messages_in", "messages_out",
        "messages_to_error_queue", "messages_to_retry_later", "messages_unread_expired", "messages_without_outcome",
    ]  # fmt: skip
    (failed,) = values["failed_messages"].records
    assert (failed.data["id"], failed.data["cause"]) == ("c0", "Refused: no")
    assert failed.data["time"].endswith(" UTC")
    assert [record.data["latency_s"] for record in values["slowest_messages"].records] == [2.0, 1.0]
    assert values["retry_all"].value == "```\nqueue-pipeline errors retry --all\n```"
    assert "latency_p50_s" not in of_run(figures(report([None])), "")


def test_the_last_report_of_a_run_has_its_sums_too():
    whole = figures(report([1.0, 2.0], sent=2, failed=1), report([3.0], sent=1))
    values = of_run(figures(report([3.0], sent=1)), "", whole, "the queue is empty")
    known = keys("Asset of a pipeline: since the last report") | keys("Asset of a pipeline: the whole run, at its end")
    assert set(values) == {name for name in known if not name.startswith("spark_parts")}
    assert (values["messages_in"], values["run_messages_in"], values["run_batches"]) == (1, 3, 2)
    assert values["run_ended_because"] == "the queue is empty"
    assert len(values["failed_messages"].records) == 1


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (report([1.0], sent=2), "batch c: 1 message in, 2 out; read 0.25 s, transform 0.50 s, complete 0.12 s"),
        (report([1.0], failed=1, expired=2, table_rows=3), "1 message in, 0 out, 1 failed, 2 expired, 3 table rows;"),
        (report([1.0], generation=2), "batch c (generation 2): "),
    ],
)
def test_a_batch_is_reported_in_one_line(batch, says):
    assert says in sentence(batch)


def test_private_parts_of_spark_that_are_missing_are_counted_and_named(monkeypatch):
    run = figures(report([1.0]))
    assert "spark_parts_missing" not in of_run(run, "", run)
    monkeypatch.setattr(parts, "_missing", {"pyspark.x:Y": "speed"})
    values = of_run(run, "", run)
    assert values["spark_parts_missing"] == 1
    assert [record.data for record in values["spark_parts_lost"].records] == [{"part": "pyspark.x:Y", "lost": "speed"}]
