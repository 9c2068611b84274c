"""Whatever happens to messages, and in whatever order: each of them is in one place, and comes out once in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from queue_pipeline_tests.support.processing.recovery_world import KINDS, World


class Step(NamedTuple):
    """A method of `World`, and what it is called with."""

    name: str
    options: dict[str, Any]


def step(name: str, **options: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.builds(Step, st.just(name), st.fixed_dictionaries(options))


which = st.integers(0, 5)
batches = st.sampled_from([10, 3, 1])
ends = st.sampled_from(["failed", "cleanly", "lease over"])
sends = step("send", kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
runs = step("run", slots=st.sampled_from([1, 2]), batch=batches, end=ends)
steps = st.one_of(
    sends,
    runs,
    runs,
    step("wait"),
    step("wait"),
    step("take", batch=batches),
    step("try_held", which=which, end=ends),
    step("die", which=which, end=ends),
    step("let_go", which=which),
    step("give_back", which=which),
    step("split", which=which, keep=which),
    step("adopt", which=which),
    step("adopt_too_late", which=which),
    step("complete_too_late", which=which),
    step("transform", state=st.sampled_from(["failing by body", "fixed", "broken"])),
    step("retry", which=st.none() | which),
    step("discard", which=which),
)
stories = st.builds(lambda first, rest: [first, *rest], sends, st.lists(steps, min_size=8, max_size=25))

story_settings = settings(
    max_examples=80,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.large_base_example],
)


@pytest.fixture
def world(backend):
    """One world a test, which is emptied at the beginning of each story."""
    return World(backend)


@pytest.fixture
def small_world(sqlite):
    return World(sqlite)


@pytest.fixture
def server_world(postgresql):
    return World(postgresql)


def play(world: World, story: Sequence[Step]) -> None:
    world.begin()
    for name, options in story:
        getattr(world, name)(**options)
        world.check()
    world.settle()


@story_settings
@given(story=stories)
def test_every_message_is_in_one_place_whatever_happens(small_world, story):
    play(small_world, story)


@settings(story_settings, max_examples=20)
@given(story=stories)
def test_every_message_is_in_one_place_on_a_server_too(server_world, story):
    play(server_world, story)


@pytest.mark.parametrize("end", ["failed", "lease over"])
def test_a_message_of_each_kind_ends_where_it_belongs(world, end):
    """A message that kills every run is found too, and takes no other message with it."""
    world.begin()
    world.send([*KINDS, "good"])
    for _ in range(2):
        for _ in range(8):
            world.run(2, 10, end)
            world.check()
        world.wait()
    assert world.kinds("error") == ["always failing", "crashing", "refused"]
    assert world.kinds("billing") == ["failing once", "failing three times", "good", "good"]
    world.settle()
