"""Bodies read by Arrow before Spark sees them, where that makes no difference to anybody but the clock.

Spark's JSON parser takes twice as long, and most bodies are plain: objects of texts, numbers and lists that are what
they were declared to be. Those Arrow reads alike. It refuses a whole batch for anything else (a number in quotes, a
field that is there twice, half a surrogate pair), and then Spark reads all of it, and says what is wrong with which
message. Both leave undeclared fields alone; only there Spark refuses more: a thousand levels of nesting, a thousand
digits.
"""

from __future__ import annotations

import functools
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
from pyspark.sql import types as T

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.body.shape import Leaf, ListOf, MapOf, Record, Shape, wire_type

LONGEST = 100_000
"""Bytes of a body: well below what Spark's parser takes for a text or a name."""
_LEAVES: dict[T.DataType, Any] = {
    T.StringType(): pa.string(),
    T.BooleanType(): pa.bool_(),
    T.IntegerType(): pa.int32(),
    T.LongType(): pa.int64(),
    T.DoubleType(): pa.float64(),
}


def read_quickly(shape: Record, bodies: Array) -> Array | None:
    """Each body as a struct of what is declared, null where a field is absent; None if Spark has to read them."""
    fields = _fields(wire_type(shape))
    if fields is None or not len(bodies) or bodies.null_count:
        return None
    whole = bodies.combine_chunks() if isinstance(bodies, pa.ChunkedArray) else bodies
    try:
        document = _document(whole)
        parsed = None if document is None else _parsed(document, fields)
        if parsed is None or parsed.num_rows != len(whole):
            return None
        parsed.validate(full=True)
    except pa.ArrowInvalid:
        return None
    columns = [parsed[field.name].combine_chunks() for field in fields]
    if not all(map(_is_finite, columns)):
        return None
    return pa.StructArray.from_arrays(columns, fields=list(fields))


def all_fit(shape: Record, records: Array) -> bool:
    """Whether all that `read_quickly` made has what it must have; False also where only Spark can tell."""
    return _all_fit(shape, True, records)


def _all_fit(shape: Shape, required: bool, values: Array) -> bool:
    if shape.checks or (required and values.null_count):
        return False
    match shape:
        case Record():
            # Flattened, a field is null where its record is: then Spark is asked which of the two it was.
            members = zip(shape.fields, values.flatten(), strict=True)
            return all(_all_fit(field.shape, field.expected, member) for field, member in members)
        case ListOf():
            return _all_fit(shape.element, shape.element_required, values.flatten())
        case MapOf():
            return False
        case Leaf():
            return True


def _document(bodies: Array) -> Any:
    """All bodies as one text of JSON objects, a line each; None where one could run into the next, or is too long.

    What begins and ends with a brace cannot: an object that is not closed is followed by a line end, which no text may
    hold, and by a brace, which follows nothing but a comma or a colon. Two in one body are told by their number.
    """
    lengths = pc.binary_length(bodies)
    if pc.min(lengths).as_py() < 2 or pc.max(lengths).as_py() > LONGEST:
        return None
    texts = bodies.cast(pa.string())
    if not pc.all(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}"))).as_py():
        return None
    lines = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    return pc.binary_join(lines, "\n")[0].as_buffer()


def _parsed(document: Any, fields: pa.Schema) -> Any:
    source: Any = pa.BufferReader(document)
    return pj.read_json(
        source,
        read_options=pj.ReadOptions(use_threads=False, block_size=max(document.size, 1)),
        parse_options=pj.ParseOptions(fields, newlines_in_values=True, unexpected_field_behavior="ignore"),
    )


def _is_finite(column: Array) -> bool:
    """Whether no number is too large for its type: parsers disagree about those."""
    kind = column.type
    if pa.types.is_struct(kind):
        return all(_is_finite(column.field(at)) for at in range(kind.num_fields))
    if pa.types.is_list(kind):
        return _is_finite(column.values)
    return not pa.types.is_floating(kind) or pc.all(pc.is_finite(column)).as_py() is not False


@functools.lru_cache(maxsize=64)
def _fields(declared: T.StructType) -> pa.Schema | None:
    """The declared fields in Arrow's types; None if there are none, or some that the two parsers read differently."""
    fields = _arrow_fields(declared)
    return pa.schema(fields) if fields else None


def _arrow_fields(declared: T.StructType) -> list[Any] | None:
    fields = [(field.name, _arrow_type(field.dataType)) for field in declared.fields]
    if any(kind is None for _, kind in fields) or len(set(declared.names)) < len(fields):
        return None
    return [pa.field(name, kind) for name, kind in fields]


def _arrow_type(declared: T.DataType) -> Any:
    if isinstance(declared, T.StructType):
        inside = _arrow_fields(declared)
        return pa.struct(inside) if inside else None
    if isinstance(declared, T.ArrayType):
        element = _arrow_type(declared.elementType)
        return None if element is None else pa.list_(element)
    return _LEAVES.get(declared)
