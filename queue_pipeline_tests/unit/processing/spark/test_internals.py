"""The private parts of PySpark: names that are the same for every batch, and a session per attempt."""

import threading

import pyarrow as pa
import pytest
from pyspark.sql.connect.expressions import UnresolvedNamedLambdaVariable

from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.internals import calls, patches
from queue_pipeline.processing.spark.internals.calls import collected
from queue_pipeline.processing.spark.internals.patches import stable_names

# --- names of lambda variables -----------------------------------------------------------------------------


def names(*variables):
    """The names that the client of Spark Connect would write into a plan."""
    return [UnresolvedNamedLambdaVariable.fresh_var_name(variable) for variable in variables]


def number(name):
    return int(name.rpartition("_")[2])


def test_every_block_gives_the_same_names():
    with stable_names():
        first = names("x", "y", "x")
    between = names("x", "x")
    with stable_names():
        assert names("x", "y", "x") == first
    assert not set(between) & set(first)


def test_names_are_unique_inside_one_block():
    with stable_names():
        given = names(*["x"] * 1_000)
    assert len(set(given)) == 1_000


def test_a_name_begins_as_the_variable_does():
    with stable_names():
        (acc,) = names("acc")
    assert acc == f"acc_{number(acc)}"


def test_numbers_in_a_block_do_not_collide_with_those_outside():
    (before,) = names("x")
    with stable_names():
        (within,) = names("x")
    assert number(within) >= 1_000_000 > number(before)


def test_outside_of_a_block_numbering_continues():
    with stable_names():
        names("x")
    (before,) = names("x")
    with stable_names():
        names("x", "y", "z")
    (after,) = names("x")
    assert number(after) == number(before) + 1


def test_a_block_that_raises_ends_too():
    with pytest.raises(ValueError), stable_names():
        (within,) = names("x")
        raise ValueError
    assert number(names("x")[0]) < number(within)


def test_a_nested_block_starts_its_own_numbering_and_the_outer_one_continues():
    with stable_names():
        first = names("x", "y")
        with stable_names():
            assert names("x", "y") == first
        further = names("x", "y")
    assert not set(first) & set(further)
    assert [number(name) for name in further] == [number(name) + 2 for name in first]


def test_other_threads_are_numbered_as_before():
    (before,) = names("x")
    elsewhere = []
    with stable_names():
        names("x")
        thread = threading.Thread(target=lambda: elsewhere.extend(names("x", "x")))
        thread.start()
        thread.join()
        (within,) = names("x")
    assert [number(name) for name in elsewhere] == [number(before) + 1, number(before) + 2]
    with stable_names():
        assert number(within) == number(names("x")[0]) + 1, "the other thread took none of ours"


def test_two_threads_in_blocks_get_the_same_names_without_disturbing_each_other():
    given, both = {}, threading.Barrier(2, timeout=10)

    def work(key):
        with stable_names():
            given[key] = []
            for _ in range(100):
                both.wait()
                given[key] += names("x")

    threads = [threading.Thread(target=work, args=(key,)) for key in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert given["a"] == given["b"]
    assert len(set(given["a"])) == 100


def test_the_client_is_changed_once_however_many_blocks_there_are():
    with stable_names():
        changed = UnresolvedNamedLambdaVariable.fresh_var_name
    with stable_names(), stable_names():
        assert UnresolvedNamedLambdaVariable.fresh_var_name is changed


# --- sessions ----------------------------------------------------------------------------------------------


class Client:
    """The client of a session, as far as it is used."""

    def __init__(self):
        self.policies = []
        self.ended = []

    def set_retry_policies(self, policies):
        self.policies = policies

    def get_retry_policies(self):
        return self.policies

    def release_session(self):
        self.ended.append("released")

    def close(self):
        self.ended.append("closed")


class Session:
    """A session of Spark Connect, as far as it is used."""

    _active_session = threading.local()

    def __init__(self):
        self.client = Client()
        self.interrupted = 0

    def cloneSession(self):
        return Session()

    def interruptAll(self):
        self.interrupted += 1

    def sql(self, query):
        raise AssertionError(query)

    def stop(self):
        raise AssertionError("stopped")


@pytest.fixture
def base(monkeypatch):
    for module in (calls, patches):
        monkeypatch.setattr(module, "is_remote", lambda: True)
    session = Session()
    session.client.policies = ["patient"]
    return session


def active():
    return getattr(Session._active_session, "session", None)


def test_each_attempt_has_a_session_of_its_own_that_ends_with_it(base):
    sessions = AttemptSessions(lambda: base)
    with sessions.session() as first:
        assert first.client.ended == []
    with sessions.session() as second:
        assert len({base, first, second}) == 3
        assert first.client.ended == ["released", "closed"]
    assert base.client.ended == [], "that of the run goes on"


def test_attempts_at_the_same_time_have_sessions_of_their_own(base):
    sessions = AttemptSessions(lambda: base)
    with sessions.session() as one:
        with sessions.session() as other:
            assert one is not other
        assert (one.client.ended, other.client.ended) == ([], ["released", "closed"])


def test_a_session_is_a_clone_of_the_current_session_of_the_run(base):
    bases = iter([base, Session()])
    sessions = AttemptSessions(lambda: next(bases))
    with sessions.session() as first:
        assert first.client.policies == ["patient"], "it retries as that of the run does"
    with sessions.session() as second:
        assert second.client.policies == []


def test_a_session_of_an_attempt_that_raised_is_ended(base):
    with pytest.raises(ValueError, match="of the transform"), AttemptSessions(lambda: base).session() as session:
        raise ValueError("of the transform")
    assert session.client.ended == ["released", "closed"]


def test_a_server_that_is_gone_hides_no_error_of_the_attempt(base, monkeypatch):
    def gone(client):
        raise ConnectionError

    monkeypatch.setattr(Client, "release_session", gone)
    with pytest.raises(ValueError, match="of the transform"), AttemptSessions(lambda: base).session():
        raise ValueError("of the transform")
    with AttemptSessions(lambda: base).session():
        pass


def test_the_session_of_an_attempt_is_the_active_one_of_its_thread_and_of_no_other(base):
    before, elsewhere = active(), []
    with AttemptSessions(lambda: base).session() as session:
        assert active() is session
        thread = threading.Thread(target=lambda: elsewhere.append(active()))
        thread.start()
        thread.join()
    assert active() is before
    assert elsewhere == [None]


def test_the_active_session_of_before_is_active_again_after_an_error(base):
    sessions = AttemptSessions(lambda: base)
    with sessions.session() as outer:
        with pytest.raises(ValueError), sessions.session():
            raise ValueError
        assert active() is outer


def test_an_interrupt_reaches_every_session_in_use_and_no_other(base):
    sessions = AttemptSessions(lambda: base)
    with sessions.session() as ended:
        pass
    with sessions.session() as one, sessions.session() as other:
        sessions.interrupt()
    assert [each.interrupted for each in (ended, one, other, base)] == [0, 1, 1, 0]


def test_an_interrupt_that_fails_for_one_session_reaches_the_next(base, monkeypatch):
    asked = []

    def gone(session):
        asked.append(session)
        raise ConnectionError

    monkeypatch.setattr(Session, "interruptAll", gone)
    sessions = AttemptSessions(lambda: base)
    with sessions.session(), sessions.session():
        sessions.interrupt()
    assert len(set(asked)) == 2


# --- rows of a frame ---------------------------------------------------------------------------------------


def test_rows_are_collected_without_a_request_for_their_schema(base):
    rows = pa.table({"n": [1]})
    frame = type("Frame", (), {"_to_table": lambda self: (rows, "schema")})()
    assert collected(frame) is rows
