"""The last backlog of a queue is shared among the slots of a run."""

import pytest

from queue_pipeline.processing.run.take import SMALLEST_SHARE, share


@pytest.mark.parametrize(
    ("waiting", "slots", "expected"),
    [
        (80_000, 2, 40_000),
        (1_000_000, 2, 40_000),
        (40_000, 2, 20_000),
        (40_001, 2, 20_001),
        (9_000, 2, SMALLEST_SHARE),
        (0, 2, SMALLEST_SHARE),
        (30_000, 4, 7_500),
    ],
)
def test_a_batch_takes_its_share_of_the_waiting_messages(waiting, slots, expected):
    assert share(waiting, slots, 40_000) == expected


def test_a_share_is_never_larger_than_a_batch_may_be():
    assert share(100, 2, 10) == 10
