import json

import pytest

from queue_pipeline_tests.benchmarks.plan import make_plan
from queue_pipeline_tests.benchmarks.report import Report, Target, paired, summarise
from queue_pipeline_tests.benchmarks.stopwatch import Stopwatch
from queue_pipeline_tests.benchmarks.workload import make_messages, message_size


@pytest.fixture
def report() -> Report:
    report = Report(versions={"python": "3.11"}, settings={"rows": 10})
    report.add("ratios", "send_vs_copy", [0.4, 0.7, 0.55555], Target(at_least=0.5))
    report.add("ratios", "peek_1m_vs_1k", [2.5, 2.5, 2.5], Target(at_most=2))
    report.add("messages_per_s", "send", [70_000.4, 60_000.4, 65_000.4])
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


# --- what is printed ---------------------------------------------------------------------------------------


def test_the_document_has_a_value_a_figure_and_its_spread_under_the_same_names(report):
    document = report.as_json()
    assert document["ratios"] == {"send_vs_copy": 0.556, "peek_1m_vs_1k": 2.5}
    assert document["messages_per_s"] == {"send": 65_000}
    assert document["spread"]["ratios"]["send_vs_copy"] == {"lowest": 0.4, "highest": 0.7}
    assert document["spread"]["messages_per_s"]["send"] == {"lowest": 60_000, "highest": 70_000}
    assert json.loads(json.dumps(document)) == document


def test_the_document_tells_targets_versions_and_settings(report):
    document = report.as_json()
    assert document["targets"] == {
        "send_vs_copy": {"at_least": 0.5, "holds": True},
        "peek_1m_vs_1k": {"at_most": 2, "holds": False},
    }
    assert document["versions"] == {"python": "3.11"}
    assert document["settings"] == {"rows": 10}


def test_a_part_that_was_not_run_leaves_no_trace(report):
    assert set(report.as_json()) == {"ratios", "messages_per_s", "spread", "targets", "versions", "settings"}


def test_the_table_says_which_targets_were_missed(report):
    lines = report.as_text().splitlines()
    assert next(line for line in lines if line.startswith("send_vs_copy")).endswith("≥ 0.5 holds")
    assert next(line for line in lines if line.startswith("peek_1m_vs_1k")).endswith("≤ 2 MISSED")
    assert any(line.split() == ["send", "65,000", "60,000", "70,000"] for line in lines)


def test_the_markdown_has_a_table_a_group(report):
    text = report.as_markdown()
    assert text.count("|---|---:|---:|---:|---|") == 2
    assert "| send_vs_copy | 0.56 | 0.40 | 0.70 | ≥ 0.5 holds |" in text.splitlines()


# --- what is measured --------------------------------------------------------------------------------------


def test_pieces_of_work_under_one_name_add_up():
    written = iter([0, 10, 10, 40])
    watch = Stopwatch(lambda: next(written))
    assert [watch.time("claim", lambda: "first"), watch.time("claim", lambda: "second")] == ["first", "second"]
    assert watch.bytes["claim"] == 40
    assert watch.seconds["claim"] > 0


def test_a_quick_run_moves_fewer_messages_but_streams_as_many():
    quick, full = make_plan(quick=True), make_plan(quick=False)
    assert quick.rows < full.rows == 200_000
    assert quick.stream_rows == full.stream_rows == 200_000
    assert min(quick.rounds, full.rounds) >= 3
    assert make_plan(quick=True, rows=7).rows == make_plan(quick=False, rows=7).rows == 7


def test_messages_are_of_about_a_kibibyte():
    size = message_size(make_messages(100))
    assert 300 <= size.header_bytes <= 600
    assert 500 <= size.body_bytes <= 700
    assert 900 <= size.header_bytes + size.body_bytes <= 1_200
