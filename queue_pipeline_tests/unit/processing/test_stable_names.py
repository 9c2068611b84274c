"""The names of lambda variables: those of a transform are the same for every batch."""

import threading

import pytest
from pyspark.sql.connect.expressions import UnresolvedNamedLambdaVariable

from queue_pipeline.processing.stable_names import stable_names


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


def test_numbers_in_a_block_are_out_of_the_way_of_those_that_a_module_was_given():
    (before,) = names("x")
    with stable_names():
        (within,) = names("x")
    assert number(within) >= 1_000_000 > number(before)


def test_outside_of_a_block_numbering_goes_on_where_it_was():
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


def test_a_nested_block_begins_anew_and_the_outer_one_goes_on():
    with stable_names():
        first = names("x", "y")
        with stable_names():
            assert names("x", "y") == first
        further = names("x", "y")
    assert not set(first) & set(further)
    assert [number(name) for name in further] == [number(name) + 2 for name in first]


def test_other_threads_are_numbered_as_ever():
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
