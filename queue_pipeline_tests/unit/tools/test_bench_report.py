import json
import os

import pytest

from queue_pipeline_tests.benchmarks.__main__ import YOUNG
from queue_pipeline_tests.benchmarks.consumers.pricing import price
from queue_pipeline_tests.benchmarks.plan import BACKLOGS, make_plan
from queue_pipeline_tests.benchmarks.processor_time import Used, difference, look
from queue_pipeline_tests.benchmarks.ratios import PAIRS, ratios, young_ratio
from queue_pipeline_tests.benchmarks.rendering import as_markdown, as_text
from queue_pipeline_tests.benchmarks.report import Report, paired, summarise
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.targets import TARGETS, Target
from queue_pipeline_tests.benchmarks.workload import make_messages, message_size, sized_samples


@pytest.fixture
def report() -> Report:
    report = Report(versions={"python": "3.11"}, settings={"quick": True, "pipeline": {"rows": 10_000}})
    report.add("ratios", "send_vs_copy", [0.5, 0.8, 0.66666])
    report.add("ratios", "peek_1m_vs_1k", [2.5, 2.5, 2.5])
    report.add("messages_per_s", "send", [70_000.4, 60_000.4, 65_000.4])
    report.add("latency_s", "cold", [9.876])
    return report


# --- figures -----------------------------------------------------------------------------------------------


def test_a_figure_is_the_median_and_what_lies_around_it():
    figure = summarise([3.0, 1.0, 10.0])
    assert (figure.median, figure.lowest, figure.highest) == (3.0, 1.0, 10.0)


def test_ratios_are_taken_within_each_round_so_that_a_slow_round_is_slow_for_both():
    assert paired([10.0, 1.0], [20.0, 2.0]) == [0.5, 0.5]


def test_rounds_that_do_not_pair_up_are_a_mistake():
    with pytest.raises(ValueError):
        paired([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("target", "value", "holds"),
    [
        (Target(at_least=0.5), 0.5, True),
        (Target(at_least=0.5), 0.49, False),
        (Target(at_most=2), 2.0, True),
        (Target(at_most=2), 2.01, False),
        (Target(), 1.0, True),
    ],
)
def test_a_target_holds_up_to_its_bound(target, value, holds):
    assert target.holds(value) is holds


def test_every_promise_has_a_target():
    assert {name for group, name in TARGETS if group == "latency_s"} == {"lingering", "warm_launch", "cold"}
    assert {name for group, name in TARGETS if group == "ratios"} == {
        "example_vs_by_hand_x2",
        "example_bad_vs_clean",
        "example_young_vs_warm",
        "example_vs_single_message",
        "executor_vs_jdbc",
        "send_vs_copy",
        "claim_vs_move",
        "growth_10k_to_1m",
        "peek_1m_vs_1k",
        "after_1m_vs_fresh",
    }


# --- ratios of the worked example --------------------------------------------------------------------------


def test_a_ratio_is_reported_if_both_of_its_ways_were_measured():
    speed = {"example": [10.0, 30.0], "by_hand_x2": [20.0, 20.0], "move": [100.0, 100.0]}
    assert ratios(speed) == {
        "example_vs_by_hand_x2": [0.5, 1.5],
        "example_vs_move": [0.1, 0.3],
        "by_hand_x2_vs_move": [0.2, 0.2],
    }


def test_the_ratios_of_the_issue_are_among_those_reported():
    assert PAIRS.keys() >= {
        "example_vs_by_hand_x2",
        "example_bad_vs_clean",
        "example_vs_single_message",
        "example_vs_pgqueuer",
        "example_vs_move",
        "executor_vs_jdbc",
    }


def test_a_young_spark_is_compared_with_the_median_of_the_warm_one():
    assert young_ratio([5.0, 10.0], [10.0, 20.0, 90.0]) == [0.25, 0.5]


# --- processor time ----------------------------------------------------------------------------------------


def stat(folder, pid, name, parent, *times):
    (folder / str(pid)).mkdir()
    fields = ["S", str(parent), *["0"] * 9, *map(str, times), "0", "0"]
    (folder / str(pid) / "stat").write_text(f"{pid} ({name}) {' '.join(fields)}")


def test_processor_time_is_added_up_by_kind_over_all_descendants(tmp_path):
    own, second = os.getpid(), os.sysconf("SC_CLK_TCK")
    (tmp_path / "meminfo").write_text("not a process")
    stat(tmp_path, own, "python", 1, second, second, 0, 0)
    stat(tmp_path, own + 1, "postgres", own, 0, 0, 2 * second, second)
    stat(tmp_path, own + 2, "postgres", own + 1, second, 0, 0, 0)
    stat(tmp_path, own + 3, "java", 1, 5 * second, 0, 0, 0)
    stat(tmp_path, own + 4, "python3.11", own + 3, second, 0, 0, 0)
    stat(tmp_path, own + 5, "java", 1, 70 * second, 0, 0, 0)
    stat(tmp_path, own + 6, "a) (b", own, second, 0, 0, 0)
    found = difference({}, look([own + 3], tmp_path))
    assert found == {"postgresql": 4.0, "java": 5.0, "python": 3.0}


def test_what_an_ended_worker_had_used_before_is_not_counted_with_its_parent():
    java, worker = Used(1, "java", 5.0), Used(7, "python", 8.0)
    assert difference({7: java, 8: worker}, {7: Used(1, "java", 14.0)}) == {"postgresql": 0, "java": 1.0, "python": 0}


def test_the_processor_time_of_this_process_is_read_from_the_kernel():
    assert difference({}, look())["python"] > 0


# --- what is printed ---------------------------------------------------------------------------------------


def test_the_document_has_a_value_a_figure_and_its_spread_under_the_same_names(report):
    document = report.as_json()
    assert document["ratios"] == {"send_vs_copy": 0.667, "peek_1m_vs_1k": 2.5}
    assert document["messages_per_s"] == {"send": 65_000}
    assert document["latency_s"] == {"cold": 9.88}
    assert document["spread"]["ratios"]["send_vs_copy"] == {"lowest": 0.5, "highest": 0.8}
    assert document["spread"]["messages_per_s"]["send"] == {"lowest": 60_000, "highest": 70_000}
    assert json.loads(json.dumps(document)) == document


def test_the_document_has_targets_of_what_was_measured_versions_and_settings(report):
    document = report.as_json()
    assert document["targets"] == {
        "send_vs_copy": {"at_least": 0.79, "holds": False},
        "peek_1m_vs_1k": {"at_most": 2, "holds": False},
        "cold": {"at_most": 20, "holds": True},
    }
    assert document["versions"] == {"python": "3.11"}
    assert document["settings"] == {"quick": True, "pipeline": {"rows": 10_000}}


def test_what_a_message_writes_is_one_number_beside_the_steps(report):
    report.add("wal_bytes", "claim", [1_400.4])
    report.wal = 2_700.6
    document = report.as_json()
    assert document["wal_bytes"] == {"claim": 1_400}
    assert document["wal_bytes_per_message"] == 2_701


def test_a_part_that_was_not_run_is_not_in_the_document(report):
    always = {"spread", "targets", "versions", "settings"}
    assert set(report.as_json()) == {"ratios", "messages_per_s", "latency_s"} | always
    assert set(Report().as_json()) == always


def test_the_table_says_which_targets_were_missed(report):
    lines = as_text(report).splitlines()
    assert next(line for line in lines if line.startswith("send_vs_copy")).endswith("≥ 0.79 MISSED")
    assert next(line for line in lines if line.startswith("peek_1m_vs_1k")).endswith("≤ 2 MISSED")
    assert any(line.split() == ["send", "65,000", "60,000", "70,000"] for line in lines)


def test_the_markdown_has_a_table_a_group_the_chart_and_the_settings_of_each_part(report):
    lines = as_markdown(report, "pipeline", "pipeline.svg").splitlines()
    assert lines[0] == "# Benchmark: pipeline"
    assert any(line.endswith("](pipeline.svg)") for line in lines)
    assert lines.count("|---|---:|---:|---:|---|") == 3
    assert "| send_vs_copy | 0.67 | 0.50 | 0.80 | ≥ 0.79 MISSED |" in lines
    assert lines[-2:] == ["- settings: quick yes", "- pipeline: rows 10,000"]


# --- what is measured --------------------------------------------------------------------------------------


def test_times_under_one_name_add_up():
    written = iter([0, 10, 10, 40])
    watch = Stopwatch(lambda: next(written))
    assert [watch.time("claim", lambda: "first"), watch.time("claim", lambda: "second")] == ["first", "second"]
    assert watch.bytes["claim"] == 40
    assert watch.seconds["claim"] > 0


def test_a_note_appears_before_all_figures_and_in_the_document(report):
    report.notes.append(YOUNG)
    assert as_text(report).startswith("Spark's JVM is young in this quick run")
    assert as_markdown(report, "pipeline").splitlines()[2] == YOUNG
    assert report.as_json()["notes"] == [YOUNG]


def test_a_quick_run_moves_fewer_messages_but_as_many_wait_and_are_streamed():
    quick, full = make_plan("all", quick=True), make_plan("all", quick=False)
    assert quick.rows < full.rows == full.young_rows == 200_000
    assert quick.stream_rows == full.stream_rows == 200_000
    assert quick.passed == full.passed == 1_000_000
    assert BACKLOGS["1m"] == 1_000_000
    assert min(quick.rounds, full.rounds) >= 2


def test_rows_and_rounds_can_be_asked_for():
    for part in ("all", "example"):
        for quick in (True, False):
            plan = make_plan(part, quick=quick, rows=7, rounds=9)
            assert (plan.rows, plan.pipeline_rounds) == (7, 9)


def test_the_example_is_warm_before_a_full_run_counts():
    plan = make_plan("pipeline", quick=False)
    assert plan.pipeline_warm_ups * plan.rows >= 600_000


def test_no_more_messages_are_processed_than_the_smallest_backlog_holds():
    for quick in (True, False):
        assert make_plan("scale", quick=quick).worked_off <= BACKLOGS["10k"]


def test_messages_are_of_about_a_kibibyte_and_a_half():
    size = message_size(make_messages(100))
    assert 400 <= size.header_bytes <= 650
    assert 700 <= size.body_bytes <= 1_000


@pytest.mark.parametrize("size", [205, 1_024, 10_240, 102_400])
def test_bodies_of_a_size_are_orders_of_exactly_that_size(size):
    for sample in sized_samples(3, size):
        assert len(sample.message.body) == size
        assert price(sample.message.body).cents > 0
