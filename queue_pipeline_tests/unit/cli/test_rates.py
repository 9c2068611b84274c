"""Messages in and out per second, from two looks at a queue."""

from __future__ import annotations

import pytest

from queue_pipeline.cli.commands.watch import QueueReading, Rates, rates
from queue_pipeline.transport.inspection.status import QueueStatus


def sample(at, issued, pending, claimed=0, *, capped=False, processed=None, failed=None):
    figures = QueueStatus("orders", pending, capped, None, 0, 0, None, 0, claimed, 0, processed, failed)
    return QueueReading(at, figures, issued)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (None, sample(0, 5, 5), Rates()),
        (sample(0, 100, 10), sample(2, 120, 20), Rates(10, 5)),
        # What moves into a batch has not left yet.
        (sample(0, 100, 10, 0), sample(2, 100, 0, 10), Rates(0, 0)),
        (sample(0, 100, 0, 10), sample(2, 100, 0, 0), Rates(0, 5)),
        # Came and went between two looks.
        (sample(0, 100, 0), sample(1, 400, 0), Rates(300, 300)),
        (sample(0, None, 0), sample(1, None, 0), Rates()),
        (sample(0, 100, 1_000_000, capped=True), sample(1, 400, 1_000_000, capped=True), Rates(300, None)),
        # A table that was created again.
        (sample(0, 100, 10), sample(1, 3, 3), Rates(0, 7)),
        (sample(0, None, 10, processed=5, failed=1), sample(2, None, 12, processed=9, failed=1), Rates(3, 2)),
    ],
)
def test_rates_come_from_numbers_given_and_messages_left(before, now, expected):
    assert rates(before, now) == expected
