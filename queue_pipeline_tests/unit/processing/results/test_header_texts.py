import json

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.results.header_texts import escaped, header_texts
from queue_pipeline.transport.messages import headers as wire

hard = st.sampled_from(
    ['"', "\\", "/", "\n", "\t", "\x00", "\x1e", "\x7f", "\u2028", "é", "漢", "😀", "</script>", " "]
)
texts = st.text(st.characters(codec="utf-8")) | st.lists(hard).map("".join)
rows = st.lists(st.tuples(st.none() | texts, st.none() | texts), min_size=1, max_size=6)


def column(values):
    return pa.array(values, pa.string())


@settings(deadline=None)
@given(rows, texts)
@example([("plain", None), ('"', "a/b")], "c/d")
@example([(None, None), (None, "x")], "😀")
def test_headers_put_together_by_column_are_those_that_are_encoded_one_by_one(values, constant):
    firsts, seconds = zip(*values, strict=True)
    made = header_texts({"same": constant, "one": column(firsts), "a/b": column(seconds), "left.out": None})
    expected = []
    for first, second in values:
        headers = {"same": constant, "one": first, "a/b": second}
        expected.append(wire.encode({name: value for name, value in headers.items() if value is not None}))
    assert made.to_pylist() == expected


@settings(deadline=None)
@given(rows)
def test_headers_that_are_written_are_read_back_unchanged(values):
    firsts, seconds = zip(*values, strict=True)
    made = header_texts({"same": "s", "one": column(firsts), "two": column(seconds)}).to_pylist()
    for text, (first, second) in zip(made, values, strict=True):
        wanted = {"same": "s", "one": first, "two": second}
        assert json.loads(text) == {name: value for name, value in wanted.items() if value is not None}
        assert "\x1e" not in text
        assert "\0" not in text


@settings(deadline=None)
@given(st.lists(st.none() | texts))
def test_texts_are_escaped_as_the_encoder_does_it(values):
    made = escaped(column(values)).to_pylist()
    assert [text is None for text in made] == [text is None for text in values]
    for text, written in zip(values, made, strict=True):
        assert text is None or wire.encode({"x": text}) == f'{{"x":"{written}"}}'


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a/b", r"a\/b"),
        ('say "hi"', r"say \"hi\""),
        ("back\\slash", r"back\\slash"),
        ("line\nend", r"line\nend"),
        ("\x01", "\\u0001"),
        ("😀", "\\uD83D\\uDE00"),
        ("é", "é"),
    ],
)
def test_escapes_are_those_of_the_reference(text, written):
    assert escaped(column([text])).to_pylist() == [written]
    assert header_texts({"k": "v", "x": column([text])}).to_pylist() == [f'{{"k":"v","x":"{written}"}}']
