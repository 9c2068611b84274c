"""Columns that stay as Arrow has them, and what is refused of them before they are sent."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.arrow_column import ArrowColumn, any_holds
from queue_pipeline.transport.dialect import NEVER_EXPIRES
from queue_pipeline.transport.errors import InvalidMessageError
from queue_pipeline.transport.ready import ReadyMessages, check_ready

VALUES = ["", "a", "grüße", "😀", ""]
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


def column(values, kind=None):
    return ArrowColumn(pa.array(values, kind or pa.string()))


# --- a column is a sequence --------------------------------------------------------------------------------


def test_a_column_has_the_length_and_the_values_of_its_array():
    texts = column(VALUES)
    assert len(texts) == 5
    assert [texts[at] for at in range(5)] == VALUES
    assert (texts[-1], texts[-2]) == ("", "😀")
    assert list(texts) == VALUES
    assert list(reversed(texts)) == VALUES[::-1]
    assert "grüße" in texts and "b" not in texts
    assert (texts.index("😀"), texts.count("")) == (3, 2)


@pytest.mark.parametrize("at", [slice(1, 3), slice(None), slice(-2, None), slice(None, None, 2), slice(9, 12)])
def test_a_slice_of_a_column_is_that_of_a_list(at):
    assert column(VALUES)[at] == VALUES[at]


@pytest.mark.parametrize("at", [5, -6])
def test_there_is_nothing_behind_the_end(at):
    with pytest.raises(IndexError):
        column(VALUES)[at]


def test_a_column_can_be_read_more_than_once():
    texts = column(VALUES)
    assert list(texts) == list(texts) == VALUES


def test_bytes_come_out_as_bytes():
    bodies = column([b"", bytes(range(256))], pa.binary())
    assert bodies == [b"", bytes(range(256))]
    assert {type(body) for body in bodies} == {bytes}


@given(st.lists(texts), st.lists(texts))
def test_columns_are_equal_when_their_values_are(left, right):
    assert column(left) == left and left == column(left)
    assert column(left) == tuple(left) and column(left) == column(left)
    assert (column(left) == right) is (left == right)
    assert (column(left) == column(right)) is (left == right)


def test_a_column_is_not_equal_to_what_is_no_sequence():
    assert column(["a"]) != {"a"}
    assert column([]) != 0
    assert column(["a"]) != [b"a"]


def test_a_column_cannot_be_hashed_as_a_list_cannot():
    with pytest.raises(TypeError):
        hash(column(VALUES))


@pytest.mark.parametrize(("arrow", "kind"), [(pa.string(), str), (pa.binary(), bytes)])
def test_a_column_knows_what_its_values_are_even_without_any(arrow, kind):
    assert column([], arrow).kind is kind
    assert column([kind()], arrow).kind is kind


def test_an_empty_column_is_an_empty_sequence():
    for empty in (
        column([]),
        ArrowColumn(pa.array(VALUES).slice(2, 0)),
        ArrowColumn(pa.chunked_array([], pa.string())),
    ):
        assert len(empty) == 0
        assert empty == []
        assert not empty.holds(b"a")


# --- arrays of any kind ------------------------------------------------------------------------------------


def test_a_sliced_array_shows_its_own_values_only():
    assert ArrowColumn(pa.array(VALUES).slice(1, 3)) == VALUES[1:4]


def test_a_chunked_array_is_one_column():
    chunks = pa.chunked_array([["a", "b"], [], ["\x1e"]], pa.string())
    texts = ArrowColumn(chunks)
    assert texts == ["a", "b", "\x1e"]
    assert isinstance(texts.array, pa.Array)
    assert texts.holds(b"\x1e")


def test_an_array_that_counts_in_64_bits_is_a_column_as_any_other():
    texts, bodies = column(["plain", "\x1e"], pa.large_string()), column([b"a"], pa.large_binary())
    assert (texts, texts.kind) == (["plain", "\x1e"], str)
    assert (bodies, bodies.kind) == ([b"a"], bytes)
    assert texts.holds(b"\x1e") and not texts.holds(b"\0")
    assert ArrowColumn(pa.chunked_array([["a"], ["b"]], pa.large_string()).slice(1)) == ["b"]


@pytest.mark.parametrize(
    "array",
    [pa.array(["a", None, None]), pa.chunked_array([["a"], [None, "b", None]]), pa.array([None, None], pa.binary())],
)
def test_nulls_are_refused_and_counted(array):
    with pytest.raises(ValueError, match=f"2 of {len(array)} values are null"):
        ArrowColumn(array)


def test_nulls_outside_of_a_slice_do_not_count():
    assert ArrowColumn(pa.array([None, "a", "b", None]).slice(1, 2)) == ["a", "b"]


# --- looking for something ---------------------------------------------------------------------------------


def test_a_needle_is_found_wherever_it_stands():
    assert column(["x", "", "yz"]).holds(b"z")
    assert column(["x", "", "yz"]).holds(b"-", b"x")
    assert column([b"\x00"], pa.binary()).holds(b"\0")
    assert not column(["x", "", "yz"]).holds(b"-", b"+")
    assert not column(["x"]).holds()


def test_a_text_is_found_in_any_chunk():
    chunks = pa.chunked_array([["a", "b"], ["cd"]])
    assert any_holds(chunks, b"cd") and any_holds(chunks.chunk(0), b"b")
    assert not any_holds(chunks, b"bc") and not any_holds(chunks.slice(0, 2), b"c")


def test_values_without_content_hold_nothing():
    assert not column(["", "", ""]).holds(b"\0", b"\x1e")


def test_what_lies_outside_of_a_slice_is_not_found():
    array = pa.array(["\x1e", "ü", "plain", "\x1e"])
    assert not ArrowColumn(array.slice(1, 2)).holds(b"\x1e")
    assert ArrowColumn(array.slice(1)).holds(b"\x1e")
    assert ArrowColumn(array.slice(0, 1)).holds(b"\x1e")
    assert ArrowColumn(array.slice(1, 3).slice(1)).holds(b"\x1e")
    assert not ArrowColumn(array.slice(1, 3).slice(1, 1)).holds(b"\x1e")


@given(st.lists(texts), st.integers(0, 5), st.integers(0, 5), st.sampled_from("\x1e\0aü"))
def test_a_column_holds_what_one_of_its_values_holds(values, first, count, needle):
    part = ArrowColumn(pa.array([*values, needle], pa.string()).slice(first, count))
    assert part.holds(needle.encode()) is any(needle in text for text in [*values, needle][first : first + count])


# --- ready messages of such columns ------------------------------------------------------------------------


def ready(headers, bodies=None, **options):
    count = len(headers)
    bodies = column([b""] * count, pa.binary()) if bodies is None else bodies
    times = options.pop("milliseconds", [NEVER_EXPIRES] * count)
    return ReadyMessages("billing", False, [f"id{n}" for n in range(count)], times, headers, bodies)


def refusal(messages):
    with pytest.raises(InvalidMessageError) as caught:
        check_ready(messages, "billing@[dbo]")
    return str(caught.value)


def test_columns_that_fit_are_accepted():
    check_ready(ready(column(["{}", '{"a":"grüße \\u0000"}']), column([b"\0", b"\x1e"], pa.binary())), "billing")
    check_ready(ready(column([])), "billing")


@pytest.mark.parametrize("character", ["\x1e", "\0"])
def test_a_control_character_in_headers_is_refused_and_names_the_message(character):
    words = refusal(ready(column(["{}", '{"ü":""}', f'{{"a":"{character}"}}', "{}"])))
    assert "message id2 for billing@[dbo]" in words and "control character" in words


def test_a_control_character_outside_of_the_slice_is_nobodys_fault():
    check_ready(ready(ArrowColumn(pa.array(["\x1e", "{}", "\0"]).slice(1, 1))), "billing")


def test_a_control_character_is_found_in_a_slice():
    assert "message id1 for" in refusal(ready(ArrowColumn(pa.array(["{}", "{}", "\0"]).slice(1))))


def test_headers_of_bytes_and_bodies_of_text_are_refused():
    words = refusal(ready(column([b"{}"], pa.binary())))
    assert "message id0 for billing@[dbo]: headers hold bytes, not str" in words
    words = refusal(ready(column(["{}"]), column(["text"])))
    assert "message id0 for billing@[dbo]: bodies hold str, not bytes" in words
    assert refusal(ready(column(["{}"], pa.large_string()), column(["text"], pa.large_string()))) == words


def test_no_messages_of_the_wrong_kind_are_no_messages():
    check_ready(ready(column([], pa.binary()), column([])), "billing")


def test_columns_of_different_lengths_are_refused():
    assert "2 headers, 1 bodies" in refusal(ready(column(["{}", "{}"]), column([b""], pa.binary())))


def test_a_column_of_arrows_goes_with_a_list():
    check_ready(ready(column(["{}"]), [b""]), "billing")
    assert "message id0" in refusal(ready(["\0"], column([b""], pa.binary())))


def test_a_time_that_cannot_be_is_refused_beside_such_columns():
    assert "message id1" in refusal(ready(column(["{}", "{}"]), milliseconds=[NEVER_EXPIRES, 0]))
