"""The figures of what was read: two sets of messages that differ have other figures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.claims.claim import RowsRead

VERSIONS = st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=20)


@given(VERSIONS, VERSIONS)
def test_the_figures_of_two_parts_are_those_of_the_whole(one, other):
    assert RowsRead.of(one) + RowsRead.of(other) == RowsRead.of(one + other)


@given(VERSIONS)
def test_the_order_of_reading_does_not_matter(versions):
    assert RowsRead.of(reversed(versions)) == RowsRead.of(versions)


@given(VERSIONS)
def test_removing_a_row_changes_the_summary(versions):
    assert all(RowsRead.of(versions) != RowsRead.of(v for v in versions if v != gone) for gone in versions)


@pytest.mark.parametrize("other", [[1, 2, 5], [1, 4, 5], [0, 3, 5], [1, 3, 6], [-1, 3, 5]])
def test_replacing_a_row_changes_the_summary(other):
    assert RowsRead.of([1, 3, 5]) != RowsRead.of(other)


def test_a_summary_has_a_readable_text():
    assert str(RowsRead.of([-2, 7])) == "2 messages (row versions -2 to 7, checksum 100000005)"
    assert str(RowsRead()) == "no messages"
