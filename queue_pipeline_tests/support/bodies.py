"""Bodies as the pipeline reads them: all of a schema in one action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body.schema import CHECKED, RECORD, BodySchema, parse_body, with_payload, with_record


def outcomes(spark: SparkSession, schema: BodySchema, bodies: Sequence[bytes | str | None]) -> list[Any]:
    """For each body its problem, or its payload when it has none."""
    rows = [(i, b.encode() if isinstance(b, str) else b) for i, b in enumerate(bodies)]
    frame = spark.createDataFrame(rows, "id long, body binary")
    parsed = parse_body(schema, F.col("body"))
    told = with_payload(frame, schema, ("id", "body")).withColumnRenamed("payload", "quick")
    found = told.select(
        "id", "quick", "fits", parsed.payload.alias("payload"), parsed.problem.alias("problem")
    ).collect()
    assert all((row.payload is None) != (row.problem is None) for row in found)
    # What every message pays for agrees with the careful reading.
    assert [row.problem for row in found if row.fits is not (row.problem is None)] == []
    assert all(row.quick == row.payload for row in found if row.fits)
    _agrees_with_the_quick_reading(spark, schema, rows, {row.id: row for row in found})
    by_id = {row.id: row.problem if row.payload is None else row.payload for row in found}
    return [by_id[i] for i in range(len(bodies))]


def _agrees_with_the_quick_reading(spark: SparkSession, schema: BodySchema, rows: list[Any], careful: Any) -> None:
    """Whatever Arrow reads, one by one and all together, is what Spark reads."""
    kinds: dict[str, pa.DataType] = {"id": pa.int64(), "body": pa.binary()}
    batches = [pa.table({name: [row[at]] for at, name in enumerate(kinds)}, pa.schema(kinds)) for row in rows]
    read = [batch for batch in (with_record(one, schema) for one in batches) if batch.num_columns > len(kinds)]
    for column in (CHECKED, RECORD):
        _agrees(spark, schema, [batch for batch in read if column in batch.column_names], column, careful)
    if read:
        all_fit = all(CHECKED in batch.column_names for batch in read)
        together = with_record(pa.concat_tables(batch.select(list(kinds)) for batch in read), schema)
        assert together.column_names == [*kinds, CHECKED if all_fit else RECORD]
        assert together.column(2).to_pylist() == [batch.column(2)[0].as_py() for batch in read]


def _agrees(spark: SparkSession, schema: BodySchema, read: list[pa.Table], column: str, careful: Any) -> None:
    if not read:
        return
    quick = with_payload(spark.createDataFrame(pa.concat_tables(read)), schema, ("id",), column).collect()
    if column == CHECKED:
        # Nobody asks Spark about these.
        assert [careful[row.id].problem for row in quick if careful[row.id].problem is not None] == []
        assert [row for row in quick if row.payload != careful[row.id].payload] == []
        return
    assert [row.id for row in quick if row.fits is not (careful[row.id].problem is None)] == []
    assert [row for row in quick if row.fits and row.payload != careful[row.id].payload] == []
