"""Headers taken apart by kind are what a parser makes of them, or are left to it."""

import json
import uuid

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.header_kinds import columns_by_kind
from queue_pipeline.transport import headers as wire

NAMES = ("one", "two", "a/b", "absent")


def told(texts, names=NAMES):
    found = columns_by_kind(pa.array(texts, pa.string()), names)
    return None if found is None else {name: column.to_pylist() for name, column in found.items()}


def parsed(texts, names=NAMES):
    decoded = [wire.decode(text) for text in texts]
    return {name: [headers.get(name) or None for headers in decoded] for name in names}


def alike(count, **further):
    return [
        wire.encode({"one": str(uuid.uuid4()), "two": "same", "a/b": f"{number:06d}", **further})
        for number in range(count)
    ]


def test_texts_of_one_kind_are_taken_apart():
    texts = alike(100)
    assert told(texts) == parsed(texts)


def test_several_kinds_keep_their_places():
    texts = [
        text for three in zip(alike(50), alike(50, two="other"), alike(50, more="x/y"), strict=True) for text in three
    ]
    assert told(texts) == parsed(texts)


def test_a_part_of_an_array_is_taken_apart_as_the_whole():
    texts = alike(60)
    found = columns_by_kind(pa.array(texts, pa.string()).slice(20, 30), NAMES)
    assert {name: column.to_pylist() for name, column in found.items()} == parsed(texts[20:50])


def test_an_escape_that_is_the_same_everywhere_is_understood():
    texts = alike(40, two='say "hé"/\\\n')
    assert told(texts) == parsed(texts)
    assert told(texts)["two"][7] == 'say "hé"/\\\n'


def test_an_empty_value_counts_as_none():
    assert told(alike(30, two=""))["two"] == [None] * 30


def test_the_same_length_is_not_yet_the_same_kind():
    """Names, quotes and escapes at other places are left to the parser, whatever else is alike."""
    first = '{"one":"aaaa","two":"bbbb"}'
    for other in (
        '{"one":"aaaa","owt":"bbbb"}',
        '{"one":"aaa","two":"bbbbb"}',
        '{"one":"a\\na","two":"bbbb"}',
        '{"one":"a\\"a","two":"bbbb"}',
        '{"one":"aaaa","two":"bbb"} ',
        '{"one":"aaaa","two": 12345}',
        '{"one":"aaaa","two":"bbbb"]',
        '["one","aaaa","two","bbbb"]',
        '{"one":"éaa","two":"bbbb"}',
        '{"one":"aa\x1ea","two":"bbbb"}',
        '{"one":"aa\x7fa","two":"bbbb"}',
    ):
        assert len(other.encode()) == len(first), other
        assert told([first] * 30 + [other]) is None
        assert told([other] + [first] * 30) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"one":1}',
        '{"one":null}',
        '{"one":"a","one":"b"}',
        '{"one":{"two":"a"}}',
        '{"one":"\\ud800"}',
        '{"one":"a"',
        ' {"one":"a"}',
    ],
)
def test_what_is_no_plain_object_of_texts_is_left_to_the_parser(text):
    assert told([text] * 40) is None


def test_an_escape_that_differs_is_left_to_the_parser():
    assert told(['{"one":"\\u00e9"}'] * 30 + ['{"one":"\\u00e8"}'] * 30) is None


def test_nothing_and_nulls_are_left_to_the_parser():
    assert told([]) is None
    assert told(['{"one":"a"}', None] * 30) is None


def test_too_many_kinds_are_left_to_the_parser():
    assert told([wire.encode({"one": "x" * number}) for number in range(200)]) is None


def test_no_names_only_ask_whether_all_can_be_read():
    assert told(alike(30), ()) == {}


values = st.text(st.sampled_from('ab"\\/é\n '), max_size=3)
kinds = st.lists(
    st.dictionaries(st.sampled_from(["one", "two", "a/b"]), values | st.sampled_from([None, 1]), max_size=3),
    min_size=1,
    max_size=4,
)


@settings(deadline=None)
@given(kinds, st.integers(20, 40), st.randoms())
@example([{"one": "a"}, {"one": "b"}], 20, None)
def test_whatever_is_taken_apart_is_what_the_parser_says(found, repeated, random):
    texts = [json.dumps(headers) for headers in found] * repeated
    if random is not None:
        random.shuffle(texts)
    result = told(texts)
    if result is not None:
        assert result == parsed(texts)
