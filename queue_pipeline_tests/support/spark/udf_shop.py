"""A project whose module makes functions of every usual kind when it is loaded, before there is any Spark.

Processes that tests start load it by name. The environment variable `UDF_ROUTE` names the way of its batches.
"""

from __future__ import annotations

import os

import dagster as dg
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import arrow_udf, pandas_udf, udf  # type: ignore[attr-defined]
from pyspark.sql.types import ArrayType, StringType

from queue_pipeline.orchestration.definitions import build_definitions
from queue_pipeline.orchestration.resources import QueueTransportResource, SparkResource
from queue_pipeline.processing.declaration.outcomes import each, send
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.spark.settings import spark_config

ROUTE = "UDF_ROUTE"
SUFFIX = "!"


class Word(BaseModel):
    """A body; Spark's workers import this module to parse it."""

    text: str


def louder(text: str) -> str:
    """A plain function of the module that others call."""
    return text.upper() + SUFFIX


@udf(StringType())
def by_type(text: str) -> str:
    """With a type."""
    return louder(text)


@udf("string")
def by_text(text: str) -> str:
    """With the text of a type, which PySpark has a session read."""
    return louder(text)


@udf(returnType="array<string>", useArrow=True)
def letters(text: str) -> list[str]:
    """With a type that is not plain, by Arrow."""
    return list(text)


@udf
def without_type(text: str) -> str:
    """With the default, a string."""
    return louder(text)


@pandas_udf("string")
def by_pandas(texts: pd.Series) -> pd.Series:
    """A whole column at a time."""
    return texts.str.upper() + SUFFIX


@arrow_udf(StringType())
def by_arrow(texts: pa.Array) -> pa.Array:
    """A whole column at a time, without pandas."""
    return pa.array([louder(str(text)) for text in texts.to_pylist()])


by_lambda = F.udf(lambda text: louder(text), "string")
by_class = F.udf(lambda text: [text], ArrayType(StringType()))
changing = F.udf(louder, "string").asNondeterministic()
FUNCTIONS = (by_type, by_text, letters, without_type, by_pandas, by_arrow, by_lambda, by_class, changing)


def shout(messages: DataFrame) -> DataFrame:
    """Apply every function, also by a name for SQL."""
    text = F.col("payload.text")
    messages.sparkSession.udf.register("named", by_text)
    columns = [function(text).alias(function.__name__.strip("<>") + str(at)) for at, function in enumerate(FUNCTIONS)]
    return messages.select("origin", each(send("billing", json=F.struct(*columns, F.expr("named(payload.text)")))))


words = QueuePipeline(
    name="words",
    input_queue="orders",
    output_queues=["billing"],
    body_schema=Word,
    transform=shout,
    linger_seconds=0,
    route=os.environ.get(ROUTE, "auto"),
)
defs = dg.Definitions.merge(
    build_definitions([words], autostart=False),
    dg.Definitions(
        resources={
            "transport": QueueTransportResource(database=dg.EnvVar("QUEUE_PIPELINE_DATABASE")),
            "spark": SparkResource(spark_config=spark_config()),
        }
    ),
)
