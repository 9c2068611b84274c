import uuid

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.results.result_ids import NAMESPACE, number_results, result_ids, result_name

texts = st.text(st.characters(codec="utf-8"))
results = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.none() | st.integers(0, 2), st.none() | st.binary(max_size=2)),
    max_size=8,
)


def numbered(rows):
    ids, ordinals, bodies = zip(*rows, strict=True) if rows else ((), (), ())
    return number_results(pa.array(ids, pa.string()), pa.array(ordinals, pa.int32()), pa.array(bodies, pa.binary()))


@settings(deadline=None)
@given(st.lists(st.tuples(texts, st.integers(0, 2**31))), texts, texts)
def test_an_id_is_the_version_five_uuid_of_what_it_results_from(rows, pipeline, queue):
    made = result_ids([row for row, _ in rows], pipeline, queue, [ordinal for _, ordinal in rows])
    assert made == [str(uuid.uuid5(NAMESPACE, result_name(row, pipeline, queue, ordinal))) for row, ordinal in rows]


def test_ids_never_change():
    """A change here would send twice what was sent before an upgrade and is processed again after it."""
    assert result_ids(["7f9c24e8-3b12-4fef-91d4-2e7a9e2a1f10"], "orders", "billing", [0]) == [
        "96a75666-b604-5fa9-9122-b5ff3752a09d"
    ]


def test_every_part_of_a_result_changes_its_id():
    ids = {
        result_ids([row], pipeline, queue, [ordinal])[0]
        for row in ("r1", "r2")
        for pipeline in ("p", "q")
        for queue in ("a", "b")
        for ordinal in (0, 1)
    }
    assert len(ids) == 16


@settings(deadline=None)
@given(results, st.randoms())
def test_numbers_do_not_depend_on_the_order_in_which_spark_returns_the_rows(rows, random):
    shuffled = random.sample(rows, len(rows))

    def numbered_rows(given_rows):
        return sorted(
            (row[0], number, row[1] or 0, row[2] or b"")
            for row, number in zip(given_rows, numbered(given_rows), strict=True)
        )

    assert numbered_rows(rows) == numbered_rows(shuffled)


@settings(deadline=None)
@given(results)
def test_the_results_of_a_message_have_different_numbers(rows):
    pairs = list(zip((row[0] for row in rows), numbered(rows), strict=True))
    assert len(set(pairs)) == len(pairs)


def test_numbers_of_the_transform_are_kept_where_they_distinguish_results():
    assert numbered([("a", 7, b""), ("a", 3, b""), ("b", 7, b"")]) == [7, 3, 7]
    assert numbered([("a", None, b"x"), ("b", None, b"y")]) == [0, 0]


def test_results_without_numbers_are_counted_in_the_order_of_their_bodies():
    assert numbered([("a", None, b"z"), ("a", None, b"x"), ("a", None, None), ("b", None, b"q")]) == [2, 1, 0, 0]
