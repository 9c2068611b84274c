"""How JSON is handed to Spark's parser, so that nothing it would overlook or guess goes unnoticed."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType

from queue_pipeline.processing.body.sql import concat, text, type_text

_OPTIONS = {
    # Set when a value did not fit, at any depth; the value itself is null then.
    "columnNameOfCorruptRecord": "c",
    "mode": "PERMISSIVE",
    "allowSingleQuotes": "false",
}
# Spark's lenient formats take "12:30" as a time of today, and any text after the date.
_TEMPORAL = {
    "timestampFormat": "yyyy-MM-dd['T'][' ']HH:mm[:ss][.SSSSSSSSS][XXX]",
    "timestampNTZFormat": "yyyy-MM-dd['T'][' ']HH:mm[:ss][.SSSSSSSSS]",
    "dateFormat": "yyyy-MM-dd",
    "enableDateTimeParsingFallback": "false",
}


def enveloped(json: str, type_: DataType) -> str:
    """Parse JSON text as the only element of an array: Spark reads no further than the end of the first value, and
    takes the first element where an object is an array.
    """
    return parsed(
        concat(["""'{"v":['""", json, """'],"e":1}'"""]),
        StructField("v", ArrayType(type_)),
        # Missing when the text closes the array itself.
        StructField("e", IntegerType()),
    )


def is_one_value(envelope: str) -> str:
    """Whether an envelope held exactly one JSON value, and all of it fitted."""
    return f"{envelope}.c IS NULL AND {envelope}.e IS NOT NULL AND size({envelope}.v) = 1"


def parsed(json: str, *fields: StructField) -> str:
    """JSON text as a struct of these fields and `c`, which is null when every value fitted."""
    schema = StructType([*fields, StructField("c", StringType())])
    declared = type_text(schema)
    # Only what is needed: Spark parses this text for every query.
    options = _OPTIONS | (_TEMPORAL if "timestamp" in declared or "date" in declared else {})
    pairs = ", ".join(f"{text(name)}, {text(value)}" for name, value in options.items())
    return f"from_json({json}, {text(declared)}, map({pairs}))"
