"""What is reported of a part: the rows that it holds, and those that the transform never sees."""

import itertools
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.batch.part_report import (
    QUANTILES,
    PartReport,
    outside,
    read_part,
    row_ranges,
    row_versions,
)
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.transport.claims.message_table import from_rows
from queue_pipeline.transport.messages import headers as wire

FIRST = datetime(2026, 2, 3, 4, 5, 6, 7, UTC)
versions = st.lists(st.integers(-5, 30) | st.sampled_from([2**62, 2**62 + 1, 2**63 - 1]), max_size=30)


def ranges_of(numbers):
    return row_ranges(np.array(numbers, np.int64))


def held(ranges):
    return {number for first, last in ranges for number in range(first, last + 1)}


# --- ranges ------------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(versions)
def test_ranges_hold_the_row_versions_and_no_others(numbers):
    found = ranges_of(numbers)
    assert held(found) == set(numbers)
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(found)), "as few as possible"


@settings(deadline=None)
@given(versions)
def test_ranges_are_row_versions_again(numbers):
    assert row_versions(ranges_of(numbers)).tolist() == sorted(set(numbers))


@settings(deadline=None)
@given(versions, versions)
def test_a_row_version_is_outside_if_no_known_range_holds_it(numbers, known):
    found = outside(ranges_of(numbers), ranges_of(known))
    strangers = set(numbers) - set(known)
    assert found in strangers if strangers else found is None


@settings(deadline=None, database=None)
@given(st.lists(versions, max_size=4), versions)
@example([[1, 2], [3, 4]], [2, 3])
def test_results_across_the_border_of_two_parts_are_of_known_messages(parts, numbers):
    """Each part reports ranges of its own, in any order; no two parts share a row version."""
    known: set[int] = set()
    ranges: list[tuple[int, int]] = []
    for part in parts:
        ranges = [*ranges_of(sorted(set(part) - known)), *ranges]
        known |= set(part)
    found = outside(ranges_of(numbers), ranges)
    strangers = set(numbers) - known
    assert found in strangers if strangers else found is None


# --- reports -----------------------------------------------------------------------------------------------


def part(*rows):
    return from_rows(rows)


def row(number, sent=None, text=None):
    headers = {} if sent is None else {wire.TIME_SENT: wire.format_timestamp(sent)}
    return f"id{number}", number, text or wire.encode(headers), b"{}", None, None


def test_a_report_names_rows_unreadable_ones_and_the_oldest_message():
    rows = [row(1, FIRST + timedelta(1)), row(2, text="no json"), row(3), row(7, FIRST)]
    read = read_part(part(*rows), None)
    assert read.messages["id"].to_pylist() == ["id1", "id3", "id7"]
    assert read.report.rows == [(1, 3), (7, 7)]
    assert [one.id for one in read.report.unreadable] == ["id2"]
    assert (read.report.known, read.report.oldest_id) == (2, "id7")
    assert len(read.report.times) == QUANTILES + 1


@pytest.mark.parametrize(("schema", "expected"), [(None, [(1, 1), (3, 3)]), ("n INT NOT NULL", [(3, 3)])])
def test_a_report_names_the_messages_that_should_have_an_outcome(schema, expected):
    """Not those whose headers or bodies are refused, and no control messages, with a schema or without."""
    control = wire.encode({wire.CONTROL_MESSAGE: "True"})
    rows = [row(1), row(2, text="no json"), (*row(3)[:3], b'{"n":1}', None, None), row(4, text=control)]
    read = read_part(part(*rows), None if schema is None else body_parser(schema))
    assert (read.report.rows, read.report.expected) == ([(1, 4)], expected)


def test_a_report_of_messages_that_do_not_say_when_they_were_sent_has_no_times():
    report = read_part(part(row(1), row(2)), None).report
    assert (report.times, report.known, report.oldest_id) == ([], 0, None)


@pytest.mark.parametrize("rows", [[], [row(1, text="no json")], [row(1, FIRST), row(2, text="[]")]])
def test_a_report_is_the_same_after_a_round_trip_through_the_outbox(rows):
    report = read_part(part(*rows), None).report
    assert PartReport.model_validate_json(report.model_dump_json()) == report


def test_reading_a_part_again_makes_the_same_report():
    rows = part(row(1, FIRST), row(2, text="no json"), row(3, FIRST + timedelta(1)))
    assert read_part(rows, None).report == read_part(rows, None).report
