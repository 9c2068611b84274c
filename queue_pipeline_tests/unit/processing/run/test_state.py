"""What a run does next, whatever is known: it begins only what it may, and ends only when nothing is left."""

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.processing.run.state import QUEUE_EMPTY, AskForSlots, End, RunView, Stop, Take, Wait, next_step

seconds = st.floats(0, 1_000, allow_nan=False)
few = st.integers(0, 8)
views = st.builds(
    RunView,
    now=seconds,
    deadline=seconds,
    max_run_seconds=seconds,
    not_before=seconds,
    idle_since=seconds,
    linger_seconds=seconds,
    longest_wait=seconds,
    slots=st.integers(1, 8),
    held=few,
    in_work=few,
    waiting=few,
    is_isolating=st.booleans(),
    has_isolated=st.booleans(),
    is_careful=st.booleans(),
    found_none=st.booleans(),
    is_stopping=st.booleans(),
    reason_to_stop=st.one_of(st.none(), st.just("the code changed")),
)


def begins(view):
    return isinstance(next_step(view), Take | AskForSlots)


@given(views)
def test_a_batch_begins_only_in_a_slot_that_the_run_holds(view):
    step = next_step(view)
    if isinstance(step, Take):
        assert view.in_work < min(view.held, view.allowed)
    if isinstance(step, AskForSlots):
        assert view.held <= view.in_work < step.slots <= view.slots


@given(views)
def test_nothing_begins_in_a_run_that_stops_or_has_to(view):
    if view.is_stopping or view.reason_to_stop or view.now >= view.deadline:
        assert not begins(view)


@given(views)
def test_nothing_begins_before_its_time_or_after_a_search_that_found_nothing(view):
    if view.now < view.not_before or view.found_none:
        assert not begins(view)


@given(views)
def test_no_other_batch_is_in_work_beside_an_isolated_one(view):
    if view.in_work and (view.is_isolating or view.has_isolated):
        assert not begins(view)


@given(views)
def test_one_batch_at_a_time_is_tried_where_each_try_may_be_the_last(view):
    if view.is_careful and view.in_work:
        assert not begins(view)


@given(views)
def test_a_run_stops_at_once_and_only_once(view):
    step = next_step(view)
    has_to = view.now >= view.deadline or view.reason_to_stop is not None
    assert isinstance(step, Stop) == (has_to and not view.is_stopping)


@given(views)
def test_a_run_ends_only_when_nothing_is_in_work_and_only_stopping_leaves_claims_behind(view):
    if isinstance(step := next_step(view), End):
        assert not view.in_work
        assert view.is_stopping or (step.reason == QUEUE_EMPTY and not view.waiting)
        assert view.is_stopping or view.now - view.idle_since >= view.linger_seconds


@given(views)
def test_a_run_that_stops_and_has_nothing_in_work_ends(view):
    assert not (view.is_stopping and not view.in_work) or isinstance(next_step(view), End)


@given(views)
def test_no_wait_makes_a_due_message_late(view):
    if isinstance(step := next_step(view), Wait):
        assert 0 <= step.seconds <= view.longest_wait
        assert not step.is_idle or not (view.in_work or view.waiting)


@dataclass
class Simulation:
    """A queue of batches and a run that follows its instructions; each batch takes one wait."""

    batches: int
    slots: int
    free: int
    view: RunView = field(init=False)
    most: int = 0

    def __post_init__(self):
        self.view = RunView(
            now=0, deadline=1e9, max_run_seconds=1e9, not_before=0, idle_since=0, linger_seconds=5, longest_wait=1,
            slots=self.slots, held=0, in_work=0, waiting=0, is_isolating=False, has_isolated=False, is_careful=False,
            found_none=False, is_stopping=False,
        )  # fmt: skip

    def run(self):
        while not isinstance(step := next_step(self.view), End):
            self.carry_out(step)
            self.most = max(self.most, self.view.in_work)
        return step

    def carry_out(self, step):
        view = self.view
        match step:
            case Take() if self.batches:
                self.batches -= 1
                self.view = replace(view, in_work=view.in_work + 1)
            case Take():
                self.view = replace(view, held=min(view.held, view.in_work + 1), found_none=True)
            case AskForSlots(slots):
                held = min(slots, self.free)
                self.view = replace(view, held=held, found_none=held <= view.in_work)
            case Wait(seconds, is_idle):
                now = view.now + seconds
                idle_since = view.idle_since if is_idle else now
                self.view = replace(view, now=now, idle_since=idle_since, in_work=0, found_none=False)


@given(st.integers(0, 50), st.integers(1, 6), st.integers(1, 6))
def test_a_run_takes_all_batches_in_as_many_slots_as_it_gets_lingers_and_ends(batches, slots, free):
    simulation = Simulation(batches, slots, free)
    assert simulation.run() == End(QUEUE_EMPTY)
    assert simulation.batches == 0
    assert simulation.most == min(batches, slots, free)
    assert simulation.view.now - simulation.view.idle_since >= 5
