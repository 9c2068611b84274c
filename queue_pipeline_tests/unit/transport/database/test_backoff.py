from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.database.backoff import Backoff

seconds = st.floats(0.001, 1_000)


def test_the_wait_doubles_with_each_failure_up_to_the_longest():
    backoff = Backoff(first=1.0, longest=30.0)
    assert [backoff.delay(failures) for failures in range(8)] == [0, 1, 2, 4, 8, 16, 30, 30]


@given(seconds, seconds, st.integers(0, 100_000))
def test_the_wait_never_shrinks_and_is_bounded(first, longest, failures):
    backoff = Backoff(first, longest)
    assert 0.0 <= backoff.delay(failures) <= backoff.delay(failures + 1) <= longest
