"""What a claim is, as a value."""

import pytest

from queue_pipeline.transport.claims.claim import ranges


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], []),
        ([3], [(3, 3)]),
        ([1, 3, 7], [(1, 7)]),
        ([7, 1], [(1, 1), (7, 7)]),
        ([1, 3, 9, 12], [(1, 3), (9, 12)]),
        ([1, 3, 7, 8, 9, 12], [(1, 12)]),
    ],
)
def test_ranges_hold_only_the_requested_messages(rows, found):
    assert ranges(rows, [12, 9, 8, 7, 3, 1]) == found
