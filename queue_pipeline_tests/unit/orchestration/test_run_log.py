"""The log of a run: few lines, whatever happens, and batches that never wait for them."""

from __future__ import annotations

import logging
import threading

import pyarrow as pa
import pytest

from queue_pipeline.orchestration import run_log
from queue_pipeline.orchestration.run_log import MOST_FAILURE_LINES, REPORT_SECONDS, RunLog, RunSummary
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.results.failed_copies import MessageFailure
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline_tests.support.dagster.pipelines import declare
from queue_pipeline_tests.support.waiting import eventually


def batch(number=0, *, failed=0, without_outcome=0):
    refused = [MessageFailure(f"row-{n}", None, f"Refused{number}", "no stock", f"m-{n}") for n in range(failed)]
    return Attempted(
        [
            BatchReport(
                claim_id=f"claim-{number}",
                generation=1,
                messages=10,
                bytes=0,
                sent=20,
                failed=refused,
                expired=0,
                table_rows=0,
                read_seconds=0.25,
                transform_seconds=0.5,
                complete_seconds=0.25,
                latencies=pa.chunked_array([pa.array([], pa.float64())]),
                without_outcome=without_outcome,
            )
        ]
    )


def test_an_hour_of_batches_gives_one_line_and_one_report_per_minute():
    summary, lines, reports = RunSummary(declare(), 0.0), [], []
    for second in range(3601):
        for number in range(2):
            summary.add(batch(second * 2 + number, without_outcome=number), float(second))
        written, minute = summary.take(float(second))
        lines += written
        reports += [minute] if minute else []
    assert lines == [
        (
            logging.INFO,
            "2 batches in 0 s: 20 messages in, 40 out, 1 had no result; read 0.50 s, transform 1.00 s, complete 0.50 s",
        )
    ]
    assert len(reports) == 60
    assert reports[1].sentence.startswith("120 batches in 60 s: 1,200 messages in, 2,400 out, 60 had no result;")
    assert sum(minute.figures.messages for minute in reports) == 3601 * 20


def test_a_single_batch_is_named():
    summary = RunSummary(declare(), 0.0)
    summary.add(batch(7, failed=2), 0.0)
    (refused, (_, line)), _ = summary.take(0.0)
    assert "2 messages, Refused7: m-0: no stock" in refused[1]
    assert line.startswith("batch claim-7: 10 messages in, 20 out, 2 failed;")


def test_while_nothing_happens_nothing_is_written():
    summary = RunSummary(declare(), 0.0)
    assert summary.due is None
    assert summary.take(10 * REPORT_SECONDS, at_once=True) == ([], None)


def test_the_throughput_after_a_wait_is_that_of_the_batches_and_not_of_the_wait():
    summary = RunSummary(declare(), 0.0)
    summary.add(batch(), 1000.0)
    assert summary.due == 0.0
    summary.take(1000.0)
    assert summary.due == 1000.0 + REPORT_SECONDS
    # One second of work, as the batch reports it.
    assert summary.figures.messages_per_second == pytest.approx(10, rel=0.2)


def test_the_first_failures_of_a_minute_are_logged_at_once_and_the_others_as_a_number():
    summary, lines = RunSummary(declare(), 0.0), []
    summary.add(batch(), 0.0)
    summary.take(0.0)
    for number in range(100):
        summary.add(batch(number, failed=1), 1.0)
        lines += summary.take(1.0)[0]
    assert len(lines) == MOST_FAILURE_LINES
    assert {level for level, _ in lines} == {logging.ERROR}
    (left_out,), minute = summary.take(REPORT_SECONDS)
    assert left_out == (logging.WARNING, "80 further lines about failures left out in this time")
    assert minute.sentence.startswith("101 batches in 60 s: 1,010 messages in, 2,020 out, 100 failed;")
    summary.add(batch(1, failed=1), REPORT_SECONDS + 1)
    assert len(summary.take(REPORT_SECONDS + 1)[0]) == 1


def test_the_end_of_a_run_logs_a_line_about_what_was_not_reported_before():
    summary = RunSummary(declare(), 0.0)
    summary.add(batch(), 0.0)
    summary.take(0.0)
    assert summary.take(1.0, at_once=True) == ([], None)
    summary.add(batch(), 2.0)
    ((_, line),), _ = summary.take(2.0, at_once=True)
    assert line.startswith("2 batches in 2 s: 20 messages in, 40 out;")
    assert summary.figures.messages == 20


@pytest.fixture
def storage():
    """Takes lines, and none while it is locked."""

    class Storage:
        def __init__(self):
            self.lines, self.free, self.asked = [], threading.Event(), threading.Event()

        def write(self, level, line):
            self.asked.set()
            self.free.wait()
            self.lines.append(line)

    opened = Storage()
    yield opened
    opened.free.set()


def test_a_locked_storage_blocks_nothing_and_gets_sums_afterwards(storage):
    log = RunLog(declare(), storage.write, storage.write)
    log.add(batch())
    eventually(storage.asked.is_set)
    for number in range(10_000):
        log.add(batch(number))
    storage.free.set()
    log.close("done")
    assert len(storage.lines) == 3
    assert storage.lines[1].startswith("10,001 batches in")
    assert storage.lines[2] == "done"


def test_the_end_of_a_run_does_not_wait_for_a_storage_that_stays_locked(storage, monkeypatch, caplog):
    monkeypatch.setattr(run_log, "END_SECONDS", 0.05)
    with RunLog(declare(), storage.write, storage.write) as log:
        log.add(batch())
        log.close("done", seconds=0.05)
    assert storage.lines == []
    assert "Dagster did not take the last lines" in caplog.text


def test_a_line_that_cannot_be_stored_fails_nothing(caplog):
    def refuse(level, line):
        raise OSError("database is locked")

    with RunLog(declare(), refuse, refuse) as log:
        log.add(batch(3))
    assert "database is locked" in caplog.text
    assert "claim-3" in caplog.text
