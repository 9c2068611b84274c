"""Why a body could not be parsed: it is read again as a variant, to say which of its values is to blame."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    TimestampType,
)

from queue_pipeline.processing.body.envelope import enveloped, is_one_value, parsed
from queue_pipeline.processing.body.problem import Place, below, indexed, keyed, sentence
from queue_pipeline.processing.body.shape import Field, Leaf, ListOf, MapOf, Record, Shape, wire_type
from queue_pipeline.processing.body.sql import NULL_TEXT, bind, concat, cut, first, first_in, text, when

_BITS = {ShortType: 16, IntegerType: 32, LongType: 64}


def misfit(record: Record, body: str) -> str:
    """A sentence about a body that is not such a record."""
    type_problem = bind(f"try_parse_json({body})", "variant", _type_problem(record, "variant", ()))
    # Such as a field that is there twice, which a variant cannot hold.
    unexplained = text("a value of the body does not fit the type of its field")
    not_json = concat([text("the body is not one JSON value; it starts with: "), cut(body)])
    return when(
        f"{body} IS NULL OR trim({text(' ' + chr(9) + chr(10) + chr(13))} FROM {body}) = ''",
        text("the body is empty"),
        bind(
            enveloped(body, StringType()),
            "outline",
            when(is_one_value("outline"), f"coalesce({type_problem}, {unexplained})", not_json),
        ),
    )


def type_words(type_: DataType) -> str:
    """A type as the sender of a body would say it."""
    match type_:
        case ShortType() | IntegerType() | LongType():
            return f"a whole number of {_BITS[type(type_)]} bits in plain digits"
        case FloatType() | DoubleType():
            return "a number"
        case DecimalType():
            return f"a decimal number of at most {type_.precision - type_.scale} digits before the point"
        case BooleanType():
            return "true or false"
        case TimestampType():
            return "a date and time such as 2024-05-31T12:00:00Z"
        case DateType():
            return "a date such as 2024-05-31"
        case BinaryType():
            return "Base64 text"
        case _:
            return "a date and time without a time zone, such as 2024-05-31T12:00:00"


def _type_problem(shape: Shape, variant: str, place: Place) -> str:
    """The first value inside this one whose JSON type is not the declared one."""
    variable = f"y{len(place)}"
    match shape:
        case Leaf(type=StringType()):
            return NULL_TEXT  # Spark keeps any JSON value as its text
        case Leaf():
            return when(_misfits(shape.type, variant), _is_not(type_words(shape.type), variant, place))
        case ListOf():
            index = f"j{len(place)}"
            inside = _unless_null(variable, _type_problem(shape.element, variable, indexed(place, index)))
            elements = f"try_variant_get({variant}, '$', 'array<variant>')"
            problem = first_in(f"transform({elements}, ({variable}, {index}) -> {inside})")
            return when(f"NOT {_kind(variant, 'ARRAY')}", _is_not("an array", variant, place), problem)
        case MapOf():
            value, key = f"{variable}.value", f"{variable}.key"
            inside = _unless_null(value, _type_problem(shape.value, value, keyed(place, key)))
            problem = first_in(f"transform(map_entries({_members(variant)}), {variable} -> {inside})")
        case Record():
            members = f"m{len(place)}"
            problem = bind(_members(variant), members, first(_member(field, members, place) for field in shape.fields))
    return when(f"NOT {_kind(variant, 'OBJECT')}", _is_not("an object", variant, place), problem)


def _member(field: Field, members: str, place: Place) -> str:
    inner = below(place, field.key)
    variable = f"v{len(inner)}"
    problem = _unless_null(variable, _type_problem(field.shape, variable, inner))
    return bind(f"try_element_at({members}, {text(field.key)})", variable, problem)


def _misfits(type_: DataType, variant: str) -> str:
    again = parsed(concat(["""'{"v":'""", f"to_json({variant})", "'}'"]), StructField("v", wire_type(Leaf(type_))))
    if isinstance(type_, ShortType | IntegerType | LongType):
        # As text, a variant does not tell 1.0 from 1.
        return f"schema_of_variant({variant}) <> 'BIGINT' OR {again}.c IS NOT NULL"
    return f"{again}.c IS NOT NULL"


def _members(variant: str) -> str:
    return f"try_variant_get({variant}, '$', 'map<string,variant>')"


def _kind(variant: str, kind: str) -> str:
    return f"startswith(schema_of_variant({variant}), '{kind}')"


def _unless_null(variant: str, problem: str) -> str:
    return when(f"{variant} IS NOT NULL AND NOT is_variant_null({variant})", problem)


def _is_not(words: str, variant: str, place: Place) -> str:
    return concat([sentence(place, " is "), cut(f"to_json({variant})"), text(f", not {words}")])
