from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_pipeline.transport.circuit_breaker import BreakerState, CircuitBreaker


class Scene:
    """A breaker on a clock that the test turns, and what it announced."""

    def __init__(self, **callbacks):
        self.now = 100.0
        self.said: list = []
        self.breaker = CircuitBreaker(
            on_armed=callbacks.get("on_armed", lambda error: self.said.append(("armed", error))),
            on_triggered=lambda error: self.said.append(("triggered", error)),
            on_disarmed=callbacks.get("on_disarmed", lambda: self.said.append(("disarmed",))),
            clock=lambda: self.now,
        )


def refuse(*_):
    raise RuntimeError("callback failed")


def test_a_success_disarms():
    """UT-21: armed once by the first failure, disarmed once by the first success."""
    scene, error = Scene(), ValueError("away")
    scene.breaker.failure(error)
    scene.breaker.failure(error)
    scene.breaker.success()
    scene.breaker.success()
    assert scene.said == [("armed", error), ("disarmed",)]
    assert scene.breaker.state is BreakerState.DISARMED


def test_an_exception_of_the_disarm_action_reaches_the_caller():
    """UT-22: it propagates, and the breaker is disarmed all the same."""
    scene = Scene(on_disarmed=refuse)
    scene.breaker.failure(ValueError())
    with pytest.raises(RuntimeError, match="callback failed"):
        scene.breaker.success()
    assert scene.breaker.state is BreakerState.DISARMED


def test_it_triggers_when_failures_have_lasted_with_the_last_error():
    """UT-23: thirty seconds after arming, with the last error; reading the state is enough, no timer runs."""
    scene, first, last = Scene(), ValueError("first"), ValueError("last")
    scene.breaker.failure(first)
    scene.breaker.failure(last)
    scene.now += 29.9
    assert scene.breaker.state is BreakerState.ARMED
    scene.now += 0.1
    assert scene.breaker.state is BreakerState.TRIGGERED
    assert scene.said == [("armed", first), ("triggered", last)]


def test_an_exception_of_the_arm_action_reaches_the_caller():
    """UT-24: it propagates out of failure()."""
    scene = Scene(on_armed=refuse)
    with pytest.raises(RuntimeError, match="callback failed"):
        scene.breaker.failure(ValueError())


def test_failures_delay_one_second_when_armed_and_ten_when_triggered():
    """UT-25: the delays of the two states, none when all is well."""
    scene = Scene()
    assert scene.breaker.delay_seconds == 0
    assert scene.breaker.failure(ValueError()) == 1
    scene.now += 30
    assert scene.breaker.failure(ValueError()) == 10
    scene.breaker.success()
    assert scene.breaker.delay_seconds == 0


def test_a_breaker_disarmed_in_time_never_triggers():
    """UT-26: a success within the thirty seconds calls the trigger off."""
    scene = Scene()
    scene.breaker.failure(ValueError())
    scene.now += 20
    scene.breaker.success()
    scene.now += 100
    assert scene.breaker.state is BreakerState.DISARMED
    assert [said[0] for said in scene.said] == ["armed", "disarmed"]


def test_concurrent_failures_arm_once_and_concurrent_successes_disarm_once():
    """UT-27, UT-28: a thousand reports from sixteen threads are announced once."""
    scene = Scene()
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda _: scene.breaker.failure(ValueError()), range(1000)))
        list(threads.map(lambda _: scene.breaker.success(), range(1000)))
    assert [said[0] for said in scene.said] == ["armed", "disarmed"]


def test_repeated_failures_trigger_once():
    """UT-29: failures that go on after the trigger are not announced again."""
    scene = Scene()
    for _ in range(5):
        scene.breaker.failure(ValueError())
        scene.now += 20
    assert [said[0] for said in scene.said] == ["armed", "triggered"]
