"""Columns of texts: made from bytes, and searched."""

import uuid

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.arrow_column import any_holds, uuid_texts


@given(st.lists(st.uuids()))
def test_ids_of_sixteen_bytes_become_their_texts(ids):
    assert uuid_texts(b"".join(one.bytes for one in ids)).to_pylist() == [str(one) for one in ids]


def test_an_id_of_zeros_keeps_its_digits():
    assert uuid_texts(uuid.UUID(int=0).bytes).to_pylist() == ["00000000-0000-0000-0000-000000000000"]


def test_a_text_is_found_in_any_chunk():
    chunks = pa.chunked_array([["a", "b"], ["cd"]])
    assert any_holds(chunks, b"cd") and any_holds(chunks.chunk(0), b"b")
    assert not any_holds(chunks, b"bc")


@pytest.mark.parametrize("column", [pa.chunked_array([], pa.string()), pa.array([], pa.string()), pa.array(["", ""])])
def test_a_column_without_content_holds_nothing(column):
    assert not any_holds(column, b"a")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.integers(0, 5), st.integers(0, 5))
def test_a_value_is_always_found(values, first, count):
    part = pa.array(values, pa.string()).slice(first, count)
    assert all(any_holds(part, value.encode()) for value in values[first : first + count])
