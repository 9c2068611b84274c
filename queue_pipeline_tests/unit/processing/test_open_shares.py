"""How the last messages of a queue are shared among the slots of a run."""

import pytest

from queue_pipeline.processing.open_attempts import FIRST_MESSAGES, share


@pytest.mark.parametrize(
    ("left", "slots", "expected"),
    [
        (1_000_000, 2, 40_000),
        (80_000, 2, 40_000),
        (60_000, 2, 30_000),
        (60_001, 2, 30_001),
        (60_000, 3, 20_000),
        (60_000, 1, 40_000),
        (6_000, 2, FIRST_MESSAGES),
        (0, 2, FIRST_MESSAGES),
        # Somebody else's messages, or some that came back: older than what was taken.
        (-10, 2, FIRST_MESSAGES),
    ],
)
def test_each_slot_takes_its_share_of_what_is_left(left, slots, expected):
    assert share(left, slots, 40_000) == expected


def test_a_share_is_never_more_than_a_batch_may_have():
    assert share(0, 2, 100) == 100
