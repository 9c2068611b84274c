import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.errors import InvalidMessageError
from queue_pipeline.transport.layouts.nginn.text import decode_headers, encode_headers, to_ascii, type_of, typed_body

plain = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="=|"), min_size=1)
text = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=10,
)


@given(st.dictionaries(plain, plain | st.just("")))
def test_headers_come_back_as_they_were_written(headers):
    assert decode_headers(encode_headers(headers, "a message")) == headers


@pytest.mark.parametrize("text", ["a", "a=b=c", "=b=", "a=1|b", "a==", " "])
def test_a_pair_without_exactly_one_equals_sign_is_an_error_that_names_it(text):
    with pytest.raises(ValueError, match=r"is not one name, one = and one value"):
        decode_headers(text)


def test_an_error_about_a_long_pair_is_short():
    with pytest.raises(ValueError) as error:
        decode_headers("x" * 10_000)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize("text", [None, "", "|", "||"])
def test_no_headers_are_none(text):
    assert decode_headers(text) == {}


def test_a_refusal_names_the_message_and_the_header():
    with pytest.raises(InvalidMessageError, match=r"message 7: its header 'token'"):
        encode_headers({"good": "x", "token": "abc=="}, "message 7")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{"$type":"A.B, C"}', "A.B, C"),
        (' {  "$type" : "A.B, C", "n":1}', "A.B, C"),
        ('{"$type":"A.\\u0042, C\\"\\\\"}', 'A.B, C"\\'),
        ('{"n":1,"$type":"A.B, C"}', None),
        ('{"$type":5}', None),
        ('{"$type":"\\q"}', None),
        ("[]", None),
        ("", None),
        (None, None),
    ],
)
def test_the_type_is_that_of_the_first_property(body, expected):
    assert type_of(body) == expected


@given(st.dictionaries(text, values))
def test_a_typed_body_is_ascii_and_has_the_same_members(members):
    members.pop("$type", None)
    typed = typed_body(json.dumps(members, ensure_ascii=False).encode(), "A.B, C", "m")
    assert typed.isascii()
    assert typed.startswith('{"$type":"A.B, C"')
    found = json.loads(typed)
    assert found.pop("$type") == "A.B, C"
    assert found == members


def test_the_inside_of_a_member_stays_as_it_was_written():
    text = typed_body(b'{ "a" : [ 1.10, {"b" : 1e400} ] ,\n"c":12345678901234567890 }', "A.B, C", "m")
    assert text == '{"$type":"A.B, C","a":[ 1.10, {"b" : 1e400} ],"c":12345678901234567890}'


def test_a_compact_typed_body_is_left_as_it_is():
    text = '{"$type":"A.B, C", "n": 1.0}'
    assert typed_body(text.encode(), None, "m") == text


def test_a_byte_order_mark_is_dropped():
    assert typed_body(b'\xef\xbb\xbf{"n":1}', "A.B, C", "m") == '{"$type":"A.B, C","n":1}'


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b"{", b"\xff", b'{"a":1}x'])
def test_a_body_that_is_no_object_is_refused(body):
    with pytest.raises(InvalidMessageError, match=r"^m: NGinn bodies are JSON"):
        typed_body(body, "A.B, C", "m")


def test_a_body_that_is_nested_too_deeply_is_refused():
    with pytest.raises(InvalidMessageError, match=r"^m: NGinn bodies are JSON"):
        typed_body(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "A.B, C", "m")


@given(text)
def test_escapes_mean_the_same_text(value):
    quoted = json.dumps(value, ensure_ascii=False)
    assert to_ascii(quoted).isascii()
    assert json.loads(to_ascii(quoted)) == value
