"""Rows for the user's own tables: summed up by key in every part of a batch, and once more over all parts."""

import pickle
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.results.table_rows import OutcomeRows, together
from queue_pipeline.transport.operations.user_table_sql import TableRows

LARGEST = 2**63 - 1


def rows(key=("k",), table="totals", **columns):
    return OutcomeRows(table, key, pa.table(columns), tuple(name for name in columns if key and name not in key))


def summed(**columns):
    return rows(**columns).summed().as_table_rows()


def through_task(part):
    """The part as the report of a task brings it to the run."""
    return pickle.loads(pickle.dumps(part))


# --- summing -----------------------------------------------------------------------------------------------


def test_numbers_are_summed_up_by_key_and_are_to_be_added_to_what_is_stored():
    assert summed(k=["a", "b", "a"], n=[1, 2, 3], m=[0.5, 1.0, 0.25]) == TableRows(
        "totals", ("k", "n", "m"), [("a", 4, 0.75), ("b", 2, 1.0)], ("k",), ("n", "m")
    )


def test_a_key_of_several_columns_is_one_key():
    part = rows(
        ("k", "day"), k=["a", "a", "a"], day=[date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 1)], n=[1, 2, 3]
    )
    assert part.summed().as_table_rows().rows == [("a", date(2026, 1, 1), 4), ("a", date(2026, 1, 2), 2)]


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64()])
def test_a_sum_of_integers_may_be_larger_than_their_type(kind):
    largest = 2 ** (kind.bit_width - 1) - 1
    (row,) = summed(k=["a"] * 4, n=pa.array([largest] * 4, kind)).rows
    assert row == ("a", 4 * largest)
    assert type(row[1]) is int


def test_a_sum_beyond_64_bits_stays_exact_in_either_direction_and_over_several_parts():
    parts = [rows(k=["a", "b"] * 3, n=[LARGEST, -LARGEST - 1] * 3).summed() for _ in range(5)]
    (found,) = together(map(through_task, parts))
    assert found.rows == [("a", 15 * LARGEST), ("b", -15 * (LARGEST + 1))]


def test_decimals_are_summed_up_exactly_beyond_the_precision_of_their_type():
    amounts = pa.array([Decimal("9.99")] * 1_000, pa.decimal128(3, 2))
    (row,) = summed(k=["a"] * 1_000, n=amounts).rows
    assert row == ("a", Decimal("9990.00"))


def test_nulls_count_as_nothing_and_nothing_but_nulls_is_null():
    found = summed(k=["a", "a", "b", "b"], n=pa.array([None, 3, None, None], pa.int32()))
    assert found.rows == [("a", 3), ("b", None)]


def test_a_column_of_nulls_without_a_type_is_null():
    assert summed(k=["a", "a"], n=pa.nulls(2)).rows == [("a", None)]


def test_rows_without_a_key_are_appended_unchanged():
    part = rows((), table="log", n=[2, 1, 2], text=["x", None, "x"])
    assert part.summed() is part
    assert part.as_table_rows() == TableRows("log", ("n", "text"), [(2, "x"), (1, None), (2, "x")])


def test_no_rows_are_no_rows():
    assert summed(k=pa.array([], pa.string()), n=pa.array([], pa.int64())).rows == []


def test_summing_twice_changes_nothing():
    once = rows(k=["a", "b", "a"], n=[1, 2, 3]).summed()
    assert once.summed().as_table_rows() == once.as_table_rows()


def test_a_key_may_have_any_name():
    assert rows(("n_sum",), n_sum=["a", "a"], n=[1, 2]).summed().as_table_rows().rows == [("a", 3)]


def test_a_sum_of_decimals_that_is_too_large_is_not_another_number():
    largest = Decimal("9" * 36 + ".99")
    try:
        ((_, found),) = summed(k=["a"] * 3, n=pa.array([largest] * 3, pa.decimal128(38, 2))).rows
    except QueuePipelineError:
        return
    assert found == Decimal("2" + "9" * 36 + ".97")


@pytest.mark.parametrize("values", [["1", "2"], [True, True], [date(2026, 1, 1)] * 2])
def test_what_is_no_number_cannot_be_added_and_the_error_names_table_and_column(values):
    with pytest.raises(QueuePipelineError, match=r"totals.* n "):
        summed(k=["a", "a"], n=values)


# --- several parts -----------------------------------------------------------------------------------------


def test_parts_for_one_table_and_key_become_one_set_with_a_row_per_key():
    parts = [rows(k=["a", "b"], n=[1, 2]), rows(k=["b", "c"], n=[3, 4])]
    assert together(parts) == [TableRows("totals", ("k", "n"), [("a", 1), ("b", 5), ("c", 4)], ("k",), ("n",))]


def test_rows_to_append_of_several_parts_are_all_kept():
    (found,) = together([rows((), n=[1, 2]), rows((), n=[2, 3])])
    assert found.rows == [(1,), (2,), (2,), (3,)]


def test_other_tables_keys_and_columns_stay_separate():
    parts = [
        rows(k=["a"], n=[1]),
        rows(table="others", k=["a"], n=[2]),
        rows(("j",), j=["a"], n=[3]),
        rows(k=["a"], m=[4]),
        rows((), k=["a"], n=[5]),
        rows(k=["a"], n=[6]),
    ]
    found = [(one.table, one.key, one.columns, one.rows) for one in together(parts)]
    assert found == [
        ("totals", ("k",), ("k", "n"), [("a", 7)]),
        ("others", ("k",), ("k", "n"), [("a", 2)]),
        ("totals", ("j",), ("j", "n"), [("a", 3)]),
        ("totals", ("k",), ("k", "m"), [("a", 4)]),
        ("totals", (), ("k", "n"), [("a", 5)]),
    ]


def test_no_parts_are_no_rows():
    assert together([]) == []


numbers = st.none() | st.integers(-LARGEST - 1, LARGEST)


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), numbers), min_size=1, max_size=6), min_size=1, max_size=4))
def test_a_batch_in_several_parts_has_the_same_sums_as_in_one(parts):
    """Exactly, with Python's integers as the reference."""
    made = [
        rows(k=[key for key, _ in part], n=pa.array([number for _, number in part], pa.int64())).summed()
        for part in parts
    ]
    (found,) = together(map(through_task, made))
    given_numbers: dict[str, list[int]] = {}
    for part in parts:
        for key, number in part:
            given_numbers.setdefault(key, []).extend([] if number is None else [number])
    assert dict(found.rows) == {key: sum(each) if each else None for key, each in given_numbers.items()}
    assert len(found.rows) == len(given_numbers)
