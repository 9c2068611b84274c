"""Bodies as the pipeline reads them: all of a schema in one action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from queue_pipeline.processing.body.schema import BodySchema, parse_body, with_payload


def outcomes(spark: SparkSession, schema: BodySchema, bodies: Sequence[bytes | str | None]) -> list[Any]:
    """For each body its problem, or its payload when it has none."""
    rows = [(i, b.encode() if isinstance(b, str) else b) for i, b in enumerate(bodies)]
    frame = spark.createDataFrame(rows, "id long, body binary")
    parsed = parse_body(schema, F.col("body"))
    told = with_payload(frame, schema).withColumnRenamed("payload", "quick")
    found = told.select(
        "id", "quick", "fits", parsed.payload.alias("payload"), parsed.problem.alias("problem")
    ).collect()
    assert all((row.payload is None) != (row.problem is None) for row in found)
    # What every message pays for agrees with the careful reading.
    assert [row.problem for row in found if row.fits is not (row.problem is None)] == []
    assert all(row.quick == row.payload for row in found if row.fits)
    by_id = {row.id: row.problem if row.payload is None else row.payload for row in found}
    return [by_id[i] for i in range(len(bodies))]
